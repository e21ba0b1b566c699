"""Kind of question: choose one of many tags for each number of a sentence (FiNER)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ace_rehearsal.reader.items import Item
from ace_rehearsal.reader.lessons import ANSWER, Lesson
from ace_rehearsal.reader.retrieval import Index
from ace_rehearsal.reader.words import camel_stems, is_cue, stem, tokens

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
    weight = 2.5

    tags: Mapping[str, Mapping[str, float]]

    def fill(self, lesson: Lesson, index: Index) -> tuple[str, float] | None:
        return (lesson.payload, 1.0) if lesson.payload in self.tags else None

    def guesses(self) -> Mapping[str, float]:
        """Score every tag by the words of its name near the number."""
        before, _, rest = self.cue.partition("[")
        closeness: dict[str, float] = {}
        for words in (tokens(before)[::-1], tokens(rest.partition("]")[2])):
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
    found = _ITEM.findall(question)[:_MOST_ITEMS] if tags else []
    return [TagItem(tags=tags, cue=_quoted(entity, text.rstrip(' \t"'))) for _, entity, text in found]


def _quoted(entity: str, sentence: str) -> str:
    """The words around an entity, which is put in brackets; an entity that does not occur follows the sentence."""
    words = tokens(sentence)
    lowered = [word.lower() for word in words]
    wanted = [word.lower() for word in tokens(entity) if word.lower() in lowered]
    place = lowered.index(wanted[0]) if wanted else len(words)
    before, after = words[max(place - _QUOTED_BEFORE, 0) : place], words[place + 1 : place + 1 + _QUOTED_AFTER]
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
    whole = {name: math.fsum(rarity[word] for word in camel_stems(name)) + 4.0 for name in names}
    return {name: {word: rarity[word] / whole[name] for word in camel_stems(name)} for name in names}
