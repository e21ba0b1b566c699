"""Label leakage: how many samples hold their own reference answer in the text that a model is shown of them.

The search is for the answer as it is written:

* These lines of a sample's inputs do not count: those that all samples of the split share (an instruction, FiNER's list
  of tags), options (``A. Paris``), and, where the split has at most 50 different answers, those that hold another
  answer, too ("yes or no").
* An answer counts if it appears as whole words. Case and white space do not matter. Of an answer that names an option
  (``B. Paris``) the letter and the rest count alone, too.
* A number or a single character counts only where it is all of a line, or all that follows ``:``, ``=`` or the word
  "answer": 5 in "5 apples" says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ace_bench.core.task import Task
from ace_bench.core.types import Sample
from ace_bench.core.words import has_words, visible

_MOST_CANDIDATES = 50
_OPTION = re.compile(r"\(?[a-c]?[a-z][.)] ")
_LABELLED = re.compile(r"([a-c]?[a-z])[.)] (.+)")
_SHORT = re.compile(r"[^\w\s]*(?:\w|\d[\d.,]*)\s?%?")


@dataclass(frozen=True, kw_only=True)
class Leakage:
    """``found`` of the ``n`` samples that have a reference answer hold it."""

    found: int
    n: int

    def __str__(self) -> str:
        return f"{self.found:,} of {self.n:,} prompts hold their reference answer"


def find_leakage(task: Task, split: str, limit: int | None = None) -> Leakage:
    """Search the first ``limit`` samples of a split; makes no calls, and its time is linear in the text."""
    samples = task.samples(split)
    texts = [_lines(sample) for sample in samples]
    shared = set(texts[0]).intersection(*texts[1:]) if len(texts) > 1 else set[str]()
    golds = [_plain(task.failing_grade(sample).gold) for sample in samples[:limit]]
    forms = {gold: _forms(gold) for gold in golds if gold}
    candidates = frozenset[str]().union(*forms.values()) if len(forms) <= _MOST_CANDIDATES else frozenset[str]()
    leaked = 0
    for gold, text in zip(golds, texts, strict=False):
        if gold:
            own_lines = [line for line in text if line not in shared and not _OPTION.match(line)]
            leaked += _hold(own_lines, forms[gold], [form for form in candidates - forms[gold] if form not in gold])
    return Leakage(found=leaked, n=sum(map(bool, golds)))


def _plain(text: str) -> str:
    return " ".join(visible(text).casefold().split())


def _lines(sample: Sample) -> list[str]:
    return [_plain(line) for text in sample.inputs.values() for line in text.splitlines()]


def _forms(gold: str) -> frozenset[str]:
    """Return the answer, and the parts of one that names an option."""
    labelled = _LABELLED.fullmatch(gold)
    return frozenset((gold, *labelled.groups()) if labelled else (gold,))


def _hold(lines: Sequence[str], forms: frozenset[str], other_forms: Sequence[str]) -> bool:
    """Whether a line holds an answer. Lines that also hold another answer do not count."""
    holding_lines = [line for line in lines if any(_contains(line, form) for form in forms)]
    if holding_lines:
        return any(not any(_contains(line, other_form) for other_form in other_forms) for line in holding_lines)
    text = " ".join(lines)  # an answer may be longer than a line
    return any(_contains(text, form) for form in forms)


def _contains(text: str, form: str) -> bool:
    if form not in text:
        return False
    if _SHORT.fullmatch(form):
        return re.search(rf"(?:^|[:=]|\banswer(?: is)?) ?[^\w\s]*{re.escape(form)}[^\w\s]*$", text) is not None
    return has_words(text, form)
