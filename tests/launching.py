"""Runs experiments in this process, as run.py does, for tests that look at what they leave behind."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints
from unittest import mock

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf

from ace_bench.core import resources
from ace_bench.core.settings import build
from ace_bench.core.task import Task
from ace_bench.methods.base import BaseMethod
from ace_bench.methods.field.stream_memory import SimilarMemory
from ace_bench.runners import run as experiment
from ace_bench.runners.build import RunSpec, assemble
from ace_bench.runners.composing import settle
from ace_bench.runners.host import reporting
from ace_bench.runners.identifying import IdentifiedRun
from ace_bench.runners.planning import Composer

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / "configs"
PLAYBOOK = ROOT / "tests" / "fixtures" / "playbook.txt"
PARSER = OverridesParser.create()

_EVERYWHERE, _EVERY_METHOD = ("ace",), "finer"


def options(group: str) -> list[str]:
    """The options of a config group, guests' included: a new YAML file enters the tests by being there."""
    return list(resources.options(group, resources.config_folders()))


def tasks() -> list[str]:
    """The tasks that have a sample set; the others are made of what their settings name."""
    return [task for task in options("task") if "sample_data" in preset("task", task).task]


def pairs() -> list[Any]:
    """Every task with every method. ``make test`` takes ACE for each task; one task with each method is slow."""
    return [pytest.param(task, method, marks=_marks(task, method)) for task in tasks() for method in options("method")]


def _marks(task: str, method: str) -> tuple[pytest.MarkDecorator, ...]:
    if method in _EVERYWHERE and not brief(task):
        return ()
    return (pytest.mark.slow if method in _EVERYWHERE or task == _EVERY_METHOD else pytest.mark.thorough,)


def quick(method: str) -> tuple[str, ...]:
    """Overrides that keep the search of an optimiser short, or that a method needs."""
    settings = preset("method", method).method
    if "max_metric_calls" in settings:
        return ("method.max_metric_calls=30",)
    if method == "frozen":  # it needs a context
        return (f"method.context={PLAYBOOK}",)
    return ("method.auto=light",) if "auto" in settings else ()


def brief(task: str) -> tuple[str, ...]:
    """Overrides that keep runs on a real environment short: its attempts take a second each, not a millisecond."""
    acts = "max_steps" in preset("task", task).agent
    return ("limit={train: 1, val: 1, test: 2}", "agent.max_steps=3") if acts else ()


def optimises(method: str) -> bool:
    """Whether a method optimises in one piece: such a one may refuse a mode or labels, at no cost."""
    return method_class(method).fit is not BaseMethod.fit


def learns(method: str) -> bool:
    """Whether a method changes its context."""
    kind = method_class(method)
    return kind.fit is not BaseMethod.fit or kind.update is not BaseMethod.update


def needs_verdicts(method: str) -> bool:
    """Whether a method refuses ``labels=none``, at no cost."""
    return issubclass(method_class(method), SimilarMemory)


def retries(method: str) -> bool:
    """Whether a method tries samples again, and refuses every mode but ``online``."""
    return method_class(method).scores_last_trial


def method_class(method: str) -> type[BaseMethod]:
    """Return the class that a method's settings name, or that the function which they name returns."""
    target = get_object(preset("method", method).method._target_)
    return target if isinstance(target, type) else get_type_hints(target)["return"]


@cache
def preset(group: str, option: str) -> DictConfig:
    """Return the settings of a run with this option. Collecting the tests asks for all, in each of their processes."""
    return composed(f"{group}={option}")[0]


def composed(*overrides: str) -> tuple[DictConfig, Mapping[str, str]]:
    """Return a configuration and the options chosen, as a command composes them, with each file parsed once."""
    return _composer(resources.config_folders()).compose(overrides)


@cache
def _composer(folders: tuple[Path, ...]) -> Composer:
    return Composer(folders)


def built(config: DictConfig, place: str) -> Any:
    """Build the part at a place of a configuration."""
    return build(OmegaConf.to_container(OmegaConf.select(config, place), resolve=True), place)


@dataclass(frozen=True)
class Ran:
    """A finished launch: its exit status and its run folder."""

    status: int
    folder: Path

    @property
    def metrics(self) -> dict[str, Any]:
        return json.loads((self.folder / "metrics.json").read_text())

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / f"{name}.jsonl").read_text().splitlines()]

    def lasting(self) -> tuple[dict[str, Any], dict[str, str]]:
        """What must not depend on interruptions: metrics without timings and cache figures, and all contexts."""
        metrics = {key: value for key, value in self.metrics.items() if key not in ("timing", "cache")}
        return metrics, {path.name: path.read_text() for path in (self.folder / "contexts").iterdir()}


def launch(
    results: Path,
    *overrides: str,
    backbone: Callable[[Any], Any] | None = None,
    task: Callable[[Task], Task] | None = None,
    spec: Callable[[RunSpec], RunSpec] = lambda spec: spec,
) -> Ran:
    """Run one experiment; ``backbone`` and ``task`` wrap those parts of the spec, ``spec`` changes any other."""
    config, choices = composed(*overrides)
    config.results = str(results)
    folders: list[Path] = []

    def wrapped(found: IdentifiedRun) -> RunSpec:
        made = assemble(found)
        folders.append(made.folder)
        if backbone is not None:
            made = replace(made, backbones={role: backbone(inner) for role, inner in made.backbones.items()})
        if task is not None:
            made = replace(made, task=task(made.task))
        return spec(made)

    with mock.patch.object(experiment, "build_run", wrapped), reporting() as report:
        experiment.run(settle(config, choices), report.host)
    return Ran(status=report.status, folder=next(iter((*folders, *report.folders)), results))
