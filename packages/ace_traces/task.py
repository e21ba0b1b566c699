"""A task of attempts that were made elsewhere, and the agent that returns them: nothing is attempted again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ace_bench.core.backbones import Lm
from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError, DataError, SettingError
from ace_bench.core.settings import Share, Text
from ace_bench.core.task import Session
from ace_bench.core.types import Attempt, Grade, Sample
from ace_bench.tasks.answers import percent
from ace_traces.files import find_files, find_traces
from ace_traces.trace import Reading, Trace

_SHOWN = 5
"""Broken attempts that an error names."""
_SPLIT = "test"


@dataclass(frozen=True, kw_only=True)
class _Found:
    """An attempt in a file: the sample it becomes, whether it has a score, and what reads it."""

    sample: Sample
    scored: bool
    load: Callable[[], Trace]


class RecordedSession:
    """One attempt as it was made (``core.task``)."""

    finished = True

    def __init__(self, trace: Trace, *, right_from: float):
        self.attempt = trace.attempt()
        self._grade = trace.grade(right_from=right_from)

    def step(self, action: str) -> str:
        """Raise ``ConfigError``: the attempt is over."""
        raise ConfigError("the attempts of task=traces were made elsewhere: choose agent=recorded")

    def grade(self, answer: str | None) -> Grade:
        """Return what the file says of it."""
        return self._grade


class TracesTask:
    """Attempts in files of Inspect AI, OpenTelemetry or chats, in their order.

    ``files`` are files, folders or patterns. For ``score``, ``score_range``, ``feedback`` and ``reference`` see
    ``Reading``; ``right_from`` is the least score, from 0 to 1, of an attempt that is right. ``broken`` says what
    happens to lines that cannot be read.

    Raises ``ConfigError`` and ``DataError`` at construction, which reads all files.
    """

    name = "traces"
    prompt_group = "qa"
    source = "real"
    sections = ("strategies", "tool_use", "formats_and_conventions", "common_mistakes_to_avoid", "others")

    def __init__(  # noqa: PLR0913 - settings, all keyword-only
        self,
        *,
        files: Sequence[Text],
        score: Text | None,
        score_range: Sequence[float],
        right_from: Share,
        feedback: Text,
        reference: Text,
        broken: Literal["refuse", "skip"],
        sample_allowed: bool,
    ):
        if len(score_range) != 2 or score_range[0] >= score_range[1]:
            raise SettingError("score_range must be the lowest and the highest score, such as [1, 5]")
        low, high = score_range
        reading = Reading(score=score, low=low, high=high, feedback=feedback, reference=reference)
        paths = find_files(files)
        self._right_from = right_from
        self._named: Counter[str] = Counter()
        self._found: dict[str, _Found] = {}
        shared, problems = dict[str, str](), list[str]()
        for where, load in (one for path in paths for one in find_traces(path, reading)):
            try:
                self._add(where, load(), load, shared)
            except DataError as error:
                problems.append(str(error))
        if problems and (broken == "refuse" or not self._found):
            more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
            raise DataError(f"{'; '.join(problems[:_SHOWN])}{more}. task.broken=skip leaves them out")
        if not self._found:
            raise DataError(f"{', '.join(files)}: there is no attempt; name files of traces, or folders of them")
        scored = sum(one.scored for one in self._found.values())
        if score is not None and not scored:
            raise SettingError(f"score={score}: no attempt has a score of this name")
        self.headline = "score" if scored == len(self._found) else "scored"
        self.checksums: Mapping[str, str] = {str(path): _digest(path) for path in paths}

    def _add(self, where: str, trace: Trace, load: Callable[[], Trace], shared: dict[str, str]) -> None:
        """Add an attempt as a sample; of equal names the later ones get a number. Equal backgrounds are held once."""
        own = "_".join((trace.name or Path(where).name).replace("/", "_").split())
        self._named[own] += 1
        name = own if self._named[own] == 1 else f"{own}#{self._named[own]}"
        background = shared.setdefault(trace.background, trace.background)
        sample = Sample(id=name, split=_SPLIT, inputs={"background": background, "question": trace.question})
        self._found[name] = _Found(sample=sample, scored=trace.outcome.score is not None, load=load)

    def samples(self, split: str) -> Sequence[Sample]:
        """Return all attempts as samples of the split test; inputs are ``background`` and ``question``."""
        if split != _SPLIT:
            raise ConfigError(f"task=traces has no split {split}: nothing is attempted, so choose mode=online")
        return [one.sample for one in self._found.values()]

    @contextmanager
    def open(self, sample: Sample) -> Iterator[RecordedSession]:
        """Read an attempt."""
        yield RecordedSession(self._found[sample.id].load(), right_from=self._right_from)

    def failing_grade(self, sample: Sample) -> Grade:
        """Return what the file says of the attempt."""
        return self._found[sample.id].load().grade(right_from=self._right_from)

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return the share of attempts with a score and, if there are any, their mean score and share of right ones."""
        judged = [grade for grade in grades if grade.judged]
        scores = {"scored": percent(len(judged), len(grades))}
        if not judged:
            return scores
        right = percent(sum(grade.correct for grade in judged), len(judged))
        return {"score": percent(sum(grade.score for grade in judged), len(judged)), "right": right, **scores}


class RecordedAgent:
    """Returns the attempt of a session as it was made; it calls no model."""

    def __init__(self, *, prompts: Any, generator: Any):
        """Take what all agents are given."""

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return no fields: it has no template."""
        return {}

    def solve(self, sample: Sample, session: Session, context: Context, lm: Lm, reflection: str | None) -> Attempt:
        """Return the recorded attempt; raises ``ConfigError`` if a method tries it again."""
        if not isinstance(session, RecordedSession):
            raise ConfigError("agent=recorded returns recorded attempts: choose task=traces")
        if reflection is not None:
            raise ConfigError("this method tries samples again, and attempts of task=traces were made elsewhere")
        return session.attempt


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
