"""What an unfinished run has done so far: samples learnt from, and first attempts beside a base's on the same samples.

None of it is a result. A score so far is over the samples that came first, so a base is compared on these alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ace_bench.core.errors import DataError
from ace_bench.core.types import Stage
from ace_bench.report.evidence import RolloutLine, first_of_each, predictions, read_journal, rollouts_of
from ace_bench.report.progress import expected_samples
from ace_bench.report.records import RunSummary
from ace_bench.report.statistics import Comparison, Point, Points, compare, mean_score

_ONLINE = "online"


@dataclass(frozen=True, kw_only=True)
class SoFar:
    """A run that has not finished: after so many ``steps`` it has ``learnt`` from samples of ``planned`` ones.

    A run that does not adapt plans 0 samples, and a method that optimises in one go learns from none by steps.
    ``points`` are its first attempts at samples of ``split``, ``samples`` the number of samples there. Both numbers of
    samples are ``None`` where the run does not know them yet.
    """

    steps: int = 0
    learnt: int = 0
    planned: int | None = None
    split: str = ""
    samples: int | None = None
    points: Points = field(default_factory=dict)

    @property
    def score(self) -> float | None:
        """The mean of the first attempts in percent, ``None`` without any."""
        return mean_score({0: self.points}) if self.points else None


@dataclass(frozen=True, kw_only=True)
class BesideBase:
    """First attempts against a base's at the same samples: its score there in percent, and the paired difference."""

    base: float
    comparison: Comparison


def so_far(run: RunSummary) -> SoFar:
    """Read what an unfinished run has done. Raises ``StoreError``.

    The attempts are at samples of the tested split online, and once adaptation has ended, else at those it learns from.
    """
    if not (run.folder / "journal.jsonl").exists():
        return SoFar()
    lines = read_journal(run.folder, RolloutLine)
    steps = [place for place, line in enumerate(lines) if line.kind == "step"]
    adapts = (run.folder / "contexts" / "initial.json").exists()
    learning = [line for line in lines if line.stage == Stage.ADAPT and line.grade is not None]
    tests = [] if adapts and not steps else [
        line for line in lines[steps[-1] if steps else 0 :] if line.stage == Stage.EVALUATE and line.grade is not None
    ]  # fmt: skip
    tested = [line for line in tests if line.split == _tested_split(run)]
    epochs, counts = expected_samples(run.folder)
    learnt_split = learning[0].split if learning else ""
    if run.mode == _ONLINE and learning:
        first = predictions(lines, learnt_split)
    elif tested:
        first = first_of_each(rollouts_of(tested, tested[0].split))
    else:
        first = first_of_each(rollouts_of(learning, learnt_split))
    split = tested[0].split if tested else learnt_split
    return SoFar(
        steps=len(steps),
        learnt=sum(len(lines[place].samples) for place in steps),
        planned=epochs * counts[learnt_split] if learnt_split in counts else None if adapts else 0,
        split=split,
        samples=counts.get(split),
        points=_points(first),
    )


def _tested_split(run: RunSummary) -> str:
    split: str = run.identity["mode"].get("split") or run.identity["task"].get("test_split", "test")
    return split


def _points(first: Mapping[str, RolloutLine]) -> dict[str, Point]:
    return {
        sample: Point(score=line.grade.score, group=line.grade.group, place=line.grade.place)
        for sample, line in first.items()
        if line.grade is not None
    }


def beside_base(run: RunSummary, done: SoFar, bases: Sequence[RunSummary]) -> BesideBase | None:
    """Compare first attempts with those of a base, of the same seed if there is one, at the samples that both have.

    ``bases`` may be unfinished, too. Returns ``None`` if they have no sample in common. Raises ``StoreError``.
    """
    base = next((base for base in bases if base.seed == run.seed), bases[0] if bases else None)
    if base is None or base.folder == run.folder:
        return None
    points = (base.points(base.metrics["headline"]["metric"]) or {}) if base.finished else so_far(base).points
    common = done.points.keys() & points.keys()
    if not common:
        return None
    theirs = {0: {sample: points[sample] for sample in common}}
    try:
        comparison = compare({0: {sample: done.points[sample] for sample in common}}, theirs, base_adapts=False)
    except DataError:
        return None
    return BesideBase(base=mean_score(theirs), comparison=comparison)
