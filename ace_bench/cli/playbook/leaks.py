"""Finds bullets that repeat a sample of a run together with its answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ace_bench.playbook.playbook import Playbook
from ace_bench.store.folder import SAMPLES, unpack_samples
from ace_bench.store.journal import RolloutRecord, parse_journal
from ace_bench.store.lines import read_lines
from ace_bench.store.results import read_object

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_WINDOW = 8
"""Adjacent words of a sample that a bullet must repeat, beside its answer, to count as a leak."""
_SHORTEST_ANSWER = 2
_SHARED = 3
"""A text of more samples than this is the task's, such as a list of labels, and no question."""


class Leak(NamedTuple):
    """A bullet that repeats a sample; both are ids."""

    bullet: str
    split: str
    sample: str


class Solved(NamedTuple):
    """A sample with its reference answer, as adaptation saw it."""

    sample: str
    split: str
    text: str
    answer: str


def _join_words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def find_leaks(book: Playbook, solved: Iterable[Solved]) -> Iterator[Leak]:
    """Find bullets that repeat eight adjacent words of a sample together with its answer."""
    windows: dict[tuple[str, ...], list[Solved]] = {}
    for sample in solved:
        if len(_join_words(sample.answer)) >= _SHORTEST_ANSWER:
            for window in _windows(sample.text):
                windows.setdefault(window, []).append(sample)
    for bullet in book.bullets:
        text = f" {_join_words(bullet.content)} "
        hits = {sample.sample: sample for window in _windows(bullet.content) for sample in windows.get(window, ())}
        for sample in hits.values():
            # A question may have several answers, separated by commas.
            answers = [_join_words(part) for part in (sample.answer, *sample.answer.split(","))]
            if any(f" {answer} " in text for answer in answers if len(answer) >= _SHORTEST_ANSWER):
                yield Leak(bullet=bullet.id, split=sample.split, sample=sample.sample)


def _windows(text: str) -> Iterator[tuple[str, ...]]:
    all_words = _WORD.findall(text.casefold())
    return (tuple(all_words[start : start + _WINDOW]) for start in range(len(all_words) - _WINDOW + 1))


def solved_samples(folder: Path) -> list[Solved]:
    """Return each sample of a run whose reference answer its journal holds. Raises ``StoreError`` and ``DataError``."""
    samples = unpack_samples(read_object(folder, SAMPLES))
    uses: dict[str, int] = {}
    for sample in samples.values():
        for text in set(sample.inputs.values()):
            uses[text] = uses.get(text, 0) + 1
    return [
        Solved(
            sample=name,
            split=samples[name].split,
            text="\n".join(text for text in samples[name].inputs.values() if uses[text] <= _SHARED),
            answer=answer,
        )
        for name, answer in dict(_answers(folder)).items()
        if name in samples
    ]


def _answers(folder: Path) -> Iterator[tuple[str, str]]:
    for line in read_lines(folder / "journal.jsonl", parse_journal).check().entries:
        record = line.record
        if isinstance(record, RolloutRecord) and record.grade.gold:
            yield record.sample, record.grade.gold
