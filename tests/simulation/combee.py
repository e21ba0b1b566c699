"""What each difference between our Combee and the authors' code changes: ``make statistics`` writes it into a page.

A run takes one of the authors' rules at a time. The embedded reader learns from FiNER's sample questions.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from msgspec.structs import replace as changed
from rich.console import Console

from ace_bench.ace.combee import CombeeCurator, join_lessons
from ace_bench.ace.editing import Insight, PlaybookEditor
from ace_bench.core.backbones import Backbone
from ace_bench.core.errors import RolloutFault
from ace_bench.core.method import Arena
from ace_bench.core.statistics import LEVEL, t_quantile
from ace_bench.core.types import Completion, Fault, Message, Step
from ace_bench.methods.base import CURATOR, REFLECTOR
from ace_bench.runners.build import RunSpec
from ace_bench.store.files import write_files
from tests.launching import launch

PAGE = Path("docs/fidelity.md")
START, END = "<!-- measured by make statistics -->", "<!-- end -->"
SEEDS = 3
BATCH, SMALL_BATCH = 16, 3
FAILING_REFLECTIONS, FAILING_ATTEMPTS = 0.1, 0.02
_SETTINGS = ("task=finer", "task.source=sample", "embedder=hashing", "mode.epochs=1", "mode.before=false")
_OFFICIAL = ("mode.select=final", "mode.shuffle=true", f"mode.batch_size={BATCH}")
"""A single epoch of 60 samples reaches no validation of theirs, so the last playbook is tested."""
_FAILURE = Fault(owner="model", kind="content_filter", message="a call that fails")


class InParts(CombeeCurator):
    """Deals the copies in parts as large as a batch."""

    def deal(self, insights: Sequence[Insight], seed: str) -> list[Sequence[Insight]]:
        copies = _shuffled_copies(insights, self.copies, seed)
        return [copies[start : start + BATCH] for start in range(0, len(copies), BATCH)]


class AlwaysCopied(CombeeCurator):
    """Also deals copies to a single group."""

    def deal(self, insights: Sequence[Insight], seed: str) -> list[Sequence[Insight]]:
        groups = super().deal(insights, seed)
        return [_shuffled_copies(insights, self.copies, seed)] if len(groups) == 1 else groups


class Unmerged(CombeeCurator):
    """Applies each proposal, without a merger."""

    in_turn = False

    def curate(self, editor: PlaybookEditor, insights: Sequence[Insight], step: Step, arena: Arena) -> None:
        editor.count_votes(*insights)
        before, taught = editor.playbook, [insight for insight in insights if insight.lessons]
        for group in self.deal(taught, f"{arena.seed}/combee/{step.index}") if taught else ():
            shown, lessons = editor.playbook if self.in_turn else before, join_lessons(group)
            delta = self._ask(CURATOR, group, shown, playbook=shown, step=step, arena=arena, lessons=lessons)
            editor.apply_delta(group, delta, self.limits)


class InTurn(Unmerged):
    """Shows each Curator the playbook that the one before has left."""

    in_turn = True


class LastTag(CombeeCurator):
    """Counts the last tag of a batch on each bullet, once."""

    def curate(self, editor: PlaybookEditor, insights: Sequence[Insight], step: Step, arena: Arena) -> None:
        last: dict[object, int] = {}
        for place, insight in enumerate(insights):
            last |= {getattr(vote, "id", vote): place for vote in insight.votes}
        votes = [{getattr(vote, "id", vote): vote for vote in insight.votes} for insight in insights]
        counted = [tuple(vote for name, vote in one.items() if last[name] == place) for place, one in enumerate(votes)]
        last_only = [changed(insight, votes=kept) for insight, kept in zip(insights, counted, strict=True)]
        super().curate(editor, last_only, step, arena)


class FailedLeftOut(CombeeCurator):
    """Takes neither tags nor lessons of a sample about which a call failed."""

    def curate(self, editor: PlaybookEditor, insights: Sequence[Insight], step: Step, arena: Arena) -> None:
        kept = [one for one in insights if not any(event["event"] == "fault" for event in one.events)]
        super().curate(editor, kept, step, arena)


class Undone(CombeeCurator):
    """Changes nothing where an attempt after the batch fails."""

    def curate(self, editor: PlaybookEditor, insights: Sequence[Insight], step: Step, arena: Arena) -> None:
        chance = random.Random(f"{arena.seed}/after/{step.index}")
        if all(chance.random() >= FAILING_ATTEMPTS for _ in insights):
            super().curate(editor, insights, step, arena)


class StepOfCopies(CombeeCurator):
    """Names the step in the Curator's prompt by the number of copies."""

    def _ask(self, *arguments: Any, step: Step, **options: Any) -> Any:
        counted = replace(step, index=step.samples_before + self.copies * BATCH - 1, total=step.samples)
        return super()._ask(*arguments, step=counted, **options)


class AllOfThem(InParts, LastTag, InTurn):
    """Takes all rules but those about small batches, failures and the step."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A Curator in the place of ours. ``fails`` makes a share of the Reflector's calls fail, of both sides."""

    curator: type[CombeeCurator] = CombeeCurator
    settings: tuple[str, ...] = (f"mode.batch_size={BATCH}",)
    fails: bool = False


_SMALL: tuple[str, ...] = (f"mode.batch_size={SMALL_BATCH}",)
OURS, THEIRS = Variant(), Variant(settings=("protocol=official", *_OFFICIAL))
VARIANTS: Mapping[str, tuple[Variant, Variant]] = {
    "copies for a Curator": (Variant(curator=InParts), OURS),
    "copies of a lesson": (Variant(curator=AlwaysCopied, settings=_SMALL), Variant(settings=_SMALL)),
    "Curators": (Variant(curator=InTurn), OURS),
    "merged": (Variant(curator=Unmerged), OURS),
    "helpful, helpful, harmful on a bullet": (Variant(curator=LastTag), OURS),
    "a sample about which a call fails": (Variant(curator=FailedLeftOut, fails=True), Variant(fails=True)),
    "a failure after the batch": (Variant(curator=Undone), OURS),
    "step in the Curator's prompt": (Variant(curator=StepOfCopies), OURS),
    "rows 1, 3, 4, 5": (Variant(curator=AllOfThem), OURS),
    "these, like bullets unmerged": (
        Variant(curator=AllOfThem, settings=(*OURS.settings, "method.refiner.when=never")), OURS,
    ),
    "`protocol=official`": (THEIRS, OURS),
}  # fmt: skip
"""The authors' rule and ours, by the first column of the page's table."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a run ended with: accuracy in percent, calls of the Curator and the merger, bullets."""

    accuracy: float
    calls: int
    bullets: int


def measure(variant: Variant, seed: int) -> Measured:
    """Run one variant with one seed."""

    def build(spec: RunSpec) -> RunSpec:
        if variant.curator is CombeeCurator:
            return spec
        method: Any = spec.method
        return replace(spec, method=replace(method, curator=variant.curator(**vars(method.curator))))

    wrap = partial(_Failing, seed=seed) if variant.fails else None
    with TemporaryDirectory() as folder:
        words = ("method=combee", *_SETTINGS, f"seed={seed}", *variant.settings)
        ran = launch(Path(folder), *words, spec=build, backbone=wrap)
        metrics = ran.metrics
        calls = metrics["calls"]["adapt"]
        return Measured(
            accuracy=metrics["headline"]["after"],
            calls=calls["curator"] + calls.get("merger", 0),
            bullets=metrics["context"]["items"],
        )


class _Failing:
    """Passes calls on, but a share of the Reflector's; which ones depends on the prompt and the seed."""

    def __init__(self, inner: Backbone, seed: int) -> None:
        self._inner, self._seed = inner, seed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def complete(self, messages: Sequence[Message], *, role: str, session: str, schema: Any = None) -> Completion:
        chance = random.Random(f"{self._seed}/{messages[-1].content}").random()
        if role == REFLECTOR and chance < FAILING_REFLECTIONS:
            raise RolloutFault(_FAILURE)
        return self._inner.complete(messages, role=role, session=session, schema=schema)


def measured_cells(pool: ProcessPoolExecutor, seeds: int = SEEDS) -> Mapping[str, str]:
    """Measure all variants; return the last cell of each row of the page's table."""
    sides = [*dict.fromkeys(side for pair in VARIANTS.values() for side in pair)]
    runs = [*pool.map(measure, *zip(*product(sides, range(seeds)), strict=True))]
    measured = {side: runs[place * seeds : (place + 1) * seeds] for place, side in enumerate(sides)}
    return {name: _cell(measured[theirs], measured[ours]) for name, (theirs, ours) in VARIANTS.items()}


def main() -> None:
    """Measure, and write the last column of the table in the page."""
    with ProcessPoolExecutor() as pool:
        cells = measured_cells(pool)
    before, _, remainder = PAGE.read_text(encoding="utf-8").partition(START)
    table, _, after = remainder.partition(END)
    rows = [line.split("|") for line in table.strip().splitlines()]
    lines = ["|".join([*row[:-2], cells.get(row[1], row[-2]), ""]) for row in rows]
    write_files({PAGE: "\n".join([f"{before}{START}", *lines, f"{END}{after}"])})
    Console(width=150).print(*lines, sep="\n")


def _cell(theirs: Sequence[Measured], ours: Sequence[Measured]) -> str:
    changes = np.array([one.accuracy - other.accuracy for one, other in zip(theirs, ours, strict=True)])
    reach = t_quantile(len(changes) - 1, LEVEL) * changes.std(ddof=1) / len(changes) ** 0.5
    change = f"{changes.mean():+.1f}±{reach:.1f}" if changes.any() else "0"
    return f"{change}, {_means(theirs, ours, 'calls')}, {_means(theirs, ours, 'bullets')}"


def _means(theirs: Sequence[Measured], ours: Sequence[Measured], name: str) -> str:
    """Show the mean of ours and, where it is another, the one under the authors' rule."""
    means = (f"{np.mean([getattr(run, name) for run in runs]):.0f}" for runs in (ours, theirs))
    return "→".join(dict.fromkeys(means))


def _shuffled_copies(insights: Sequence[Insight], times: int, seed: str) -> list[Insight]:
    copies = [insight for insight in insights for _ in range(times)]
    random.Random(seed).shuffle(copies)
    return copies


if __name__ == "__main__":
    main()
