"""A run folder's records as its report reads them, finished or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ace_bench.contexts.load import restore
from ace_bench.core.context import Context
from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.types import Sample
from ace_bench.report.histories import history
from ace_bench.report.records import RunSummary
from ace_bench.store.calls import CallRecord, parse_call
from ace_bench.store.journal import RolloutRecord, StepRecord, parse_journal
from ace_bench.store.lines import read_lines
from ace_bench.store.results import read_object
from ace_bench.store.samples import SAMPLES, unpacked


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A run with all that it recorded; ``samples`` is empty for folders of versions that did not keep them.

    ``problems`` says what of the journal and the calls cannot be used and is left out.
    """

    run: RunSummary
    calls: Sequence[CallRecord]
    rollouts: Sequence[RolloutRecord]
    steps: Sequence[StepRecord]
    samples: Mapping[str, Sample]
    problems: Sequence[str]

    def contexts(self) -> Iterator[Context]:
        """Yield the context before the first step and after each one; raises ``StoreError``.

        They are not kept: with a large playbook each has a text of its own. A run without adaptation has one context,
        and one that stopped before its first step none.
        """
        folder = self.run.folder / "contexts"
        if (folder / "initial.json").exists():
            yield from history(self.run.folder)
        elif (folder / "tested.json").exists() and not self.steps:
            yield restore(read_object(self.run.folder, "contexts/tested.json"))


def read_recorded(run: RunSummary) -> Recorded:
    """Read everything but contexts; raises ``StoreError``."""
    folder = run.folder
    journal = read_lines(folder / "journal.jsonl", parse_journal)
    calls = read_lines(folder / "calls.jsonl", parse_call)
    records = [line.record for line in journal.entries]
    try:
        samples = unpacked(read_object(folder, SAMPLES)) if (folder / SAMPLES).exists() else {}
    except DataError as error:
        raise StoreError(f"{folder}: {error}") from error
    return Recorded(
        run=run,
        calls=calls.entries,
        rollouts=[record for record in records if isinstance(record, RolloutRecord)],
        steps=[record for record in records if isinstance(record, StepRecord)],
        samples=samples,
        problems=[found.summary for found in (journal, calls) if found.problems],
    )
