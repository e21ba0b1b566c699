"""Shared parts of question-answering tasks: splits read on demand, a session that only grades, a judge, numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Literal

import msgspec

from ace_bench.core.backbones import Lm
from ace_bench.core.errors import ConfigError, DataError, RolloutFault
from ace_bench.core.prompts import Prompts
from ace_bench.core.replies import ask
from ace_bench.core.types import Fault, Grade, Sample
from ace_bench.tasks.data import SPLITS, DataSettings, Row, locate, read_rows

Grader = Callable[[str | None], Grade]

_LITERAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


class AnswerSession:
    """A session of a task without an environment: it takes no actions and grades one answer."""

    def __init__(self, grader: Grader) -> None:
        self._grader = grader

    @property
    def finished(self) -> bool:
        """Never true: there are no actions to take."""
        return False

    def step(self, action: str) -> str:  # noqa: ARG002 - the protocol's signature
        """Raise ``RolloutFault``: the task has no environment."""
        message = "this task has no environment to act on; it only takes a final answer"
        raise RolloutFault(Fault(owner="model", kind="no_actions", message=message))

    def grade(self, answer: str | None) -> Grade:
        """Grade the final answer; ``None`` is wrong with full weight."""
        return self._grader(answer)


@dataclass(frozen=True, kw_only=True)
class Item:
    """A sample and its grader, which alone knows the reference answer."""

    sample: Sample
    grader: Grader


class Splits:
    """The splits of a task, each read when it is first used; safe between threads.

    ``read`` returns the rows of a split ; ``build`` turns a row into the sample's inputs and its
    grader and raises ``DataError`` for a row it cannot use.
    """

    def __init__(
        self,
        task: str,
        read: Callable[[str], Sequence[Row]],
        build: Callable[[Row], tuple[Mapping[str, str], Grader]],
    ) -> None:
        self._task = task
        self._read = read
        self._build = build
        self._lock = Lock()
        self._items: dict[str, dict[str, Item]] = {}

    def samples(self, split: str) -> Sequence[Sample]:
        """Return the samples of a split in the order of its rows; ids such as ``finer-test-0007`` are stable."""
        if split not in SPLITS:
            raise ConfigError(f"task {self._task} has no split {split!r}; it has {', '.join(SPLITS)}")
        return tuple(item.sample for item in self._load(split).values())

    def open(self, sample: Sample) -> AbstractContextManager[AnswerSession]:
        """Start a session on a sample of this task; raises ``DataError`` for any other."""
        items = self._load(sample.split) if sample.split in SPLITS else {}
        if sample.id not in items:
            raise DataError(f"task {self._task} has no sample {sample.id} in its split {sample.split!r}")
        return nullcontext(AnswerSession(items[sample.id].grader))

    def _load(self, split: str) -> Mapping[str, Item]:
        with self._lock:
            if split not in self._items:
                items = (self._item(split, row) for row in self._read(split))
                self._items[split] = {item.sample.id: item for item in items}
            return self._items[split]

    def _item(self, split: str, row: Row) -> Item:
        inputs, grader = self._build(row)
        return Item(sample=Sample(id=f"{self._task}-{split}-{row.key}", split=split, inputs=inputs), grader=grader)


class AnswerTask:
    """Base class of tasks without an environment: their splits hold the questions and the graders.

    ``headline`` names the metric that heads tables, ``prompt_group`` the folder of templates.
    """

    name: str
    prompt_group: str = "qa"
    headline: str = "accuracy"
    splits: tuple[str, ...] = SPLITS
    _splits: Splits

    def read_files(self, settings: DataSettings, fields: Sequence[str]) -> Callable[[str], Sequence[Row]]:
        """Find the files ``<split>.jsonl``; return what reads a split, whose rows have the text ``fields``."""
        located = locate(self.name, [f"{split}.jsonl" for split in SPLITS], settings)
        self.source: str = located.source
        self.files: Mapping[str, Path] = located.files
        self.checksums: Mapping[str, str] = located.checksums
        return lambda split: read_rows(located.files[f"{split}.jsonl"], fields)

    def samples(self, split: str) -> Sequence[Sample]:
        """Return all samples of a split in the order of its rows; inputs are ``background`` and ``question``."""
        return self._splits.samples(split)

    def open(self, sample: Sample) -> AbstractContextManager[AnswerSession]:
        """Start a session, which only grades."""
        return self._splits.open(sample)

    def failing_grade(self, sample: Sample) -> Grade:
        """Grade a sample that could not be attempted: wrong, with full weight."""
        with self.open(sample) as session:
            return session.grade(None)


def parse_number(text: str) -> float | None:
    """Parse a decimal literal in ASCII digits; ``None`` for any other text and for a number that is not finite."""
    if not _LITERAL.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def percent(part: float, whole: float) -> float:
    """Return ``part`` in percent of ``whole``."""
    return 100.0 * part / whole


JUDGE_TEMPLATE = "judge"


class JudgeReply(msgspec.Struct, frozen=True, kw_only=True):
    """The judge's reply; the reason comes first, so that the model thinks before it decides."""

    reason: str
    verdict: Literal["correct", "incorrect"]


def ask_judge(fields: Mapping[str, str], prompts: Prompts, lm: Lm) -> bool:
    """Return whether a model judges an answer correct; it is asked again if its reply cannot be read.

    Raises ``RolloutFault``.
    """
    return ask(lm, prompts.render(JUDGE_TEMPLATE, fields), JudgeReply).verdict == "correct"
