"""The samples of a run with the reference answers that its journal holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ace_bench.contexts.playbook.lint import Solved
from ace_bench.store.journal import RolloutRecord, parse_journal
from ace_bench.store.lines import read_lines
from ace_bench.store.results import read_object
from ace_bench.store.samples import SAMPLES, unpacked

_SHARED = 3
"""A text of more samples than this is the task's, such as a list of labels, and no question."""


def solved_samples(folder: Path) -> list[Solved]:
    """Return each sample of a run whose reference answer its journal holds; raises ``StoreError`` and ``DataError``."""
    samples = unpacked(read_object(folder, SAMPLES))
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
