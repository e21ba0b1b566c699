"""The conditions of runs. A table or figure never mixes runs of different conditions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ace_bench.core.digest import digest_of
from ace_bench.core.identity import identity_settings
from ace_bench.core.program import command_line
from ace_bench.report.experiments import PlannedRun
from ace_bench.report.matching import Runs, deviations, settings_with_defaults
from ace_bench.report.overrides import Compose, run_overrides
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.cells import Measures
from ace_bench.report.tables.grids import marks_of

_PATH, _OTHER = re.compile(r"(?:\w+\.)+(?=\w+=)"), re.compile(r"[^\w.-]+")
_LONGEST = 180
"""Maximum length of the conditions in a file name."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Conditions that runs share: overrides added to their plan, and whether they are simulated or use sample data.

    ``name`` is the model's; ``changes`` are those overrides that can change an answer, as shown in titles and file
    names. ``source`` is ``real`` or ``sample``, or "" without runs.
    """

    backbone: str
    name: str
    overrides: tuple[str, ...]
    changes: tuple[str, ...] = ()
    simulated: bool = False
    source: str = ""

    @property
    def comparable(self) -> bool:
        """Whether its numbers are comparable with published ones."""
        return not self.simulated and self.source != "sample"

    @property
    def marks(self) -> tuple[str, ...]:
        """Why its numbers are not comparable with published ones."""
        reasons = {"simulated": self.simulated, "sample data": self.source == "sample"}
        return tuple(mark for mark, holds in reasons.items() if holds)

    @property
    def label(self) -> str:
        """The text for titles, such as ``embedded, limit=40 [simulated, sample data: ...]``."""
        settings = ", ".join((self.name, *self.changes))
        return f"{settings} {marks_of(simulated=self.simulated, source=self.source)}".rstrip()

    @property
    def slug(self) -> str:
        """The text for file names, with the last part of each setting's key."""
        changes = (_PATH.sub("", part) for part in self.changes)
        whole = "-".join(_OTHER.sub("_", part).strip("_") for part in (self.name, *changes, *self.marks))
        return whole if len(whole) <= _LONGEST else f"{whole[:_LONGEST]}-{digest_of(whole)[:8]}"


class Selection:
    """The runs of one variant, by plan."""

    def __init__(self, variant: Variant, runs: Runs, compose: Compose, members: Sequence[RunSummary]) -> None:
        """``runs`` may include other variants' runs; ``members`` are those of this one."""
        self.variant = variant
        self.members = members
        self.seeds = sorted({run.seed for run in members}) or [0]
        self._kinds = {(run.task, run.method, run.mode) for run in members}
        self.measures = Measures(self.find)
        self._runs = runs
        self._compose = compose
        self._departures: dict[tuple[PlannedRun, str], tuple[str, ...]] = {}

    def find(self, planned: PlannedRun) -> list[RunSummary]:
        """Return the planned run for each seed of the variant, finished or not."""
        # Composing a configuration takes 0.2 s, so skip kinds of runs that do not exist.
        if kind_of(planned) not in self._kinds:
            return []
        found = (self._runs.find(planned, seed=seed, extra=self.variant.overrides) for seed in self.seeds)
        return [run for run in found if run is not None]

    def finished(self, planned: PlannedRun) -> list[RunSummary]:
        """Return the planned run for each seed that has finished."""
        return [run for run in self.find(planned) if run.finished]

    def overrides(self, planned: PlannedRun) -> list[str]:
        """Return the overrides of a plan's runs, without seed and contexts of other runs."""
        return run_overrides(planned, self.variant.overrides, self._compose)

    def deviations(self, planned: PlannedRun, model: str) -> tuple[str, ...]:
        """Return the settings of a plan's runs that differ from the paper's, whose backbone is ``model``."""
        key = (planned, model)
        if key not in self._departures:
            paper = self._planned(planned, [f"backbone={model}"])
            made = [settings_with_defaults(run, self._compose) for run in self.finished(planned)]
            made = made or [self._planned(planned, self.variant.overrides)]
            found = (deviations(settings, paper, self.variant.source) for settings in made)
            self._departures[key] = tuple(dict.fromkeys(chain.from_iterable(found)))
        return self._departures[key]

    def _planned(self, planned: PlannedRun, extra: Sequence[str]) -> Mapping[str, Any]:
        return identity_settings(self._compose(run_overrides(planned, extra, self._compose)))

    def missing(self, planned: PlannedRun, results: Path) -> Iterator[str]:
        """Yield the commands for the missing seeds of a planned run."""
        done = {run.seed for run in self.finished(planned)}
        settings = self.variant.overrides
        for seed in self.seeds:
            if seed not in done:
                known = self._runs.overrides(planned, seed=seed, extra=settings)
                place = [] if results == Path("results") else [f"results={results}"]
                waiting = "" if known else "".join(
                    f"  # {need.setting}=FILE names contexts/{need.context}.json of the run it needs, listed before"
                    for need in planned.needs
                )  # fmt: skip
                files = [f"{need.setting}=FILE" for need in planned.needs]
                words = known or [*run_overrides(planned, settings, self._compose), *files]
                yield f"{command_line('run')} {shlex.join([*words, f'seed={seed}', *place])}{waiting}"


def kind_of(planned: PlannedRun) -> tuple[str, str, str]:
    """Return task, method and mode of a planned run."""
    chosen = dict(override.split("=", 1) for override in planned.overrides)
    return chosen["task"], chosen["method"], chosen["mode"]
