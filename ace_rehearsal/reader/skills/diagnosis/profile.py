"""A patient profile as the reader sees it: the numbered options, and findings as short lists of words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ace_rehearsal.reader.words import is_cue, stem, tokens

_OPTIONS = re.compile(r"(?:^[ \t]*\d{1,3}\.[ \t]+\S[^\n]{0,120}(?:\n|\Z)){8,}", re.MULTILINE)
_OPTION = re.compile(r"^[ \t]*(\d{1,3})\.[ \t]+(\S[^\n]*?)[ \t]*$", re.MULTILINE)
_PROFILE = re.compile(r"\bprofile:[ \t]*\n", re.IGNORECASE)
_LABEL = re.compile(r"^[A-Z][\w ]{0,24}:[ \t]*")
_CLAUSE = re.compile(r"(?<=[.;])\s+")
_FEWEST_OPTIONS, _MOST_FINDINGS = 8, 80


@dataclass(frozen=True, kw_only=True)
class OptionList:
    """Options by their numbers, in the order of the prompt."""

    names: Mapping[int, str]
    stems: Mapping[int, frozenset[str]]

    def worded(self, number: int) -> str:
        """Name an option as answers do."""
        return f"{number}. {self.names[number]}"


@lru_cache(maxsize=16)
def read_options(text: str) -> OptionList | None:
    """Find the first list of at least eight lines with different numbers; ``None`` without one."""
    listed = _OPTIONS.search(text)
    if listed is None:
        return None
    names = {int(match[1]): match[2] for match in _OPTION.finditer(listed[0])}
    if len(names) < _FEWEST_OPTIONS:
        return None
    stems = {number: frozenset(stem(word) for word in tokens(name) if is_cue(word)) for number, name in names.items()}
    return OptionList(names=names, stems=stems)


def split_off_profile(text: str) -> str:
    """Return what stands below the last heading "profile:", or below the options; the whole text without either."""
    headings = list(_PROFILE.finditer(text))
    if headings:
        return text[headings[-1].end() :]
    listed = _OPTIONS.search(text)
    return text[listed.end() :] if listed else text


@lru_cache(maxsize=2_048)
def read_findings(profile: str) -> tuple[str, ...]:
    """Findings in reading order as lower-case words that can tell patients apart, each finding once.

    A line is a finding, or each of its sentences where it has several; of a question answered in the same line the
    answer comes first, and "yes" is left out. Numbers such as an age tell little and are left out as well.
    """
    found: dict[str, None] = {}
    for line in profile.splitlines():
        for clause in _CLAUSE.split(_LABEL.sub("", line.strip().lstrip("-*• \t"))):
            asked, mark, answered = clause.rpartition("?")
            ordered = f"{answered} {asked}" if mark else clause
            words = [word.lower() for word in tokens(ordered) if is_cue(word) and word.lower() != "yes"]
            if words:
                found[" ".join(words)] = None
    return tuple(found)[:_MOST_FINDINGS]


def features(findings: Sequence[str]) -> Mapping[str, float]:
    """Weighted features: the stems of each finding and the pairs of neighbours; long findings count no more."""
    found: dict[str, float] = {}
    for finding in findings:
        stems = [stem(word) for word in finding.split()]
        weight = 1.0 / (1.0 + len(stems) / 6.0)
        for key in stems:
            found[key] = max(found.get(key, 0.0), weight)
        for first, second in pairwise(stems):
            found[f"{first}+{second}"] = weight
    return found
