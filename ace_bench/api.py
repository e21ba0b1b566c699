"""Runs and their results in Python: what a notebook imports from ``ace_bench``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ace_bench.contexts.loading import load, restore
from ace_bench.core.backbones import Backbone
from ace_bench.core.console import Console
from ace_bench.core.context import Context
from ace_bench.core.embedders import EmbedderSettings
from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.program import read_env_file
from ace_bench.core.resources import require
from ace_bench.core.terminal import shown
from ace_bench.playbook.playbook import Playbook
from ace_bench.report.choosing import with_settings
from ace_bench.report.differences import differences
from ace_bench.report.frames import Frames, load_frames
from ace_bench.report.histories import history, last_context
from ace_bench.report.planned import override_value
from ace_bench.report.records import RunSummary, check_comparable, find_runs, read_run
from ace_bench.report.statistics import Comparison, compare
from ace_bench.store.call_log import FILE as CALLS
from ace_bench.store.results import IDENTITY, read_object

if TYPE_CHECKING:
    import pandas as pd

    from ace_bench.runners.recorded_backbone import RecordedEmbedder

_TESTED = "tested"
_COSTS = ("usd.total", "tokens.total.in", "tokens.total.out", "cache.total.share")


@dataclass(frozen=True, kw_only=True)
class Run(RunSummary):
    """One run in its folder, finished or not.

    ``metrics`` is the content of ``metrics.json``, ``settings`` the whole configuration. ``value`` gives a single
    number (``"accuracy"``, ``"usd.total"``), ``None`` if it is unknown.
    """

    @property
    def score(self) -> float | None:
        """The task's main metric on the tested split after adaptation, in percent; ``None`` until it has finished."""
        return self.metrics["headline"]["after"] if self.finished else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of ``score``, in percent; ``None`` for fewer than two groups of samples."""
        bounds = self.metrics["headline"]["ci95"] if self.finished else None
        return None if bounds is None else (bounds[0], bounds[1])

    @property
    def context(self) -> Context:
        """The context that was tested, of an unfinished run the last one that it recorded; raises ``StoreError``."""
        return self._load_context(_TESTED) if self.finished else last_context(self.folder)[0]

    @property
    def contexts(self) -> Mapping[str, Context]:
        """All saved contexts by name: ``initial``, ``final``, ``best``, ``tested``; raises ``StoreError``."""
        return {path.stem: self._load_context(path.stem) for path in sorted((self.folder / "contexts").glob("*.json"))}

    @property
    def playbook(self) -> Playbook:
        """The ``context`` of a method that learns a playbook; raises ``DataError`` for other contexts."""
        context = self.context
        if not isinstance(context, Playbook):
            raise DataError(f"{self.folder}: method={self.method} learns a {context.kind}, not a playbook; use context")
        return context

    def steps(self) -> Iterator[Context]:
        """Yield the context before the first step of adaptation and after each one; raises ``StoreError``."""
        return history(self.folder)

    def frames(self, *, prompts: bool = False) -> Frames:
        """Return data frames of rollouts, steps and calls (extra ``analysis``); see ``load_frames``."""
        return load_frames(self.folder, prompts=prompts)

    def __str__(self) -> str:
        """Return the summary as the command line prints it, or the state of an unfinished run."""
        path = self.folder / "summary.txt"
        ended = self.finished and path.exists()
        return shown(path.read_text(encoding="utf-8", errors="replace") if ended else f"{self.folder}: {self.state}")

    def _load_context(self, name: str) -> Context:
        return restore(read_object(self.folder, f"contexts/{name}.json"))


@dataclass(frozen=True)
class Runs(Sequence[Run]):
    """Several runs. ``damaged`` says which folders could not be read, and why."""

    items: tuple[Run, ...]
    damaged: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        """Return one run, or some."""
        return Runs(self.items[index]) if isinstance(index, slice) else self.items[index]

    def __len__(self) -> int:
        """Count the runs."""
        return len(self.items)

    def where(self, *conditions: str) -> Runs:
        """Return the runs with all settings, such as ``"method=ace,base"`` and ``"refiner.threshold=0.9"``.

        Raises ``ConfigError`` if none is left, or a setting is unknown.
        """
        return Runs(tuple(with_settings(self.items, conditions)))

    def frame(self) -> pd.DataFrame:
        """Return a data frame (extra ``analysis``) with a row for each run.

        Columns: ``run``, a name that says how it differs from the others, each setting in which runs differ, ``state``,
        ``simulated``, ``score`` with its 95% interval (``low``, ``high``), ``n`` samples, ``before`` adaptation, sums
        of cost (``usd.total``, ``tokens.total.in``, ...), and ``folder``. Unknown values are missing.
        """
        require("Runs.frame", "pandas")
        import pandas as pd

        differing = differences(self.items)
        rows = []
        for index, run in enumerate(self.items):
            low, high = run.interval or (None, None)
            settings = {name: differing.values[index].get(path) for path, name in differing.names.items()}
            scores = {"score": run.score, "low": low, "high": high, "n": run.value("headline.n")}
            scores |= {"before": run.value("headline.before")}
            costs = {name: run.value(name) for name in _COSTS}
            state = {"state": run.state, "simulated": run.simulated}
            rows.append(
                {"run": differing.labels[index], **settings, **state, **scores, **costs, "folder": str(run.folder)}
            )
        return pd.DataFrame(rows)

    def frames(self, *, prompts: bool = False) -> Frames:
        """Return data frames of the rollouts, steps and calls of all runs; raises ``StoreError`` if there is none."""
        return load_frames([run.folder for run in self.items], prompts=prompts)


def run(  # noqa: PLR0913 - the settings that most calls name
    *,
    task: str = "finer",
    method: str = "ace",
    backbone: str | None = None,
    mode: str | None = None,
    labels: str | None = None,
    seed: int | None = None,
    limit: int | Mapping[str, int] | None = None,
    results: str | Path | None = None,
    overrides: Sequence[str] = (),
    progress: bool = True,
) -> Run:
    """Run one experiment, or continue it, or return it if it has finished, and pay for nothing twice.

    It is the same experiment in the same folder as ``ace-bench run`` with the same settings makes. ``None`` leaves a
    setting at its default. ``overrides`` are further settings as on the command line (``"method.max_bullets=40"``).
    ``limit`` is a number of samples of each split, or one by split. ``progress`` prints what the command prints.

    Raises ``ConfigError`` before anything is spent, ``Stopped`` where the same call continues the run (``Interrupted``
    after Ctrl-C or the stop button of a notebook, ``BudgetExhausted``, ``BackboneUnavailable``), and other subclasses
    of ``AceBenchError``, each with a message that names the fix.
    """
    from ace_bench.runners.composing import compose_run
    from ace_bench.runners.host import Host
    from ace_bench.runners.run import run as run_experiment
    from ace_bench.store.processes import command_of

    read_env_file()
    arguments: dict[str, object] = {
        "task": task,
        "method": method,
        "backbone": backbone,
        "mode": mode,
        "labels": labels,
        "seed": seed,
    }
    command = _words(arguments | {"limit": limit, "results": results}, overrides)
    config = compose_run(command)
    folders: list[Path] = []
    host = Host(
        console=Console(quiet=not progress, force_jupyter=False, emoji=False),
        command=command_of(command),
        owns_process=False,
        on_folder=folders.append,
    )
    run_experiment(config, host)
    if not folders:
        raise StoreError("dry_run=true makes no run; leave it out, or use the command line")
    return load_run(folders[0])


def check_runs(runs: Iterable[Mapping[str, Any]]) -> None:
    """Check several runs before the first is made, in seconds; each is a mapping of the arguments of ``run``.

    Data, rules between settings, packages, keys and results folders are looked at, and each endpoint gets one tiny
    call. Raises ``ConfigError`` that says each problem once, and how many runs have it.
    """
    from ace_bench.core.resources import config_folders
    from ace_bench.runners.checking import Candidate, RunChecks
    from ace_bench.runners.planning import Composer

    read_env_file()
    candidates = []
    for run in runs:
        arguments = {"task": "finer", "method": "ace", **run}
        overrides = arguments.pop("overrides", ())
        arguments.pop("progress", None)
        candidates.append(Candidate(overrides=tuple(_words(arguments, overrides))))
    RunChecks(Composer(config_folders())).check(candidates)


def _words(arguments: Mapping[str, object], overrides: Sequence[str]) -> list[str]:
    """Return settings as on the command line; ``None`` leaves one out."""
    values = {name: str(value) if isinstance(value, Path) else value for name, value in arguments.items()}
    return [*(f"{name}={override_value(value)}" for name, value in values.items() if value is not None), *overrides]


def open_backbone(
    name: str, *, folder: str | Path, settings: Sequence[str] = (), seed: int = 0
) -> AbstractContextManager[Backbone]:
    """Open a backbone by its name, as ``with open_backbone("vllm", folder="calls") as backbone``, outside of a run.

    Its calls are kept in ``folder``, so that none is paid for twice. ``settings`` are as on the command line. Raises
    ``ConfigError`` before the first call.
    """
    from ace_bench.runners.recorded_backbone import open_backbone as opened

    return opened(name, folder=Path(folder), settings=settings, seed=seed)


def open_embedder(
    url: str, model: str, *, folder: str | Path, key_env: str | None = None, usd_per_million: float | None = None
) -> AbstractContextManager[RecordedEmbedder]:
    """Open an endpoint of embeddings, as ``with open_embedder(...) as embedder``, outside of a run.

    Its calls are kept in ``folder``, one for each model. Raises ``ConfigError`` before the first call.
    """
    from ace_bench.runners.recorded_backbone import open_embedder as opened

    settings = EmbedderSettings(url=url, model=model, key_env=key_env, usd_per_million=usd_per_million)
    return opened(settings, folder=Path(folder))


def load_run(folder: str | Path) -> Run:
    """Read one run folder, finished or not; raises ``StoreError``."""
    path = Path(folder)
    if not any((path / name).exists() for name in (IDENTITY, CALLS)):
        problem = "holds no run" if path.is_dir() else "is not a folder"
        raise StoreError(
            f"{path} {problem}: name the folder that a run prints at its end, such as results/main/.../seed0, or use "
            "load_runs for all below a folder"
        )
    return _as_run(read_run(path))


def load_runs(results: str | Path = "results", *conditions: str) -> Runs:
    """Read all runs below a folder that have the settings (``Runs.where``), also runs that have not finished.

    Raises ``ConfigError`` if there is none.
    """
    search = find_runs(Path(results))
    runs = Runs(
        tuple(map(_as_run, search.runs)), tuple(folder.reason for folder in (*search.damaged, *search.problems))
    )
    if not runs.items:
        raise StoreError(f"there are no runs in {results}; make some, or name their folder")
    return Runs(runs.where(*conditions).items, runs.damaged)


def compare_runs(ours: Run | str | Path, base: Run | str | Path) -> Comparison:
    """Compare two finished runs, or their folders, by their main metric, paired by sample: difference, interval, p.

    Raises ``DataError`` if they have not finished, tested other samples or differ in metric, kind of data or kind of
    model (simulated or not), and ``StoreError`` if a folder holds no run.
    """
    ours, base = (run if isinstance(run, Run) else load_run(run) for run in (ours, base))
    if ours.finished and base.finished:
        check_comparable(ours, base)
    points = [run.points(run.metrics["headline"]["metric"]) if run.finished else None for run in (ours, base)]
    if points[0] is None or points[1] is None:
        raise DataError("one of the two runs has no scores by sample; compare finished runs of one task")
    return compare({ours.seed: points[0]}, {base.seed: points[1]})


def load_context(path: str | Path) -> Context:
    """Load a saved context: a JSON file of a run's ``contexts/``, or a playbook as text; raises ``DataError``."""
    return load(path)


def _as_run(summary: RunSummary) -> Run:
    return Run(**{field.name: getattr(summary, field.name) for field in fields(RunSummary)})
