"""Kind of question: choose one of listed options by words (DDXPlus), or repeat what a lesson says.

This is also the fallback: any text is such a question, possibly without options.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ace_rehearsal.reader.items import Item
from ace_rehearsal.reader.lessons import ANSWER, Lesson, one_line
from ace_rehearsal.reader.retrieval import Index
from ace_rehearsal.reader.words import content_stems, tokens

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
    weight = 4.0

    options: tuple[str, ...]

    def fill(self, lesson: Lesson, index: Index) -> tuple[str, float] | None:
        answer = self._option(lesson.payload)
        return (answer, 1.0) if answer else None

    def guesses(self) -> Mapping[str, float]:
        """Score every option by the share of its own words that the question has; at most 0.5."""
        own = set(content_stems(tokens(self.cue)))
        words = {option: set(content_stems(tokens(option))) for option in self.options}
        return {o: len(w & own) / (len(w) + 1.0) / 2 for o, w in words.items()} or {_UNKNOWN: 0.0}

    def payload(self, answer: str) -> str:
        return self._option(answer)

    def same(self, one: str, other: str) -> bool:
        return self._option(one).lower() == self._option(other).lower()

    def _option(self, answer: str) -> str:
        """The option an answer names, by its number where it has one; any answer where there are no options."""
        said = one_line(answer)[:_LONGEST_ANSWER]
        if not self.options or said in self.options:
            return said
        number = _NUMBER.match(said)
        start = f"{number[1]}. " if number else f"{said}\n"
        return next((option for option in self.options if option.startswith(start)), "")


def read_listed_choice(background: str, question: str) -> Sequence[ChoiceItem]:
    """Recognise a question below a long numbered list of options."""
    items = read_choice(background, question)
    return items if _NUMBERED.search(background or question) and len(items[0].options) >= _LONG_LIST else []


def read_choice(background: str, question: str) -> Sequence[ChoiceItem]:
    """Take any text as a question, with the options that it or the background lists."""
    options, rest = _split_options(question)
    if not background:  # in a prompt without tags the question is below the last heading "profile:"
        rest = _PROFILE.split(rest)[-1]
    return [ChoiceItem(cue=one_line(rest), options=options or _split_options(background)[0])]


@lru_cache(maxsize=64)
def _split_options(text: str) -> tuple[tuple[str, ...], str]:
    """Options of a text, and the text without them, so that an option does not match its own words."""
    listed, inline = _NUMBERED.search(text), _INLINE.search(text)
    if listed is not None:
        found = [f"{match[1]}. {match[2]}" for match in _OPTION.finditer(listed[0])]
        rest = text[: listed.start()] + text[listed.end() :]
    elif inline is not None:
        found = [name.strip(" \t\"'.") for name in re.split(r"[,;|]", inline[1])]
        rest = text[: inline.start()] + text[inline.end() :]
    else:
        return (), text
    options = tuple(dict.fromkeys(filter(None, found)))[:_MOST_OPTIONS]
    return (options, rest) if len(options) > 1 else ((), text)
