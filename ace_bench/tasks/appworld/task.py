"""AppWorld: everyday digital tasks solved by code in the engine's world of nine apps (paper, section 4.1).

A session runs pieces of Python in a fresh world. The task is passed when all the engine's unit tests on the world's
final state pass; the engine's own evaluator runs them in another process on the saved outputs. ``tgc`` and ``sgc`` are
the official metrics (see ``scoring``).

Two things differ from the official runs: a rollout that ended in a fault is wrong whatever state its world is in, and
code that cannot be interrupted ends its episode.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any, Literal

from msgspec import Meta

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError, DataError, RolloutFault
from ace_bench.core.types import Grade, Sample
from ace_bench.tasks.appworld.data import Catalogue, ChosenTasks, builder_digest, check_path, find_data, sample_root
from ace_bench.tasks.appworld.engine import VERSION, EngineSettings, find_engine
from ace_bench.tasks.appworld.pool import Pool, metrics
from ace_bench.tasks.appworld.session import Assignment, WorldSession
from ace_bench.tasks.data import SPLITS, DataSettings

SECTIONS = (
    "strategies_and_hard_rules",
    "apis_to_use_for_specific_information",
    "useful_code_snippets_and_templates",
    "common_mistakes_and_correct_strategies",
    "problem_solving_heuristics_and_workflows",
    "verification_checklist",
    "troubleshooting_and_pitfalls",
    "others",
)
"""Sections of the official playbooks (paper, appendix F)."""


_OFFICIAL_ORDER = (
    "api_docs", "supervisor", "amazon", "phone", "file_system", "spotify", "venmo", "gmail", "splitwise", "simple_note",
    "todoist",
)  # fmt: skip
"""The engine's order of its apps, in which the official prompts describe them."""

_REPAIR = "set it up again: `rm -rf .appworld`, then `ace-bench appworld`"


class AppWorld:
    """The AppWorld task.

    ``data_dir`` is a folder with the ``data/`` that ``appworld download data`` makes. ``source`` is ``auto``, ``real``
    or ``sample`` (the mini-world, which the package ``sample_data`` builds). ``test_split`` is the engine's split for
    ``test`` and ``ids`` the tasks of each split, if not all. ``timeout`` limits a piece of code, in seconds,
    ``memory_gib`` the memory of a server. ``confinement`` is ``required``, or ``none`` to run agent code even where
    this machine cannot confine it.

    Raises ``ConfigError`` or ``DataError`` at construction where the engine or the data is missing.
    """

    draws_from_seed = False
    name: str = "appworld"
    prompt_group: str = "agent"
    headline: str = "tgc"
    splits: tuple[str, ...] = SPLITS
    sections: tuple[str, ...] = SECTIONS

    def __init__(
        self,
        *,
        test_split: Literal["test_normal", "test_challenge"],
        timeout: Annotated[int, Meta(ge=1, le=86_400)],
        memory_gib: Annotated[float, Meta(gt=0, le=1024)],
        confinement: Literal["required", "none"],
        ids: ChosenTasks,
        **data: Annotated[Any, DataSettings],
    ) -> None:
        self._datasets = {"train": "train", "val": "dev", "test": test_split}
        self._timeout = timeout
        engine = find_engine()
        folder, self.source = find_data(DataSettings(**data))
        root = sample_root(engine, folder) if self.source == "sample" else folder
        check_path(root)
        self.root = root
        """The full data root; agents see a copy without ground truth."""
        self._catalogue = Catalogue(root)
        self._ids = {split: ids.select_ids(split, self._catalogue.ids(name)) for split, name in self._datasets.items()}
        self._background = "".join(f"- {name}: {description}\n" for name, description in engine.facts.apps.items())
        self._app_descriptions = _describe_apps(engine.facts.apps)
        self.checksums: Mapping[str, str] = {"engine": VERSION} | (
            {"miniworld": builder_digest(folder)}
            if self.source == "sample"
            else self._catalogue.checksums(tuple(self._datasets.values()))
        )
        if ids != ChosenTasks(train=None, val=None, test=None):
            self.checksums = {**self.checksums, "ids": digest_of(self._ids)}  # a file of ids may change
        self._samples = cache(self._read)
        any_task = self._catalogue.ids("train")[0]
        settings = EngineSettings(engine=engine, task=any_task, memory=int(memory_gib * (1 << 30)))
        self._pool = Pool(settings, root=root, confined=confinement == "required")

    def start(self, say: Callable[[str], None]) -> None:
        """Load the engine and run a piece of code, so that a broken set-up is found before anything is paid.

        Raises ``ConfigError``.
        """
        say("AppWorld: loading the engine")
        if self._pool.layers is None:  # no server has run yet
            self._check_engine()
        self._pool.describe(say)

    def _check_engine(self) -> None:
        try:
            with self.open(self.samples("train")[0]) as session:
                output = session.step("print('ready')")
        except RolloutFault as error:
            raise ConfigError(f"AppWorld's engine does not work here: {error.fault.message}; {_REPAIR}") from error
        if output != "ready\n":
            raise ConfigError(f"AppWorld's engine does not run code here: print('ready') gives {output!r}; {_REPAIR}")

    @property
    def confinement(self) -> Sequence[str] | None:
        """The layers that confined agent code; ``None`` if none was run."""
        return self._pool.layers

    def close(self) -> None:
        """End all processes of the engine."""
        self._pool.close()

    def samples(self, split: str) -> Sequence[Sample]:
        """All samples of a split in file order, or those chosen in theirs.

        Inputs: ``question`` (the instruction), ``background`` (the apps) and ``app_descriptions`` (the same as JSON),
        the supervisor's ``first_name``, ``last_name``, ``email``, ``phone_number``, and the world's ``datetime``.
        """
        if split not in self._datasets:
            raise ConfigError(f"task appworld has no split {split!r}; it has {', '.join(self._datasets)}")
        return self._samples(split)

    @contextmanager
    def open(self, sample: Sample) -> Iterator[WorldSession]:
        """Start a world for one rollout; raises ``RolloutFault`` (owner ``task``) where that fails."""
        session = WorldSession(self._pool, self._assignment(sample), timeout=self._timeout)
        try:
            yield session
        finally:
            session.close()

    def failing_grade(self, sample: Sample) -> Grade:
        """Grade a sample that could not be attempted: wrong."""
        return self._assignment(sample).failing_grade()

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return TGC and SGC in percent, overall and by difficulty, and the mean number of interactions."""
        return metrics(grades)

    def _read(self, split: str) -> tuple[Sample, ...]:
        return tuple(self._sample(split, task) for task in self._ids[split])

    def _sample(self, split: str, task: str) -> Sample:
        specs = self._catalogue.specs(task)
        inputs = {
            "background": self._background,
            "app_descriptions": self._app_descriptions,
            "question": specs.instruction,
            "first_name": specs.supervisor.first_name,
            "last_name": specs.supervisor.last_name,
            "email": specs.supervisor.email,
            "phone_number": specs.supervisor.phone_number,
            "datetime": specs.datetime,
        }
        return Sample(id=f"{self.name}-{split}-{task}", split=split, inputs=inputs)

    def _assignment(self, sample: Sample) -> Assignment:
        task = sample.id.removeprefix(f"{self.name}-{sample.split}-")
        if sample.split not in self._datasets or task not in self._catalogue.ids(self._datasets[sample.split]):
            raise DataError(f"task appworld has no sample {sample.id} in its split {sample.split!r}")
        return Assignment(task=task, truth=self._catalogue.truth(task))


def _describe_apps(apps: Mapping[str, str]) -> str:
    """Describe the apps as the official prompts do."""
    order = {name: index for index, name in enumerate(_OFFICIAL_ORDER)}
    names = sorted(apps, key=lambda name: order.get(name, len(order)))
    return json.dumps([{"name": name, "description": apps[name]} for name in names], indent=1)
