"""What tables and figures are made from: the runs of a results folder, by conditions, and the experiments they fill."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders, options
from ace_bench.report.experiments import Experiments, load_experiments
from ace_bench.report.matching import Runs
from ace_bench.report.overrides import Compose, fits, read_setting
from ace_bench.report.paper.tables import load_paper
from ace_bench.report.records import Found, find_runs
from ace_bench.report.tables.selecting import Selector
from ace_bench.report.tables.variants import Selection


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which tables or figures to write, all without ``names``.

    The paper's numbers stand beside comparable ones, and with ``with_paper`` beside all. Differences to them are those
    of cells in the paper's setting, and with ``differences`` of all cells.
    """

    names: tuple[str, ...] = ()
    with_paper: bool = False
    differences: bool = False


ALL = Wanted()


@dataclass(frozen=True, kw_only=True)
class ResultsIndex:
    """All runs under ``results``; ``compose`` plans the experiments' runs, ``extra`` overrides all of them."""

    results: Path
    compose: Compose
    extra: tuple[str, ...] = ()

    @cached_property
    def found(self) -> Found:
        """All runs."""
        return find_runs(self.results)

    @cached_property
    def experiments(self) -> Experiments:
        """What they may be runs of."""
        return load_experiments(load_paper())

    @cached_property
    def selections(self) -> list[Selection]:
        """The runs by conditions; raises ``ConfigError`` where ``extra`` does not fit."""
        return self._selector.selections(self.found.runs)

    def nothing(self, backbone: str) -> Selection:
        """What would be the runs of a backbone that has none."""
        return Selection(self._selector.planned(backbone), Runs((), self.compose), self.compose, ())

    @cached_property
    def _selector(self) -> Selector:
        plans = dict.fromkeys(run for name in self.experiments.by_name for run in self.experiments.runs(name))
        return Selector(compose=self.compose, plans=tuple(plans), extra=self._checked)

    @cached_property
    def _checked(self) -> tuple[str, ...]:
        """``extra``, if each of it fits some run: what fits none is a mistake."""
        for setting in map(read_setting, self.extra):
            chosen = [f"method={setting.method}"] if setting.method else []
            try:
                self.compose([*chosen, setting.override])
            except ConfigError:
                group = setting.path[0]
                others = (f"{group}={name}" for name in options(group, config_folders()))
                if not any(fits(self.compose, [*chosen, option, setting.override]) for option in others):
                    raise
        return self.extra
