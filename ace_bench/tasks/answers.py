"""Shared parts of question-answering tasks: splits read on demand, a session that only grades, a judge, numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal

import msgspec

from ace_bench.core.backbones import Lm
from ace_bench.core.errors import ConfigError, DataError, RolloutFault
from ace_bench.core.prompts import Prompts
from ace_bench.core.replies import ask
from ace_bench.core.types import Fault, Grade, Sample
from ace_bench.tasks.data import SPLITS, DataSettings, Row, files_in, find_folder, read_rows, sha256_of

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

    def step(self, action: str) -> str:
        """Raise ``RolloutFault``: the task has no environment."""
        message = "this task has no environment to act on; it only takes a final answer"
        raise RolloutFault(Fault(owner="model", kind="no_actions", message=message))

    def grade(self, answer: str | None) -> Grade:
        """Grade the final answer; ``None`` is wrong with full weight."""
        return self._grader(answer)


class AnswerTask:
    """Base class of tasks without an environment: a subclass has ``build`` and ``score``.

    ``headline`` names the metric that heads tables, ``prompt_group`` the folder of templates, ``fields`` the texts on
    every line of ``train.jsonl``, ``val.jsonl`` and ``test.jsonl``. A split is read when it is first used; this is safe
    between threads.

    ``data_dir`` names a folder with these files; ``source`` is ``auto``, ``real`` or ``sample``; ``sample_allowed``
    lets ``auto`` fall back on the sample set ``sample_data``. Raises ``ConfigError`` or ``DataError`` at construction
    where files are missing, ``DataError`` for bad lines when a split is first read.
    """

    draws_from_seed = False
    name: str
    prompt_group: str = "qa"
    headline: str = "accuracy"
    splits: tuple[str, ...] = SPLITS
    fields: tuple[str, ...] = ("context", "target")

    def __init__(self, **data: Annotated[Any, DataSettings]) -> None:
        folder, self.source = find_folder(self.name, DataSettings(**data))
        self.files: Mapping[str, Path] = files_in(folder, [f"{split}.jsonl" for split in SPLITS], task=self.name)
        self.checksums: Mapping[str, str] = {name: sha256_of(path) for name, path in self.files.items()}
        self.use_rows(lambda split: read_rows(self.files[f"{split}.jsonl"], self.fields))

    def use_rows(self, read: Callable[[str], Sequence[Row]]) -> None:
        """Set what returns the rows of a split."""
        self._read_rows = read
        self._lock = Lock()
        self._items: dict[str, dict[str, tuple[Sample, Grader]]] = {}
        """Samples by split and id, each with its grader, which alone knows the reference answer."""

    def build(self, row: Row) -> tuple[Mapping[str, str], Grader]:
        """Turn a row into the inputs ``background`` and ``question`` and its grader; raises ``DataError``."""
        raise NotImplementedError

    def samples(self, split: str) -> Sequence[Sample]:
        """Return the samples of a split in the order of its rows; ids such as ``finer-test-0007`` are stable."""
        if split not in SPLITS:
            raise ConfigError(f"task {self.name} has no split {split!r}; it has {', '.join(SPLITS)}")
        return tuple(sample for sample, _ in self._load(split).values())

    def open(self, sample: Sample) -> AbstractContextManager[AnswerSession]:
        """Start a session, which only grades, on a sample of this task; raises ``DataError`` for any other."""
        items = self._load(sample.split) if sample.split in SPLITS else {}
        if sample.id not in items:
            raise DataError(f"task {self.name} has no sample {sample.id} in its split {sample.split!r}")
        return nullcontext(AnswerSession(items[sample.id][1]))

    def failing_grade(self, sample: Sample) -> Grade:
        """Grade a sample that could not be attempted: wrong, with full weight."""
        with self.open(sample) as session:
            return session.grade(None)

    def _load(self, split: str) -> Mapping[str, tuple[Sample, Grader]]:
        with self._lock:
            if split not in self._items:
                items = {}
                for row in self._read_rows(split):
                    inputs, grader = self.build(row)
                    name = f"{self.name}-{split}-{row.key}"
                    items[name] = Sample(id=name, split=split, inputs=inputs), grader
                self._items[split] = items
            return self._items[split]


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
