"""Finished runs for cells whose planned run does not exist: they differ from the plan in settings that can be named.

They are shown with a mark and these settings, and never compared. A run that differs in what a cell is about stays out
of it: another model, task or labels, real or simulated, real or sample data, a setting of the cell's own plan, or the
settings that make it another cell's run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ace_bench.core.encoding import digest_of_text
from ace_bench.core.identity import CONTEXT_FILES, identity_settings, settings_digest
from ace_bench.report.planned import Compose, PlannedRun, Settings, key_of, run_overrides
from ace_bench.report.records import RunSummary, latest_repetitions
from ace_report.conditions import Variant
from ace_report.matching import deviations, other_data
from ace_report.matching import settings_with_defaults as with_defaults

_MATTERS = ("roles", "backbone.model", "backbone.name", "backbone.quantization")
"""Settings, by how their paths start, with which a number means something else."""
_GROUPS = ("task", "method", "mode", "agent", "backbone")
_PAPER = "paper"

Earlier = Callable[[PlannedRun, int], RunSummary | None]
"""Returns the finished run of a plan and a seed, or the one that is shown in its place."""


@dataclass(frozen=True, kw_only=True)
class Similar:
    """Runs that are shown in a cell, one a seed, and in what they differ from its plan.

    ``refused`` says in what finished runs of the same task, method and mode differ that are another model's, of other
    data, or real where these are simulated; of those that may be shown, others than these.
    """

    runs: tuple[RunSummary, ...] = ()
    differs: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class SimilarRuns:
    """The finished runs of a results folder, by how they differ from plans."""

    def __init__(self, runs: Sequence[RunSummary], plans: Sequence[PlannedRun], compose: Compose) -> None:
        """``plans`` are those of the paper, each for a row of its own: no other row takes its run."""
        self._plans: dict[tuple[str, str, str], list[PlannedRun]] = {}
        for plan in plans:
            self._plans.setdefault(plan.kind, []).append(plan)
        self._compose = compose
        self._settings = {run.folder: with_defaults(run, compose) for run in runs if run.finished}
        found = (run for run in runs if run.finished)
        self._runs = latest_repetitions(found, lambda run: (settings_digest(self._settings[run.folder]), run.seed))

    def find(self, planned: PlannedRun, variant: Variant, earlier: Earlier) -> Similar:
        """Return the runs that differ least from a plan under the conditions of a variant."""
        groups: dict[tuple[str, ...], dict[int, RunSummary]] = {}
        refused: dict[str, None] = {}
        kind, known = planned.kind, dict[str, tuple[str, ...]]()
        for (digest, _), run in self._runs.items():
            if (run.task, run.method, run.mode) != kind:
                continue
            if digest not in known:
                known[digest] = tuple(self._differences(run, planned, variant))
            differs = known[digest]
            if reason := _other_kind(run, variant, differs):
                refused.setdefault(reason)
            elif differs and self._fits(run, planned, differs, earlier):
                groups.setdefault(differs, {})[run.seed] = run
        if not groups:
            return Similar(refused=tuple(refused))
        differs, by_seed = min(groups.items(), key=lambda group: (len(group[0]), -len(group[1]), group[0]))
        others = (", ".join(other) for other in groups if other != differs)
        return Similar(runs=tuple(by_seed[seed] for seed in sorted(by_seed)), differs=differs, refused=tuple(others))

    def _differences(self, run: RunSummary, planned: PlannedRun, variant: Variant) -> Iterator[str]:
        protocol = (f"protocol={run.protocol}",) if run.protocol != _PAPER else ()
        if not set(protocol) <= {*variant.overrides, *planned.overrides}:
            yield from protocol
        overrides = run_overrides(planned, (*variant.overrides, *protocol), self._compose)
        config = self._compose(overrides)
        yield from deviations(self._settings[run.folder], identity_settings(config), "")
        yield from other_data(run, overrides, config)

    def _fits(self, run: RunSummary, planned: PlannedRun, differs: Sequence[str], earlier: Earlier) -> bool:
        """Whether a run may stand in a cell: it differs in no setting of its plan, and is no other cell's run."""
        own = {key for key in map(key_of, planned.overrides) if key not in _GROUPS}
        if any(f"{key_of(one)}.".startswith(f"{key}.") for one in differs for key in ("task", "labels", *own)):
            return False
        given, usual = {_plain(one) for one in differs}, {_plain(one) for one in planned.overrides}
        others = ({_plain(one) for one in other.overrides} for other in self._plans.get(planned.kind, ()))
        if any(other - usual and other - usual <= given for other in others):
            return False
        return self._starts_as_planned(self._settings[run.folder], run.seed, planned, earlier)

    def _starts_as_planned(self, settings: Settings, seed: int, planned: PlannedRun, earlier: Earlier) -> bool:
        """Whether a run began with the contexts that its plan names: those of the runs shown for them."""
        needs = {need.setting: need for need in planned.needs}
        for group, name in CONTEXT_FILES:
            found, need = settings[group].get(name), needs.get(f"{group}.{name}")
            if need is None:
                if found is not None and group != "agent":
                    return False
                continue
            before = earlier(need.run, seed)
            path = None if before is None else before.context_file(need.context)
            if path is None or not path.is_file() or digest_of_text(path.read_text(encoding="utf-8")) != found:
                return False
        return True


def _other_kind(run: RunSummary, variant: Variant, differs: Sequence[str]) -> str:
    """Return why a run's numbers mean something else than a variant's, "" if they mean the same."""
    if run.simulated != variant.simulated:
        return "who answered: a stand-in" if run.simulated else "who answered: a real model"
    if variant.source and run.source != variant.source:
        return f"the data: {run.source}"
    return next((one for one in differs if key_of(one).startswith(_MATTERS)), "")


def _plain(override: str) -> str:
    """Return an override without quotes and blanks, as plans and runs may write it differently."""
    return override.replace('"', "").replace("'", "").replace(" ", "")
