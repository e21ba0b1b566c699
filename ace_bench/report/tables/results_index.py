"""The runs of a results folder by their conditions, and the experiments that they belong to."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Literal

from ace_bench.core.errors import ConfigError
from ace_bench.core.program import command_line
from ace_bench.core.resources import config_folders, options
from ace_bench.report.conditions import Selector, Variant
from ace_bench.report.configurations import Configurations
from ace_bench.report.experiments import (
    Draws,
    Experiments,
    Refusal,
    draws_always,
    load_experiments,
    refuses_nothing,
    with_needs,
)
from ace_bench.report.matching import ModelNames, Runs, Similar, SimilarRuns, deviations
from ace_bench.report.narrowing import choice_words
from ace_bench.report.planned import ROLE_BACKBONE, Compose, PlannedRun, Settings, fits, read_setting
from ace_bench.report.records import Found, RunSummary, find_runs
from ace_bench.report.tables.cells import Measured, Place, measure
from ace_bench.report.tables.unfinished import Planned

Width = Literal["", "column", "page"]
"""One of two columns of a paper, or the whole page."""
Style = Literal["screen", "paper", "paper_times"]
"""Figures with titles for a screen, or without for a paper in Computer Modern or Times."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which tables or figures to write, or all if ``names`` is empty.

    The paper's numbers are shown beside comparable ones, or as ``paper`` says. Differences to them are shown for cells
    in the paper's setting, and with ``differences`` for all cells.

    ``formats`` are suffixes of tables' files. ``width`` is for LaTeX tables and for figures of a paper ("" is what
    fits), and ``standalone`` makes whole documents of tables. ``style`` is the style of figures. ``looks`` is how often
    the results are looked at in all, while runs are added: tests in tables are corrected for it.
    """

    names: tuple[str, ...] = ()
    paper: bool | None = None
    differences: bool = False
    formats: tuple[str, ...] = ("md", "tex", "csv")
    width: Width = ""
    standalone: bool = False
    style: Style = "screen"
    looks: int = 1

    def shows_paper(self, *, comparable: bool) -> bool:
        """Whether the paper's numbers stand beside ours, which are ``comparable`` with published ones or not."""
        return self.differences or (comparable if self.paper is None else self.paper)


ALL = Wanted()


class Selection:
    """The runs of one variant, by plan."""

    def __init__(
        self,
        index: ResultsIndex,
        variant: Variant,
        runs: Runs,
        members: Sequence[RunSummary] = (),
        alike: Sequence[RunSummary] = (),
    ) -> None:
        """``runs`` may include other variants' runs. ``members`` belong to this one, and ``alike`` could fill cells."""
        self.variant, self.members = variant, members
        self.seeds = sorted({run.seed for run in members}) or [0]
        self._kinds = {(run.task, run.method, run.mode) for run in (*members, *alike)}
        self._runs, self._index, self._configurations = runs, index, index.configurations
        self._cells: dict[tuple[PlannedRun, str], Measured] = {}
        self.deviations = cache(self._deviations)
        self.similar = cache(self._find_similar)

    @property
    def experiments(self) -> Experiments:
        """All experiments."""
        return self._index.experiments

    @cached_property
    def model(self) -> str:
        """The name of the model, where the option of the backbone has one."""
        name, option = self.variant.name, self.variant.overrides[0]
        return (
            name if name != self.variant.backbone else self._configurations([option])["backbone"].get("model") or name
        )

    @cached_property
    def preset(self) -> str:
        """The preset of the paper's model that answered, by any of its names, or "" for another model."""
        return self._index.names.preset_of(self.model)

    def find(self, planned: PlannedRun) -> list[RunSummary]:
        """Return the planned run for each seed of the variant, finished or not."""
        # Composing a configuration takes 0.2 s, so skip kinds of runs that do not exist.
        if planned.kind not in self._kinds:
            return []
        runs = (self._runs.find(planned, seed=seed, extra=self.variant.overrides) for seed in self.seeds)
        return [run for run in runs if run is not None]

    def finished(self, planned: PlannedRun) -> list[RunSummary]:
        """Return the planned run for each seed that has finished."""
        return [run for run in self.find(planned) if run.finished]

    def measure(self, place: Place, planned: PlannedRun, metric: str) -> Measured:
        """Measure a metric of a planned run for a cell. Several tables show the same cells."""
        key = (planned, metric)
        if key not in self._cells:
            runs = self.find(planned)
            self._cells[key] = measure(place, planned, metric, runs, self.equal_seeds(planned, runs) if runs else 0)
        return replace(self._cells[key], place=place)

    def equal_seeds(self, planned: PlannedRun, runs: Collection[RunSummary]) -> int:
        """Return the number of seeds if there are several and a planned run draws nothing by its own, else 0.

        Where ``runs`` of it say that they drew nothing, nothing has to be composed to know it.
        """
        if len(self.seeds) <= 1:
            return 0
        drew_nothing = bool(runs) and not planned.needs and not any(run.seeded for run in runs)
        draws = not drew_nothing and self._index.draws_for(planned, self.variant.overrides)
        return 0 if draws else len(self.seeds)

    def _find_similar(self, planned: PlannedRun) -> Similar:
        """Return the runs that are shown in place of a planned run that does not exist."""
        return self._index.similar.find(planned, self.variant, self._shown)

    def _shown(self, planned: PlannedRun, seed: int) -> RunSummary | None:
        runs = self.finished(planned) or self.similar(planned).runs
        return next((run for run in runs if run.seed == seed), None)

    def overrides(self, planned: PlannedRun) -> list[str]:
        """Return the overrides of a plan's runs, without seed and contexts of other runs."""
        return self._configurations.overrides(planned, self.variant.overrides)

    def _deviations(self, planned: PlannedRun, model: str) -> tuple[str, ...]:
        """Return the settings of a plan's runs that differ from the paper's, whose backbone is ``model``."""
        paper = self._planned_settings(planned, [f"backbone={model}"])
        runs = self.finished(planned) or self.similar(planned).runs
        run_settings = [*map(self._configurations.of_run, runs)]
        run_settings = run_settings or [self._planned_settings(planned, self.variant.overrides)]
        deviating = (deviations(settings, paper, self.variant.source, self._index.names) for settings in run_settings)
        return tuple(dict.fromkeys(chain.from_iterable(deviating)))

    def _planned_settings(self, planned: PlannedRun, extra: Sequence[str]) -> Settings:
        return self._configurations.identity(self._configurations.overrides(planned, extra))

    def command_of_all(self, name: str, results: Path) -> str:
        """Return the command that makes all runs of an experiment, or of its chosen part, in these conditions."""
        kind = "experiment" if name in self.experiments.others else "table"
        words = [f"{kind}={name}", *choice_words(self.experiments.chosen), f"seed={','.join(map(str, self.seeds))}"]
        words += [*self.variant.overrides, *_in_folder(results)]
        return f"{command_line('reproduce')} {shlex.join(words)}"

    def missing(self, planned: PlannedRun, results: Path) -> Iterator[Planned]:
        """Yield the seeds of a planned run that have not finished, each with its command."""
        runs = {run.seed: run for run in self.find(planned)}
        done = {seed for seed, run in runs.items() if run.finished}
        settings = self.variant.overrides
        if len(done) == len(self.seeds):
            return
        for seed in self.seeds[: not done] if self.equal_seeds(planned, runs.values()) else self.seeds:
            if seed not in done:
                overrides = self._runs.overrides(planned, seed=seed, extra=settings)
                waiting = "" if overrides else "".join(
                    f"  # {need.setting}=FILE names contexts/{need.context}.json of the run it needs, listed before"
                    for need in planned.needs
                )  # fmt: skip
                files = [f"{need.setting}=FILE" for need in planned.needs]
                arguments = [
                    *(overrides or [*self._configurations.overrides(planned, settings), *files]),
                    f"seed={seed}",
                ]
                command = f"{command_line('run')} {shlex.join([*arguments, *_in_folder(results)])}{waiting}"
                yield Planned(plan=planned, seed=seed, run=runs.get(seed), command=command)


def _in_folder(results: Path) -> list[str]:
    return [] if results == Path("results") else [f"results={results}"]


@dataclass(frozen=True, kw_only=True)
class ResultsIndex:
    """All runs under ``results``. ``compose`` plans the experiments' runs, with ``extra`` overrides for all.

    ``refusal`` says which runs are left out of experiments that list methods. ``draws`` says which runs draw something
    by their seed.
    """

    results: Path
    compose: Compose
    extra: tuple[str, ...] = ()
    refusal: Refusal = refuses_nothing
    draws: Draws = draws_always
    experiments: Experiments = field(default_factory=load_experiments, repr=False)

    @cached_property
    def configurations(self) -> Configurations:
        """Configurations of planned runs, and settings of finished ones."""
        return Configurations(self.compose)

    @cached_property
    def found(self) -> Found:
        """All runs."""
        return find_runs(self.results)

    @cached_property
    def names(self) -> ModelNames:
        """The names of the models that the paper's tables are about."""
        return ModelNames(sorted(self.experiments.models - {""}), self.compose)

    @cached_property
    def selections(self) -> list[Selection]:
        """The runs by conditions. Raises ``ConfigError`` if ``extra`` fits no run."""
        variants = self._selector.variants(self.found.runs)
        kinds = defaultdict[tuple[bool, str], list[RunSummary]](list)
        alike = defaultdict[tuple[str, ...], list[RunSummary]](list)
        for variant, members in variants.items():
            kinds[variant.simulated, variant.source] += members
            alike[variant.for_all] += members
        runs_by_kind = {kind: Runs(alike, self.configurations) for kind, alike in kinds.items()}
        return [
            Selection(self, variant, runs_by_kind[variant.simulated, variant.source], members, alike[variant.for_all])
            for variant, members in variants.items()
        ]

    def empty_selection(self, backbone: str) -> Selection:
        """Return a selection without runs, under the conditions of a backbone."""
        return Selection(self, self._selector.planned(backbone), Runs((), self.configurations))

    def draws_for(self, planned: PlannedRun, extra: Sequence[str]) -> bool:
        """Whether a planned run, or one that it needs, draws something by its seed."""
        runs = with_needs(planned)
        return any(self.draws(self.configurations.overrides(run, extra)) for run in runs)

    @cached_property
    def similar(self) -> SimilarRuns:
        """The chosen runs, for cells whose planned run does not exist."""
        runs = [run for selection in self.selections for run in selection.members]
        names = (name for name in self.experiments.by_name if name not in self.experiments.others)
        return SimilarRuns(runs, self.experiments.plans(names), self.configurations, self.names)

    @cached_property
    def _selector(self) -> Selector:
        experiments = self.experiments
        names = [name for name in experiments.by_name if name not in experiments.combined]
        plans = dict.fromkeys(experiments.plans(names))
        # Composing a configuration takes 0.2 s, so only methods of a list that have runs count.
        kinds = {(run.task, run.method, run.mode) for run in self.found.runs}
        plans |= dict.fromkeys(run for run in experiments.plans(experiments.combined) if run.kind in kinds)
        return Selector(configurations=self.configurations, plans=tuple(plans), extra=self._checked)

    @cached_property
    def _checked(self) -> tuple[str, ...]:
        """Return ``extra``. Raises ``ConfigError`` if a setting fits no run."""
        groups = {name: group for group in ("method", "task") for name in options(group, config_folders())}
        for setting in map(read_setting, self.extra):
            chosen = [f"{groups[setting.only]}={setting.only}"] if setting.only in groups else []
            try:
                self.compose([*chosen, setting.override])
            except ConfigError:
                group, *role = setting.path
                choice, config_group = (
                    (f"{ROLE_BACKBONE}roles.{role[0]}", "backbone") if group == "roles" else (group, group)
                )
                other_options = (f"{choice}={name}" for name in options(config_group, config_folders()))
                if not any(fits(self.compose, [*chosen, option, setting.override]) for option in other_options):
                    raise
        return self.extra
