"""Which runs on disk fulfil a plan, which may be shown in its place, and in which settings a run differs from one.

A run in place of a planned one differs in settings that can be named. It has a mark and lists these settings, and it is
compared only with runs that differ from their plan alike. A run that differs in what a cell is about stays out of it:
another model, task or labels, another size, real or simulated, real or sample data, a setting of the cell's own plan,
or the settings that make it another cell's run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ace_bench.core.encoding import digest_of_text
from ace_bench.core.identity import (
    CONTEXT_FILES,
    EMBEDDER,
    GROUPS,
    TOP,
    changed_settings,
    settings_digest,
)
from ace_bench.report.conditions import Variant
from ace_bench.report.configurations import Configurations
from ace_bench.report.planned import Compose, PlannedRun, Settings, key_of, override_value, quote
from ace_bench.report.records import RunSummary, latest_repetitions, precedence

_TOP = (*(name for name in TOP if name != EMBEDDER), "sampling")
_NOT_COMPARED = {f"{group}.{name}" for group, name in CONTEXT_FILES} | {"mode.before"}
"""Files with contexts of other runs, and the evaluation before adaptation, which does not affect other results."""
_DATA = ("data_dir", "sample_data", "data", "instruction")
"""Settings of a task that name its data or its instruction. Digests of settings leave them out."""
_MATTERS = ("roles", "backbone.model", "backbone.name", "backbone.quantization")
"""Settings that change the meaning of a number, by the start of their path."""
_SIZES = (
    *("limit", "mode.epochs", "mode.batch_size", "mode.window", "method.max_reflection_rounds"),
    *("method.auto", "method.max_metric_calls", "method.max_full_evals"),
)
"""Settings of how much and how long a run learns. Runs that differ in them are different experiments."""
_TEMPLATE, _THINKING = "chat_template_kwargs", ("thinking", "enable_thinking")
"""The field of a request for a model's chat template, and the switches of thinking in it."""
_OPTION_GROUPS = ("task", "method", "mode", "agent", "backbone")


class Runs:
    """Runs by their settings and data. A repetition (``resume=false``) replaces the run it repeats."""

    def __init__(self, runs: Iterable[RunSummary], configurations: Configurations) -> None:
        self._configurations = configurations
        self._find = cache(self._found)
        self._digest = cache(lambda overrides: settings_digest(configurations.identity(overrides)))
        self._runs = defaultdict[tuple[str, int], list[RunSummary]](list)
        ordered = sorted(runs, key=precedence)
        settings = [configurations.of_run(run) for run in ordered]
        for before in (False, True):
            for run, run_settings in zip(ordered, settings, strict=True):
                if before or run_settings["mode"].get("before"):
                    self._runs[settings_digest(run_settings, before=before), run.seed].append(run)

    def find(self, planned: PlannedRun, *, seed: int, extra: Sequence[str] = ()) -> RunSummary | None:
        """Return the planned run, finished or not, or ``None``. ``extra`` overrides all (``backbone=...``).

        A run that was also evaluated before adaptation matches a plan that does not need this.
        """
        return self._find(planned, seed, tuple(extra))

    def _found(self, planned: PlannedRun, seed: int, extra: tuple[str, ...]) -> RunSummary | None:
        overrides = self.overrides(planned, seed=seed, extra=extra)
        return None if overrides is None else self._made_with(overrides, seed)

    def _made_with(self, overrides: Sequence[str], seed: int) -> RunSummary | None:
        config, key = self._configurations(overrides), (self._digest(tuple(overrides)), seed)
        runs = (
            run
            for run in reversed(self._runs.get(key, ()))
            if _source_fits(run, config["task"]["source"]) and not any(other_data(run, overrides, config))
        )
        return max(runs, key=lambda run: run.finished, default=None)

    def overrides(self, planned: PlannedRun, *, seed: int, extra: Sequence[str] = ()) -> list[str] | None:
        """Return all overrides of a planned run except the seed, or ``None`` until the runs it needs are finished."""
        overrides = self._configurations.overrides(planned, extra)
        for need in planned.needs:
            run = self.find(need.run, seed=seed, extra=extra)
            if run is None or not run.finished:
                return None
            overrides.append(f"{need.setting}={quote(str(run.context_file(need.context)))}")
        return overrides


def other_data(run: RunSummary, overrides: Sequence[str], config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the run's settings of data that differ from those that a plan's overrides name."""
    planned_keys = {*map(key_of, overrides)}
    for name in _DATA:
        if f"task.{name}" in planned_keys and (value := run.settings["task"].get(name)) != config["task"][name]:
            yield f"task.{name}={value}"


def _source_fits(run: RunSummary, source: str) -> bool:
    """Whether a run's data, real or sample, is what ``task.source`` asks for."""
    return run.simulated or run.source == "real" if source == "auto" else run.source == source


class ModelNames:
    """The models of some backbone presets by each of their names, in any case."""

    def __init__(self, presets: Iterable[str], compose: Compose) -> None:
        self._presets: dict[str, str] = {}
        self._names: dict[str, str] = {}
        for preset in presets:
            settings = compose([f"backbone={preset}"])["backbone"]
            for name in (settings["model"], *settings.get("aliases", ())):
                self._presets[name.casefold()] = preset
                self._names[name.casefold()] = settings["model"]

    def preset_of(self, model: str) -> str:
        """Return the preset of a model, "" if none has it."""
        return self._presets.get(model.casefold(), "")

    def plain(self, backbone: Settings) -> Settings:
        """Return the settings of a backbone in one spelling for all servers.

        ``structured`` is how its server asks for JSON, of which the paper says nothing. Templates name the switch of
        thinking differently, and the models of the paper that have one do not think unless it is on.
        """
        settings = {name: value for name, value in backbone.items() if name != "structured"}
        body = {**(settings.pop("extra_body", None) or {})}
        template_options = body.pop(_TEMPLATE, None) or {}
        switches = {name: value for name, value in template_options.items() if name not in _THINKING}
        if any(template_options.get(name) for name in _THINKING):
            switches[_THINKING[0]] = True
        body |= {_TEMPLATE: switches} if switches else {}
        model = settings.get("model")
        model_name = {} if model is None else {"model": self._names.get(model.casefold(), model)}
        return {**settings, **model_name, **({"extra_body": body} if body else {})}


def deviations(settings: Settings, paper: Settings, source: str, names: ModelNames) -> Iterator[str]:
    """Yield the settings of a run that can change an answer and differ from the paper's, as overrides.

    ``settings`` come from the run's ``identity.json``, ``paper`` from the experiment with the paper's model.
    ``source`` says whether the run's data is ``real`` or ``sample``. Sampling settings belong to a model: of another
    model only the name counts. A model may have any of its ``names``.
    """
    backbones = [("backbone", settings["backbone"], paper["backbone"])]
    roles = sorted({*settings["roles"], *paper["roles"]})
    backbones += [(f"roles.{role}", settings["roles"].get(role, {}), paper["roles"].get(role, {})) for role in roles]
    for path, *pair in backbones:
        actual, expected = map(names.plain, pair)
        model, expected_model = (part.get("model") or part.get("name") or "none" for part in (actual, expected))
        changes = changed_settings(actual, expected, path) if model == expected_model else [(f"{path}.model", model)]
        yield from (_override(*change) for change in changes)
    for group in GROUPS:
        for path, value in changed_settings(settings[group], paper[group], group):
            if path not in _NOT_COMPARED and EMBEDDER not in path.split("."):  # it is compared once, at the top
                yield _override(path, value)
    for name in (*_TOP, EMBEDDER) if _uses_embedder(settings["method"]) else _TOP:
        if settings.get(name) != paper.get(name):
            yield _override(name, settings.get(name))
    if source == "sample":
        yield "sample data"


def _override(path: str, value: Any) -> str:
    return f"{path}={override_value(value)}"


def _uses_embedder(part: Any) -> bool:
    return isinstance(part, Mapping) and (EMBEDDER in part or any(map(_uses_embedder, part.values())))


Earlier = Callable[[PlannedRun, int], RunSummary | None]
"""Returns the finished run of a plan and a seed, or the one that is shown in its place."""


@dataclass(frozen=True, kw_only=True)
class Similar:
    """Runs that are shown in a cell, one a seed, and in what they differ from its plan.

    ``refused`` says in what other runs of the same task, method and mode differ: another model, another size, other
    data, or real runs in place of simulated ones. It also names the differences of runs that differ more than the shown
    ones.
    """

    runs: tuple[RunSummary, ...] = ()
    differs: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class SimilarRuns:
    """The runs of a results folder, by how they differ from plans. Only finished ones are shown in place of others."""

    def __init__(
        self,
        runs: Sequence[RunSummary],
        plans: Sequence[PlannedRun],
        configurations: Configurations,
        names: ModelNames,
    ) -> None:
        """``plans`` are the paper's, each for one row: no other row takes its run."""
        self._names = names
        self._plans: dict[tuple[str, str, str], list[PlannedRun]] = {}
        for plan in plans:
            self._plans.setdefault(plan.kind, []).append(plan)
        self._configurations = configurations
        latest = latest_repetitions(runs, lambda run: (settings_digest(configurations.of_run(run)), run.seed))
        self._runs = defaultdict[tuple[str, str, str], list[tuple[str, RunSummary]]](list)
        for (digest, _), run in latest.items():
            self._runs[run.task, run.method, run.mode].append((digest, run))

    def find(self, planned: PlannedRun, variant: Variant, earlier: Earlier, *, any_size: bool = False) -> Similar:
        """Return the runs that differ least from a plan under the conditions of a variant.

        Runs of another size are refused, unless ``any_size``.
        """
        groups: dict[tuple[str, ...], dict[int, RunSummary]] = {}
        refused: dict[str, None] = {}
        differences = dict[str, tuple[str, ...]]()
        for digest, run in self._runs[planned.kind]:
            if digest not in differences:
                differences[digest] = tuple(self._differences(run, planned, variant))
            differs = differences[digest]
            if reason := _other_kind(run, variant, differs):
                refused.setdefault(reason)
            elif differs and self._fits(run, planned, differs, earlier):
                sizes = () if any_size else [override for override in differs if key_of(override) in _SIZES]
                if sizes:
                    refused.setdefault(", ".join(sizes))
                elif run.finished:
                    groups.setdefault(differs, {})[run.seed] = run
        if not groups:
            return Similar(refused=tuple(refused))
        differs, by_seed = min(groups.items(), key=lambda group: (len(group[0]), -len(group[1]), group[0]))
        farther = (", ".join(other_group) for other_group in groups if other_group != differs)
        return Similar(runs=tuple(by_seed[seed] for seed in sorted(by_seed)), differs=differs, refused=tuple(farther))

    def _differences(self, run: RunSummary, planned: PlannedRun, variant: Variant) -> Iterator[str]:
        protocol = (f"protocol={run.protocol}",) if run.protocol != "paper" else ()
        if not set(protocol) <= {*variant.overrides, *planned.overrides}:
            yield from protocol
        overrides = self._configurations.overrides(planned, (*variant.overrides, *protocol))
        usual = self._configurations.identity(overrides)
        yield from deviations(self._configurations.of_run(run), usual, "", self._names)
        yield from other_data(run, overrides, self._configurations(overrides))

    def _fits(self, run: RunSummary, planned: PlannedRun, differs: Sequence[str], earlier: Earlier) -> bool:
        """Whether a run may fill a cell. It must have all settings of the cell's plan and belong to no other cell."""
        plan_keys = {key for key in map(key_of, planned.overrides) if key not in _OPTION_GROUPS}
        if any(
            f"{key_of(override)}.".startswith(f"{key}.")
            for override in differs
            for key in ("task", "labels", *plan_keys)
        ):
            return False
        changed = {_plain(override) for override in differs}
        usual = {_plain(override) for override in planned.overrides}
        plans = ({_plain(override) for override in plan.overrides} for plan in self._plans.get(planned.kind, ()))
        if any(overrides - usual and overrides - usual <= changed for overrides in plans):
            return False
        return self._starts_as_planned(self._configurations.of_run(run), run.seed, planned, earlier)

    def _starts_as_planned(self, settings: Settings, seed: int, planned: PlannedRun, earlier: Earlier) -> bool:
        """Whether a run began with the contexts that its plan names: the contexts of the runs shown for them."""
        needs = {need.setting: need for need in planned.needs}
        for group, name in CONTEXT_FILES:
            digest, need = settings[group].get(name), needs.get(f"{group}.{name}")
            if need is None:
                if digest is not None and group != "agent":
                    return False
                continue
            before = earlier(need.run, seed)
            path = None if before is None else before.context_file(need.context)
            if path is None or not path.is_file() or digest_of_text(path.read_text(encoding="utf-8")) != digest:
                return False
        return True


def _other_kind(run: RunSummary, variant: Variant, differs: Sequence[str]) -> str:
    """Return why a run's numbers mean something else than a variant's, "" if they mean the same."""
    if run.simulated != variant.simulated:
        return "who answered: a stand-in" if run.simulated else "who answered: a real model"
    if variant.source and run.source != variant.source:
        return f"the data: {run.source}"
    return next((override for override in differs if key_of(override).startswith(_MATTERS)), "")


def _plain(override: str) -> str:
    """Return an override without quotes and blanks, as plans and runs may write it differently."""
    return override.replace('"', "").replace("'", "").replace(" ", "")
