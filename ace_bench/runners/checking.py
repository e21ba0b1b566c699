"""Checks many runs before the first of them starts, so that a mistake is reported once and not by each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ace_bench.core.backbones import Backbone, Served
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import AceBenchError, ConfigError
from ace_bench.core.method import Adaptation
from ace_bench.runners.build import assemble
from ace_bench.runners.drawing import planned_draws_by_seed
from ace_bench.runners.identifying import check_folder, identify
from ace_bench.runners.planning import Composer
from ace_bench.runners.preflight import check_beginning, check_endpoint, check_keys, check_results, distinct_backbones
from ace_bench.runners.settings import RunSettings, decode, decode_parts
from ace_bench.store.code import CodeReader
from ace_bench.store.results import METRICS


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A run to check, by its overrides; ``waits`` says that it needs a context which another run has yet to make."""

    overrides: tuple[str, ...]
    waits: bool = False


@dataclass(frozen=True, kw_only=True)
class _Built:
    """A run that is built and not started: why it is refused, or its folder and the backbones that it calls."""

    refusal: str = ""
    problem: str = ""
    """The refusal, or that data is missing."""
    folder: Path | None = None
    adaptation: Adaptation = "steps"
    notes: tuple[str, ...] = ()
    backbones: Mapping[str, Backbone] = field(default_factory=dict)


class RunChecks:
    """Builds runs and begins them in a temporary folder, as ``ace-bench run`` does before its first call."""

    def __init__(self, compose: Composer) -> None:
        self._compose = compose
        self._decode = cache(self._decoded)
        self._build = cache(self._built)
        self._draws = cache(self._is_drawn)
        self._drawn: dict[str, bool] = {}
        self._code = CodeReader()

    def draws(self, overrides: Sequence[str]) -> bool:
        """Whether a run with these overrides draws anything by its seed. A run that cannot be built counts as one."""
        return self._draws(tuple(overrides))

    def _decoded(self, overrides: tuple[str, ...]) -> RunSettings:
        return decode(self._compose.run(overrides))

    def _is_drawn(self, overrides: tuple[str, ...]) -> bool:
        try:
            parts = decode_parts(self._compose(overrides))
            nodes = [part.node for part in (parts.method, parts.mode, *parts.backbones.values())]
            key = digest_of([parts.task.target, parts.agent.target, [*parts.backbones], nodes])
            if key not in self._drawn:  # hundreds of planned runs have the same few parts
                self._drawn[key] = planned_draws_by_seed(parts)
            return self._drawn[key]
        except (AceBenchError, ImportError, AttributeError):  # the check of the run reports the error
            return True

    def without_equal_seeds(self, runs: Sequence[Sequence[str]]) -> tuple[list[Sequence[str]], list[str]]:
        """Return the runs whose requests differ, and a sentence for each run that keeps one seed of several.

        A run that draws nothing keeps the first seed that has finished, or the first seed if none has.
        """
        by_settings: dict[str, list[Sequence[str]]] = {}
        for run in runs:
            settings = self._decode(tuple(run))
            shared = [settings.identity_settings, settings.groups["task"], settings.name, settings.results]
            by_settings.setdefault(digest_of(shared), []).append(run)
        left_out, notes = list[Sequence[str]](), list[str]()
        for group in by_settings.values():
            if len(group) == 1 or self.draws(group[0]):
                continue
            kept = next(filter(self._is_finished, group), group[0])
            left_out += [run for run in group if run is not kept]
            seed = self._decode(tuple(kept)).seed
            seeds = ", ".join(str(self._decode(tuple(run)).seed) for run in group)
            notes.append(
                f"{' '.join(_without_seed(kept))} is run once, with seed {seed}: it is greedy "
                f"and draws nothing, so seeds {seeds} would send the same requests."
            )
        return [run for run in runs if run not in left_out], notes

    def _is_finished(self, overrides: Sequence[str]) -> bool:
        folder = self._build(Candidate(overrides=tuple(overrides))).folder
        return folder is not None and (folder / METRICS).exists()

    def refusal(self, overrides: Sequence[str]) -> str:
        """Return why a run with these overrides is refused or repeats another one, "" if it should be made.

        Missing data is not a reason, because the run itself says how to get it.
        """
        built = self._build(Candidate(overrides=tuple(overrides)))
        return built.refusal or _repeats(overrides, built.adaptation)

    def check(self, runs: Iterable[Candidate], *, results: Path | None = None, local: bool = True) -> Sequence[str]:
        """Check data, rules between settings, packages, keys, folders and endpoints of runs, each once.

        Runs that differ only in their seed are built once, and each endpoint gets one tiny call. ``results`` is the
        folder of unfinished runs. Without it each run names its own folder, and finished runs are left out. Without
        ``local`` the runs are on other machines, whose keys and endpoints are not checked. Returns each note of the
        runs once. Raises ``ConfigError`` that says each problem once, and how many runs have it.
        """
        problems: Counter[str] = Counter()
        notes: dict[str, None] = {}
        same_runs = _SameRuns(self._decode, planned=results is not None)
        served: dict[str, tuple[str, Served]] = {}
        callers: Counter[str] = Counter()
        total = 0
        for group in _by_seed(runs):
            count, built = (len(group), self._build(group[0])) if results else self._count_unfinished(group)
            total += count
            if built.folder is not None and (repeated := same_runs.add(group, built.folder)):
                problems[repeated] += 1
            notes.update(dict.fromkeys(built.notes if count else ()))
            problem = built.problem
            if not problem and count and local:
                problem = _problem(check_keys, built.backbones)
            if not problem and count and not results:
                problem = _problem(check_results, built.folder)
            problems[problem] += count
            for config_key, backbone in built.backbones.items() if local and not problem else ():
                if isinstance(backbone, Served) and (key := backbone.probe_key) is not None:
                    served.setdefault(key, (config_key, backbone))
                    callers[key] += count
        if results:
            problems[_problem(check_results, results)] += total
        called = [key for key in served if callers[key]]
        with ThreadPoolExecutor(max(1, len(called))) as pool:
            answers = pool.map(lambda key: _problem(check_endpoint, *served[key]), called)
        for key, problem in zip(called, answers, strict=True):
            problems[problem] += callers[key]
        del problems[""]
        if problems:
            raise ConfigError(_sentences(problems, total))
        return list(notes)

    def _count_unfinished(self, group: Sequence[Candidate]) -> tuple[int, _Built]:
        """Return the first run of a group that is not finished, and how many runs there are from it to the end."""
        for index, run in enumerate(group):
            built = self._build(run)
            if built.folder is None or not (built.folder / METRICS).exists():
                return len(group) - index, built
        return 0, built

    def _built(self, run: Candidate) -> _Built:
        try:
            identified = identify(self._decode(run.overrides), self._code.code_of)
            check_folder(identified)
            spec = assemble(identified)
            if not run.waits:
                spec = check_beginning(spec)
        except ConfigError as error:
            return _Built(refusal=str(error), problem=str(error))
        except AceBenchError as error:
            return _Built(problem=str(error))
        return _Built(
            folder=spec.folder, adaptation=spec.method.adaptation, notes=spec.notes, backbones=distinct_backbones(spec)
        )


def _repeats(overrides: Sequence[str], adaptation: Adaptation) -> str:
    """Return why a run of an experiment that lists methods is the same as another of its runs, "" if it is not."""
    settings = dict(override.split("=", 1) for override in overrides)
    if adaptation == "none" and (settings.get("mode") == "online" or settings.get("labels", "gold") != "gold"):
        return "it does not adapt: passes and feedback change nothing"
    if adaptation != "steps" and "mode.epochs" in settings:
        return "it does not learn step by step: epochs change nothing"
    return ""


def _by_seed(runs: Iterable[Candidate]) -> Iterable[Sequence[Candidate]]:
    """Group runs that differ only in their seed."""
    groups: dict[tuple[tuple[str, ...], bool], list[Candidate]] = {}
    for run in runs:
        groups.setdefault((_without_seed(run.overrides), run.waits), []).append(run)
    return groups.values()


def _without_seed(overrides: Sequence[str]) -> tuple[str, ...]:
    return tuple(override for override in overrides if not override.startswith("seed="))


class _SameRuns:
    """Finds runs that are the same, so that one of them would show the other's result as its own."""

    def __init__(self, decode: Callable[[tuple[str, ...]], RunSettings], *, planned: bool) -> None:
        """``planned`` runs may have equal settings in different words, because each is made once."""
        self._decode, self._planned = decode, planned
        self._known: dict[tuple[Path, int], Candidate] = {}

    def add(self, group: Sequence[Candidate], folder: Path) -> str:
        """Describe the runs that are the same, or return "".

        The runs of ``group`` differ in their seed, and its first run has ``folder``. A run that waits for a context
        has a preliminary folder until then, so it is not compared.
        """
        for run in group:
            settings = self._decode(run.overrides)
            earlier = self._known.setdefault((folder.parent, settings.seed), run)
            if earlier is run or run.waits or (self._planned and self._decode(earlier.overrides) == settings):
                continue
            first, second = (" ".join(candidate.overrides) for candidate in (earlier, run))
            return (
                f"{first} and {second} are the same run ({folder.parent}), so one would show the other's result: leave "
                "one out, or give each a name=NAME of its own"
            )
        return ""


def _problem(check: Callable[..., object], *arguments: object) -> str:
    """Return what a check says, "" if it passes."""
    try:
        check(*arguments)
    except AceBenchError as error:
        return str(error)
    return ""


def _sentences(problems: Mapping[str, int], total: int) -> str:
    if len(problems) == 1:
        ((problem, count),) = problems.items()
        return problem if total <= 1 else f"{problem} ({count} of {total} runs; none was started)"
    lines = (f"  {count} of {total} runs: {problem}" for problem, count in problems.items())
    return "\n".join(["no run was started, because some would fail:", *lines])
