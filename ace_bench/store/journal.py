"""The journal of a run: its graded rollouts and steps in order, in a file of ours that any JSON tool reads."""

from __future__ import annotations

import logging
import time
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ace_bench.core.encoding import decoder_of
from ace_bench.core.types import Attempt, Fault, Grade, Record, Stage
from ace_bench.store.call_log import CallLog
from ace_bench.store.lines import AppendLog, DiskGuard, read_lines

_log = logging.getLogger(__name__)


class RolloutRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout with its grade, from which metrics are computed.

    ``restarts`` counts attempts lost to broken environments; ``judge_fault`` says why a judge gave no verdict.
    """

    key: str
    stage: Stage
    split: str
    sample: str
    context: str
    trial: int
    attempt: Attempt
    grade: Grade
    fault: Fault | None
    calls: int
    seconds: float
    restarts: int = 0
    judge_fault: Fault | None = None


class StepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A finished adaptation step: the patch that turns the previous context into the next one.

    ``digest``, ``context_tokens`` and ``context_size`` describe the context after the step.
    ``events`` say what was proposed, applied, rejected, merged and pruned. ``at`` is when the step was recorded (UTC);
    nothing is computed from it, and folders of older versions have none.
    """

    index: int
    epoch: int
    samples: tuple[str, ...]
    patch: Record
    digest: str
    context_tokens: int
    context_size: int
    events: tuple[Record, ...]
    at: datetime | None = None


class CacheRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Use of a server's prefix cache during a part of a stage, from the server's counters, in tokens."""

    server: str
    stage: Stage
    queries: int
    hits: int


class ServerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that a server had looked up in its cache before this run's first call; 0 means a cold start."""

    server: str
    asked_before: int


_KINDS = {"rollout": RolloutRecord, "step": StepRecord, "cache": CacheRecord, "server": ServerRecord}


class JournalLine(msgspec.Struct):
    """One line of ``journal.jsonl``: by ``process``, when its stage ``clock`` had run for ``wall`` seconds.

    ``calls_made`` calls were recorded by then.
    """

    kind: Literal["rollout", "step", "cache", "server", "clock"]
    process: Annotated[str, msgspec.Meta(pattern="^[0-9]+$")]
    clock: Stage | None
    wall: float
    calls_made: int
    record: Any = None
    """One of the records above, by ``kind``; ``None`` for a line with only the clock."""


def parse_journal(line: bytes) -> JournalLine:
    """Read a line of ``journal.jsonl``; raises ``ValueError``."""
    record: JournalLine = decoder_of(JournalLine).decode(line)
    if (kind := _KINDS.get(record.kind)) is not None:
        record.record = decoder_of(kind).decode(line)
    return record


class Journal(AppendLog[JournalLine]):
    """``journal.jsonl``. Each line holds how long its stage has run so far, so wall time adds up over processes.

    Each line also holds how many calls were recorded when it was written. If calls before a line were lost to a power
    failure or damage, that line and all later ones are ignored. Their rollouts are repeated, replaying the remaining
    calls, so the ledger contains every call that a rollout needed.
    """

    def __init__(self, path: Path, calls: CallLog, guard: DiskGuard | None = None):
        """Read the journal and repair its file; raises ``StoreError`` and ``FolderUnwritable``."""
        meaning = "rollouts and steps of the lost lines are repeated from the recorded calls"
        super().__init__(read_lines(path, parse_journal), guard=guard, meaning=meaning)
        self._calls = calls
        self.rollouts: dict[str, RolloutRecord] = {}
        self.steps: list[StepRecord] = []
        self.caches: list[CacheRecord] = []
        self.asked_before: dict[str, int] = {}
        """Tokens that each server had looked up in its cache before this run's first call; 0 means a cold start."""
        self._walls: dict[tuple[str, Stage], float] = {}
        lines = self.found.entries
        lost = max((line.calls_made for line in lines), default=0) - calls.seen
        if lost > 0:  # from the end of their file, which itself does not show it
            lost_calls = "1 call that was recorded is" if lost == 1 else f"{lost} calls that were recorded are"
            _log.warning("%s: %s gone from its end, made again and paid for again", calls.path, lost_calls)
        first_lost = min(calls.lost, default=calls.made + 1)
        with_calls = takewhile(lambda line: line.calls_made < first_lost, lines)
        gap = min(self.found.lost, default=len(lines) + 1)
        kept = {index for index, line in enumerate(with_calls) if self._load(line, follows_gap=index + 1 >= gap)}
        self.repair(kept)
        self._process = str(1 + max((int(p) for p, _ in self._walls), default=0))
        self._stage: Stage | None = None
        self._stage_start = 0.0

    def begin(self, stage: Stage) -> None:
        """Start the clock of a stage; time already spent in the stage is kept."""
        self._record_time()
        spent = self._walls.get((self._process, stage), 0.0)
        self._stage, self._stage_start = stage, time.monotonic() - spent

    def end(self) -> None:
        """Stop the clock and record its time."""
        self._record_time()
        self._stage = None
        self._sync_both()

    @property
    def stage(self) -> Stage:
        """The stage whose clock runs, ``EVALUATE`` if none does."""
        return self._stage or Stage.EVALUATE

    def wall(self, stage: Stage) -> float:
        """Wall seconds spent in a stage by all processes of this run so far."""
        running = self._stage_seconds() if self._stage is stage else 0.0
        current = (self._process, stage) if running else None
        return running + sum(wall for key, wall in self._walls.items() if key[1] is stage and key != current)

    def total_wall(self) -> float:
        """Wall seconds spent in all stages so far."""
        return sum(map(self.wall, Stage))

    def add_rollout(self, record: RolloutRecord) -> None:
        """Add a graded rollout."""
        self._append("rollout", record)
        self.rollouts[record.key] = record

    def add_step(self, record: StepRecord) -> None:
        """Add a finished step; on return it is synced to disk."""
        self._append("step", record)
        self._sync_both()
        self.steps.append(record)

    def add_server(self, server: str, asked_before: int) -> None:
        """Add how much a server's cache had been used before the run's first call to it."""
        if server not in self.asked_before:
            self._append("server", ServerRecord(server=server, asked_before=asked_before))
            self.asked_before[server] = asked_before

    def add_cache(self, server: str, queries: int, hits: int) -> None:
        """Add the change of a server's cache counters during the current part of a stage."""
        if self._stage is not None:
            record = CacheRecord(server=server, stage=self._stage, queries=queries, hits=hits)
            self._append("cache", record)
            self.caches.append(record)

    def _append(self, kind: str, record: msgspec.Struct | None = None) -> None:
        timing = {"process": self._process, "clock": self._stage, "wall": round(self._stage_seconds(), 4)}
        fields = {} if record is None else msgspec.structs.asdict(record)
        self.append({"kind": kind, **fields, **timing, "calls_made": self._calls.made})

    def _sync_both(self) -> None:
        self._calls.sync()  # first the calls, which the journal's lines refer to
        self.sync()

    def _stage_seconds(self) -> float:
        return time.monotonic() - self._stage_start if self._stage else 0.0

    def _record_time(self) -> None:
        if self._stage is not None:
            self._walls[self._process, self._stage] = self._stage_seconds()
            self._append("clock")

    def _load(self, line: JournalLine, *, follows_gap: bool) -> bool:
        """Load a line; return false for a step after a gap, which must be repeated with the lines lost in the gap."""
        record = line.record
        if isinstance(record, StepRecord) and (follows_gap or record.index != len(self.steps)):
            return False
        if line.clock is not None:
            self._walls[line.process, line.clock] = line.wall
        if isinstance(record, RolloutRecord):
            self.rollouts[record.key] = record
        elif isinstance(record, StepRecord):
            self.steps.append(record)
        elif isinstance(record, CacheRecord):
            self.caches.append(record)
        elif isinstance(record, ServerRecord):
            self.asked_before.setdefault(record.server, record.asked_before)
        return True
