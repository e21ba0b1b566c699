"""How far an unfinished run is, from its journal and calls; new lines are read once, so that it can be asked often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.types import NO_USAGE, Record, Stage
from ace_bench.report.evidence import CallCosts, RolloutLine
from ace_bench.store.folder import SAMPLES, unpack_samples
from ace_bench.store.results import read_identity, read_object
from ace_bench.store.speed import SpeedMeter

T = TypeVar("T")

_RECENT = 20
"""Number of first rollouts in adaptation over which a score is averaged, as in the learning curve of a report."""
_POINTS = 60
"""Maximum number of points of a curve."""


class _Line(RolloutLine, gc=False):
    context_tokens: int = 0
    context_size: int = 0
    fault: dict[str, Any] | None = None


class Tail(Generic[T]):
    """The lines of a growing file as values of a kind. ``read`` gives those that are new, damaged ones left out."""

    def __init__(self, path: Path, kind: type[T]):
        self._path = path
        self._decoder = msgspec.json.Decoder(kind)
        self._at = 0

    def read(self) -> list[T] | None:
        """Return the values of the lines since the last call, or ``None`` if the file was replaced: follow it anew."""
        try:
            with self._path.open("rb") as file:
                if file.seek(0, 2) < self._at:
                    return None
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read ({error.strerror}); make it readable") from error
        complete = data.rfind(b"\n") + 1
        self._at += complete
        return [value for line in data[:complete].splitlines() if (value := self._value(line)) is not None]

    def _value(self, line: bytes) -> T | None:
        try:
            return self._decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None  # the run's page says which lines are damaged


class Progress:
    """Follows one unfinished run."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._totals: tuple[int, Mapping[str, int]] | None = None
        self._start()

    def _start(self) -> None:
        self._journal = Tail(self._folder / "journal.jsonl", _Line)
        self._calls = Tail(self._folder / "calls.jsonl", CallCosts)
        self._lines: list[_Line] = []
        self._made, self._usage, self._meter = 0, NO_USAGE, SpeedMeter()
        self._models: Counter[tuple[str, str]] = Counter()
        self._known: Record = {}

    def record(self) -> Record:
        """Return the state as a JSON object. Raises ``StoreError``.

        ``done`` of ``total`` samples (``None``: unknown) in ``stage``. ``score`` in percent is the mean over ``n``
        first rollouts: the last ones of adaptation, or all of the evaluation under way. ``sizes`` are step, tokens and
        items of the context after some of the steps. ``models`` are the answered calls by role and answering model.
        """
        lines, calls = self._journal.read(), self._calls.read()
        if lines is None or calls is None:  # a continued run repaired its files
            self._start()
            lines, calls = self._journal.read() or [], self._calls.read() or []
        if self._known and not (lines or calls):
            return self._known
        self._lines += lines
        for call in calls:
            answered = call.fault is None or not call.fault.unanswered
            self._made += answered
            self._models[call.role, call.model] += answered
            self._usage += NO_USAGE if call.replayed else call.usage
            self._meter.add(call, call.at)
        self._known = self._record()
        return self._known

    def _record(self) -> Record:
        graded = [line for line in self._lines if line.grade is not None]
        first = [line for line in graded if not line.trial]
        tries = [line for line in first if line.stage == Stage.ADAPT]
        tests = [line for line in first if line.stage != Stage.ADAPT]
        steps = [line for line in self._lines if line.kind == "step"]
        sizes = [(index, step.context_tokens, step.context_size) for index, step in enumerate(steps, start=1)]
        stage = graded[-1].stage if graded else ""
        epochs, samples = self._expected_samples()
        if stage == Stage.EVALUATE and tests:
            split, context = tests[-1].split, tests[-1].context
            counted = [line for line in tests if (line.split, line.context) == (split, context)]
            done, total = len(counted), samples.get(split)
        else:
            split = tries[-1].split if tries else ""
            counted = tries[-_RECENT:]
            done = sum(len(step.samples) for step in steps)
            total = epochs * samples[split] if steps and split in samples else None
        scores = [100 * line.grade.score for line in counted if line.grade]
        return {
            "stage": stage,
            "split": split,
            "done": done,
            "total": None if total is None else max(done, total),
            "score": sum(scores) / len(scores) if scores else None,
            "n": len(scores),
            "faults": sum(line.fault is not None for line in graded),
            "steps": len(steps),
            "tokens": sizes[-1][1] if sizes else None,
            "items": sizes[-1][2] if sizes else None,
            "sizes": _thin_out(sizes),
            "calls": self._made,
            "models": [(role, model, number) for (role, model), number in self._models.items()],
            "in": self._usage.prompt,
            "out": self._usage.completion,
            "cached": self._usage.cached,
            "usd": self._usage.usd,
            **self._meter.speed().record(),
        }

    def _expected_samples(self) -> tuple[int, Mapping[str, int]]:
        """Return the epochs, and the number of samples by split."""
        if self._totals is None:
            epochs, counts = expected_samples(self._folder)
            if not counts:
                return epochs, counts
            self._totals = (epochs, counts)
        return self._totals


def expected_samples(folder: Path) -> tuple[int, Mapping[str, int]]:
    """Return the epochs of a run, and its number of samples by split, none before it has written them."""
    try:
        epochs = read_identity(folder)["settings"]["mode"].get("epochs", 1)
        counts = Counter(sample.split for sample in unpack_samples(read_object(folder, SAMPLES)).values())
    except (StoreError, DataError):
        return 1, {}
    return epochs, counts


def _thin_out(points: list[T]) -> list[T]:
    """Return at most ``_POINTS`` of the points, the last one among them."""
    return points[:: -ceil(len(points) / _POINTS) or -1][::-1]
