"""Several tasks as one: their samples take turns, and each is opened and graded by its own task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError
from ace_bench.core.settings import Text, build
from ace_bench.core.task import Confining, Judged, Lifecycle, Session, Task
from ace_bench.core.types import Grade, Sample
from ace_bench.tasks.answers import percent
from ace_bench.tasks.catalog import settings_from_file
from ace_bench.tasks.data import Source

_AGENT, _ONE_TURN = "/agent@_global_.agent", "single_turn"
_PLACES = ("data_dir", "source", "sample_data", "data")
"""Settings that say where data is; the data counts by its checksums."""


class TaskStream:
    """The tasks named by ``tasks``; ``settings`` are settings of a task that differ from its own file's.

    The score is the mean over samples, ``score_NAME`` the mean of one task. A playbook has the sections of all tasks.
    """

    name = "stream"
    prompt_group = "qa"
    headline = "score"
    divisions = ("task",)

    def __init__(
        self,
        *,
        tasks: Sequence[Text] | None,
        settings: Mapping[str, Mapping[str, Any]] | None,
        source: Source,
        sample_allowed: bool,
    ) -> None:
        named = list(tasks or ())
        if len({*named}) < 2 or len({*named}) < len(named):
            raise ConfigError("task=stream needs two or more different tasks: mode.stages=[finer,formula]")
        if unknown := [name for name in settings or () if name not in named]:
            raise ConfigError(f"task.settings.{unknown[0]} is for a task that is not among {', '.join(named)}")
        nodes = {name: _settings(name, {"source": source, **(settings or {}).get(name, {})}) for name in named}
        self._tasks: dict[str, Task] = {
            name: build(node, f"task.settings.{name}", sample_allowed=sample_allowed) for name, node in nodes.items()
        }
        for name, task in self._tasks.items():
            if task.prompt_group != self.prompt_group:
                raise ConfigError(f"task={name} has prompts of its own kind; use it alone, with mode.by")
            if isinstance(task, Judged) and task.judge_template is not None:
                raise ConfigError(f"task.settings.{name} asks a judge, and task=stream has none: choose another metric")
        self.source = "sample" if any(task.source == "sample" for task in self._tasks.values()) else "real"
        self.checksums: Mapping[str, str] = {
            **{f"{name}/{file}": value for name, task in self._tasks.items() for file, value in task.checksums.items()},
            **{
                f"{name}/settings": digest_of({key: value for key, value in node.items() if key not in _PLACES})
                for name, node in nodes.items()
            },
        }
        self.sections = tuple(dict.fromkeys(chain.from_iterable(task.sections for task in self._tasks.values())))
        self._owners: dict[str, str] = {}

    def samples(self, split: str) -> Sequence[Sample]:
        """Return the samples of a split, one of each task in turn, so that a limit takes equally many of each."""
        found = {name: task.samples(split) for name, task in self._tasks.items()}
        self._owners |= {sample.id: name for name, samples in found.items() for sample in samples}
        return [sample for turn in zip_longest(*found.values()) for sample in turn if sample is not None]

    def part_of(self, sample: Sample, division: str = "task") -> str:
        """Return the task of a sample."""
        if sample.id not in self._owners:
            self.samples(sample.split)
        return self._owners[sample.id]

    @contextmanager
    def open(self, sample: Sample) -> Iterator[Session]:
        """Open a sample's session in its own task."""
        name = self.part_of(sample)
        with self._tasks[name].open(sample) as session:
            yield _NamedSession(session, name)

    def failing_grade(self, sample: Sample) -> Grade:
        """Grade a sample as its own task does."""
        name = self.part_of(sample)
        return _with_task(self._tasks[name].failing_grade(sample), name)

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return the mean score of all samples, and of each task's, in percent."""
        groups = {"score": grades, **{f"score_{one}": [g for g in grades if one in g.detail] for one in self._tasks}}
        return {name: percent(sum(g.score for g in some), len(some)) for name, some in groups.items() if some}

    def start(self, say: Callable[[str], None]) -> None:
        """Start the tasks that need it."""
        for task in self._tasks.values():
            if isinstance(task, Lifecycle):
                task.start(say)

    def close(self) -> None:
        """Close the tasks that need it."""
        for task in self._tasks.values():
            if isinstance(task, Lifecycle):
                task.close()

    @property
    def confinement(self) -> Sequence[str] | None:
        """The layers that confined a model's code, of the first task that ran any."""
        layers = (task.confinement for task in self._tasks.values() if isinstance(task, Confining))
        return next((some for some in layers if some is not None), None)


class _NamedSession:
    """A session whose grades name the task."""

    def __init__(self, session: Session, task: str) -> None:
        self._session = session
        self._task = task

    @property
    def finished(self) -> bool:
        """Whether the session takes no more actions."""
        return self._session.finished

    def step(self, action: str) -> str:
        """Take an action."""
        return self._session.step(action)

    def grade(self, answer: str | None) -> Grade:
        """Grade the answer."""
        return _with_task(self._session.grade(answer), self._task)


def _with_task(grade: Grade, task: str) -> Grade:
    return replace(grade, detail={**grade.detail, task: 1.0})


def _settings(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a task's configuration file, changed by those given; raises ``ConfigError``."""
    from omegaconf import OmegaConf

    if name == TaskStream.name:
        raise ConfigError("task=stream cannot hold itself: name other tasks in mode.stages")
    found = dict(settings_from_file(name))
    defaults = [one for one in found.pop("defaults", []) if isinstance(one, dict)]
    if (agent := next((one[_AGENT] for one in defaults if _AGENT in one), _ONE_TURN)) != _ONE_TURN:
        raise ConfigError(f"task={name} is solved by agent={agent}, others in one turn: use it alone, with mode.by")
    merged = OmegaConf.to_container(OmegaConf.merge(found, given))
    assert isinstance(merged, dict)
    return {str(key): value for key, value in merged.items()}
