"""Kinds of question: choose an option by words (DDXPlus), or a tag for each number of a sentence (FiNER).

A choice is also the fallback: any text is such a question, possibly without options, and repeats what a lesson says.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ace_bench.backbones.embedded.items import Index, Item
from ace_bench.backbones.embedded.lessons import ANSWER, Lesson, one_line
from ace_bench.backbones.embedded.words import camel_stems, content_stems, is_cue, stem, tokens

_NUMBERED = re.compile(r"(?:^[ \t]*\d{1,3}\.[ \t]+\S[^\n]{0,120}(?:\n|\Z)){3,}", re.MULTILINE)
_OPTION = re.compile(r"^[ \t]*(\d{1,3})\.[ \t]+(\S[^\n]*?)[ \t]*$", re.MULTILINE)
_INLINE = re.compile(
    r"\b(?:options?|choices?|one of|choose from)\b[^:\n]{0,60}:[ \t]*([^\n]{3,2000}?)(?=[.?!](?:\s|$)|\n|$)",
    re.IGNORECASE,
)
_PROFILE = re.compile(r"\bprofile:[ \t]*\n", re.IGNORECASE)
_NUMBER = re.compile(r"\A\W*(\d{1,3})\b")
_MOST_OPTIONS, _LONGEST_ANSWER, _LONG_LIST = 200, 200, 8
_UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class ChoiceItem(Item):
    """A question and its options, which may be empty; ``text`` excludes them."""

    verb = ANSWER
    weight, least = 4.0, 0.1

    options: tuple[str, ...]

    def fill(self, lesson: Lesson, index: Index) -> tuple[str, float] | None:
        answer = self._option(lesson.payload)
        return (answer, 1.0) if answer else None

    def guesses(self) -> Mapping[str, float]:
        """Score every option by the share of its own words that the question has; at most 0.5."""
        cue_stems = set(content_stems(tokens(self.cue)))
        option_stems = {option: set(content_stems(tokens(option))) for option in self.options}
        return {o: len(w & cue_stems) / (len(w) + 1.0) / 2 for o, w in option_stems.items()} or {_UNKNOWN: 0.0}

    def payload(self, answer: str) -> str:
        return self._option(answer)

    def is_same(self, first: str, second: str) -> bool:
        return self._option(first).lower() == self._option(second).lower()

    def _option(self, answer: str) -> str:
        """The option an answer names, by its number where it has one; any answer without options."""
        line = one_line(answer)[:_LONGEST_ANSWER]
        if not self.options or line in self.options:
            return line
        number = _NUMBER.match(line)
        start = f"{number[1]}. " if number else f"{line}\n"
        return next((option for option in self.options if option.startswith(start)), "")


def read_listed_choice(background: str, question: str) -> Sequence[ChoiceItem]:
    """Recognise a question below a long numbered list of options."""
    items = read_choice(background, question)
    return items if _NUMBERED.search(background or question) and len(items[0].options) >= _LONG_LIST else []


def read_choice(background: str, question: str) -> Sequence[ChoiceItem]:
    """Take any text as a question, with the options that it or the background lists."""
    options, text = _split_options(question)
    if not background:  # in a prompt without tags the question is below the last heading "profile:"
        text = _PROFILE.split(text)[-1]
    return [ChoiceItem(cue=one_line(text), options=options or _split_options(background)[0])]


@lru_cache(maxsize=64)
def _split_options(text: str) -> tuple[tuple[str, ...], str]:
    """Options of a text, and the text without them, so that an option does not match its own words."""
    listed, inline = _NUMBERED.search(text), _INLINE.search(text)
    if listed is not None:
        names = [f"{match[1]}. {match[2]}" for match in _OPTION.finditer(listed[0])]
        remainder = text[: listed.start()] + text[listed.end() :]
    elif inline is not None:
        names = [name.strip(" \t\"'.") for name in re.split(r"[,;|]", inline[1])]
        remainder = text[: inline.start()] + text[inline.end() :]
    else:
        return (), text
    options = tuple(dict.fromkeys(filter(None, names)))[:_MOST_OPTIONS]
    return (options, remainder) if len(options) > 1 else ((), text)


_ITEM = re.compile(
    r'^[ \t]*(\d+)[.)][^"\n]{0,120}"([^"\n]{1,80})"[^"\n]{0,40}:\s*"?(.*?)'
    r"(?=\n[ \t]*\d+[.)]|\n[ \t]*\n|\n\w[\w ]{0,40}:|\Z)",
    re.MULTILINE | re.DOTALL,
)
_LIST = re.compile(r"\b(?:[A-Za-z]\w*[ \t]*,[\s,]*)+[A-Za-z]\w*")
_FEWEST_OPTIONS, _MOST_ITEMS = 3, 100
_QUOTED_BEFORE, _QUOTED_AFTER = 24, 14
_REACH = 14.0


@dataclass(frozen=True, kw_only=True)
class TagItem(Item):
    """A number in a sentence and the tags to choose from, each with the weighted stems of its name.

    The cue holds the words around the number, which is in brackets.
    """

    verb = ANSWER
    weight, least = 2.5, 0.1

    tags: Mapping[str, Mapping[str, float]]

    def fill(self, lesson: Lesson, index: Index) -> tuple[str, float] | None:
        return (lesson.payload, 1.0) if lesson.payload in self.tags else None

    def guesses(self) -> Mapping[str, float]:
        """Score every tag by the words of its name near the number."""
        before, _, after = self.cue.partition("[")
        closeness: dict[str, float] = {}
        for words in (tokens(before)[::-1], tokens(after.partition("]")[2])):
            for distance, word in enumerate(words):
                if is_cue(word):
                    close = 1.0 / (1.0 + distance / _REACH)
                    closeness[stem(word)] = max(closeness.get(stem(word), 0.0), close)
        return {
            tag: math.fsum(weight * closeness.get(word, 0.0) for word, weight in words.items())
            for tag, words in self.tags.items()
        }


def read_tags(background: str, question: str) -> Sequence[TagItem]:
    """Recognise numbered entities in sentences below a list of tags."""
    tags = _read_list(background or question) or _read_list(question)
    matches = _ITEM.findall(question)[:_MOST_ITEMS] if tags else []
    return [TagItem(tags=tags, cue=_quote_entity(entity, text.rstrip(' \t"'))) for _, entity, text in matches]


def _quote_entity(entity: str, sentence: str) -> str:
    """The words around an entity, which is put in brackets; an entity that does not occur follows the sentence."""
    parts = tokens(sentence)
    lowered = [word.lower() for word in parts]
    wanted = [word.lower() for word in tokens(entity) if word.lower() in lowered]
    index = lowered.index(wanted[0]) if wanted else len(parts)
    before, after = (
        parts[max(index - _QUOTED_BEFORE, 0) : index],
        parts[index + 1 : index + 1 + _QUOTED_AFTER],
    )
    return " ".join([*before, f"[{entity}]", *after])


@lru_cache(maxsize=16)
def _read_list(text: str) -> Mapping[str, Mapping[str, float]]:
    """The longest comma-separated list of names, with the stems of each name; rare stems weigh more."""
    lists = _LIST.findall(text)
    names = tuple(dict.fromkeys(re.split(r"[\s,]+", max(lists, key=len)))) if lists else ()
    if len(names) < _FEWEST_OPTIONS:
        return {}
    frequency = Counter(word for name in names for word in camel_stems(name))
    rarity = {word: math.log((len(names) + 1) / count) for word, count in frequency.items()}
    totals = {name: math.fsum(rarity[word] for word in camel_stems(name)) + 4.0 for name in names}
    return {name: {word: rarity[word] / totals[name] for word in camel_stems(name)} for name in names}
