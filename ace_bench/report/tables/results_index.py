"""The runs of a results folder by their conditions, and the experiments that they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders, options
from ace_bench.report.experiments import Experiments, Refusal, load_experiments, refuses_nothing
from ace_bench.report.matching import Runs
from ace_bench.report.overrides import ROLE_BACKBONE, Compose, fits, read_setting
from ace_bench.report.paper.tables import load_paper
from ace_bench.report.records import Found, find_runs
from ace_bench.report.tables.selecting import Selector
from ace_bench.report.tables.variants import Selection, kind_of


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which tables or figures to write; all if ``names`` is empty.

    The paper's numbers are shown beside comparable ones, and with ``with_paper`` beside all. Differences to them are
    shown for cells in the paper's setting, and with ``differences`` for all cells.
    """

    names: tuple[str, ...] = ()
    with_paper: bool = False
    differences: bool = False


ALL = Wanted()


@dataclass(frozen=True, kw_only=True)
class ResultsIndex:
    """All runs under ``results``; ``compose`` plans the experiments' runs, with ``extra`` overrides for all.

    ``refusal`` says which runs are left out of experiments that list methods; ``methods`` and ``tasks`` replace theirs.
    """

    results: Path
    compose: Compose
    extra: tuple[str, ...] = ()
    refusal: Refusal = refuses_nothing
    methods: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    @cached_property
    def found(self) -> Found:
        """All runs."""
        return find_runs(self.results)

    @cached_property
    def experiments(self) -> Experiments:
        """All experiments."""
        return load_experiments(load_paper()).narrowed(self.methods, self.tasks)

    @cached_property
    def selections(self) -> list[Selection]:
        """The runs by conditions; raises ``ConfigError`` if ``extra`` fits no run."""
        return self._selector.selections(self.found.runs)

    def empty_selection(self, backbone: str) -> Selection:
        """The conditions of a backbone without runs."""
        return Selection(self._selector.planned(backbone), Runs((), self.compose), self.compose, ())

    @cached_property
    def _selector(self) -> Selector:
        experiments = self.experiments
        plans = dict.fromkeys(
            run for name in experiments.by_name if name not in experiments.combined for run in experiments.runs(name)
        )
        # Composing a configuration takes 0.2 s, so lists of methods count only as far as they have runs.
        kinds = {(run.task, run.method, run.mode) for run in self.found.runs}
        plans |= dict.fromkeys(
            run for name in experiments.combined for run in experiments.runs(name) if kind_of(run) in kinds
        )
        return Selector(compose=self.compose, plans=tuple(plans), extra=self._checked)

    @cached_property
    def _checked(self) -> tuple[str, ...]:
        """``extra``; raises ``ConfigError`` if a setting fits no run."""
        named = {name: group for group in ("method", "task") for name in options(group, config_folders())}
        for setting in map(read_setting, self.extra):
            chosen = [f"{named[setting.only]}={setting.only}"] if setting.only in named else []
            try:
                self.compose([*chosen, setting.override])
            except ConfigError:
                group, *role = setting.path
                choice, of = (f"{ROLE_BACKBONE}roles.{role[0]}", "backbone") if group == "roles" else (group, group)
                others = (f"{choice}={name}" for name in options(of, config_folders()))
                if not any(fits(self.compose, [*chosen, option, setting.override]) for option in others):
                    raise
        return self.extra
