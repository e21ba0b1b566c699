"""Planned runs of a check: their settings, the files that some need from others, and what they will cost."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from ace_bench.api import Run, load_run, run
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.core.measurement import Value
from ace_bench.core.statistics import holm
from ace_bench.playbook.playbook import Playbook
from ace_bench.report.statistics import Comparison, Seeds
from ace_bench.runners.build import assemble
from ace_bench.runners.composing import compose_run
from ace_bench.runners.identifying import IdentifiedRun, identify
from ace_bench.runners.rehearsal import rehearse
from ace_bench.runners.settings import decode
from ace_bench.store.call_log import Account
from ace_bench.store.files import write_files
from ace_bench.store.results import METRICS

Overrides = Mapping[str, str]
"""Settings of a run by key, as on a command line."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a table: its cells, without the p-value that ends it; ``None`` where nothing is tested."""

    cells: tuple[Value, ...]
    p: float | None = None


def parse_overrides(overrides: Sequence[str]) -> dict[str, str]:
    """Return ``KEY=VALUE`` overrides by key; raises ``ConfigError``."""
    for override in overrides:
        if "=" not in override:
            raise ConfigError(f"{override} is not a setting: write KEY=VALUE, such as task=finer")
    return {key: value for key, _, value in (override.partition("=") for override in overrides)}


def without(overrides: Overrides, *groups: str) -> dict[str, str]:
    """Return the overrides that set nothing of these groups."""
    return {key: value for key, value in overrides.items() if key.lstrip("+~").split(".")[0] not in groups}


def move_overrides(overrides: Overrides, changes: Overrides) -> tuple[dict[str, str], str]:
    """Return the overrides of a run on another task or backbone, and a sentence about those that were left out, or "".

    Settings of the former task or backbone do not fit the new one, but every task has a ``source``.
    """
    groups = {"task", "backbone"} & changes.keys()
    of_target = overrides.keys() - without(overrides, *groups).keys() - {"task.source"}
    moved = {
        "task": overrides["task"],
        **{key: value for key, value in overrides.items() if key not in of_target},
        **changes,
    }
    dropped = ", ".join(f"{key}={value}" for key, value in overrides.items() if key not in moved)
    target = " ".join(f"{key}={value}" for key, value in changes.items())
    return moved, f" Not used with {target}, which has settings of its own: {dropped}." if dropped else ""


def find_run(overrides: Overrides) -> IdentifiedRun:
    """Return the run that these overrides mean; raises ``ConfigError``."""
    return identify(decode(compose_run(_arguments(overrides))))


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for: the settings of a run, its seeds, and the options of the check."""

    overrides: Overrides
    seeds: Sequence[int]
    options: Mapping[str, Any]

    @classmethod
    def read(cls, overrides: Sequence[str], options: Mapping[str, Any]) -> Request:
        """Read ``KEY=VALUE`` overrides; ``seed=0,1,2`` names several seeds. Raises ``ConfigError``."""
        parsed = parse_overrides(overrides)
        seeds = parsed.pop("seed", "0,1,2").split(",")
        if not all(seed.isdecimal() for seed in seeds):
            raise ConfigError(f"seed={','.join(seeds)} must be whole numbers, such as seed=0,1,2")
        parsed = {"task": "finer", "method": "ace", "name": "validity", **parsed}
        return cls(overrides=parsed, seeds=[*map(int, dict.fromkeys(seeds))], options=options)

    def having(self, seed: int, **changes: str) -> dict[str, str]:
        """Return the overrides of a run with this seed and other settings."""
        return {**self.overrides, "seed": str(seed), **changes}

    def playbook_runs(self, overrides: Overrides) -> list[PlannedRun]:
        """Plan a run a seed that learns a playbook; raises ``ConfigError`` for a method that learns something else."""
        planned = [PlannedRun(overrides={**overrides, "seed": str(seed)}) for seed in self.seeds]
        method = find_run(planned[0].overrides).parts.method.build()
        kind = get_type_hints(type(method).start)["return"]
        if isinstance(kind, type) and not issubclass(Playbook, kind):
            raise ConfigError(
                f"method={overrides['method']} learns no playbook: choose one that does, such as method=ace"
            )
        return planned


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run of a check. The ``sources`` run before it, and ``derive`` returns the overrides that follow from them.

    ``derived`` says what follows.
    """

    overrides: Overrides
    sources: tuple[PlannedRun, ...] = ()
    derive: Callable[[Sequence[Run]], Overrides] | None = None
    derived: str = "what the runs above left"

    @property
    def command(self) -> str:
        """The run as a command to show; files that do not exist yet have no path."""
        command = f"ace-bench run {shlex.join(_arguments(self.overrides))}"
        return f"{command} with {self.derived}" if self.derive else command


Make = Callable[[PlannedRun], Run]


class Study:
    """A check: all its runs, each after its sources, and the rows that they give; its docstring heads the table."""

    columns: tuple[str, ...]
    note: str
    runs: Sequence[PlannedRun]

    @cached_property
    def gains(self) -> list[Comparison]:
        """The gains that have an interval; filled by ``rows``."""
        return []

    @cached_property
    def wide_scores(self) -> list[Sequence[str]]:
        """Why each interval of a score is wider than 95% needs; filled by ``rows``."""
        return []

    def rows(self, make: Make) -> Iterator[Row]:
        """Make the runs and yield the rows; raises ``AceBenchError``."""
        raise NotImplementedError

    def corrected_rows(self, make: Make) -> list[Row]:
        """Return the rows with their p-values corrected as one family, by Holm's method."""
        rows = [*self.rows(make)]
        p_values = iter(holm([row.p for row in rows if row.p is not None]))
        return [row if row.p is None else replace(row, p=next(p_values)) for row in rows]

    def verdict(self, rows: Sequence[Row]) -> Iterable[str]:
        """Say in a sentence or two what the corrected rows show."""
        del rows
        return ()


def fixed_run(overrides: Overrides, method: str) -> PlannedRun:
    """Plan a run of a method that learns nothing."""
    return PlannedRun(overrides={**without(overrides, "method", "protocol"), "method": method})


def frozen_run(
    overrides: Overrides, source: PlannedRun, change: Callable[[Playbook], Playbook] = lambda book: book
) -> PlannedRun:
    """Plan the evaluation of a playbook made from another run's playbook."""
    planned = fixed_run(overrides, "frozen")

    def derive(runs: Sequence[Run]) -> Overrides:
        record = change(runs[0].playbook).dump()
        return {"method.context": str(keep(planned.overrides, msgspec.json.encode(record).decode(), "json"))}

    return replace(planned, sources=(source,), derive=derive)


def keep(overrides: Overrides, text: str, suffix: str) -> Path:
    """Write a file beside the runs, named by its content, and return its path."""
    folder = Path(overrides.get("results", "results")) / overrides["name"] / "files"
    path = folder.resolve() / f"{digest_of(text)[:12]}.{suffix}"
    if not path.exists():
        write_files({path: text})
    return path


class Laboratory:
    """Makes planned runs, each once; a run that is finished costs nothing."""

    def __init__(self, *, say: Callable[[str], object]) -> None:
        self._say = say

    def make(self, planned: PlannedRun) -> Run:
        """Run, continue or load it; raises ``AceBenchError``."""
        overrides = self._all_overrides(planned)
        if (finished := find_run(overrides).folder / METRICS).exists():
            return load_run(finished.parent)
        self._say(PlannedRun(overrides=overrides).command)
        task, method = overrides.pop("task"), overrides.pop("method")
        return run(task=task, method=method, overrides=_arguments(overrides), progress=False)

    def cost(self, planned: PlannedRun) -> tuple[Account, Account, Account]:
        """Return its low, typical and high cost; a finished run costs nothing.

        While files of other runs are missing, it estimates an evaluation with an empty playbook instead.
        """
        ready = all(map(self._is_finished, planned.sources))
        if ready and self._is_finished(planned):
            return Account(), Account(), Account()
        identified = find_run(self._all_overrides(planned) if ready else {**planned.overrides, "method": "ace_empty"})
        estimate = rehearse(assemble(identified))
        return estimate.low, estimate.typical, estimate.high

    def _is_finished(self, planned: PlannedRun) -> bool:
        sources = all(map(self._is_finished, planned.sources))
        return sources and (find_run(self._all_overrides(planned)).folder / METRICS).exists()

    def _all_overrides(self, planned: PlannedRun) -> dict[str, str]:
        derived = planned.derive([self.make(source) for source in planned.sources]) if planned.derive else {}
        return {**planned.overrides, **derived}


def _arguments(overrides: Overrides) -> list[str]:
    return [f"{key}={value}" for key, value in overrides.items()]


def scores_of(runs: Sequence[PlannedRun], make: Make) -> Seeds:
    """Return the scores of runs by seed and sample. Raises ``DataError`` if the metric is not a mean over samples."""
    seeds = {}
    for finished in map(make, runs):
        points = finished.points(metric := finished.metrics["headline"]["metric"])
        if points is None:
            raise DataError(f"{finished.folder}: {metric} is not a mean over samples, so it has no interval")
        seeds[finished.seed] = points
    return seeds
