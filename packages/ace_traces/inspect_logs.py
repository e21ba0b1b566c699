"""Logs of Inspect AI, read by its own package (extra ``inspect``): each sample of each epoch is an attempt."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ace_bench.core.errors import DataError
from ace_bench.core.resources import require
from ace_traces.messages import read_messages
from ace_traces.trace import Outcome, Reading, Trace

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample

_UNREAD = {"events", "store"}
"""Fields of a sample that are not needed; the first holds every message once more."""
_WORDS = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Scores in words: correct, partial, incorrect, no answer."""


def read_log(path: Path, reading: Reading) -> Iterator[tuple[str, Callable[[], Trace]]]:
    """Yield the place of each attempt and what loads it; of a .eval file, one is in memory at a time."""
    require(f"{path}, a log of Inspect AI,", "inspect_ai")
    from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

    try:
        if path.suffix == ".json":
            for sample in read_eval_log(path, resolve_attachments=True).samples or ():
                where = f"{path}, sample {sample.id}, epoch {sample.epoch}"
                yield where, partial(_trace, sample, reading, where)
            return
        summaries = read_eval_log_sample_summaries(path)
    except Exception as error:  # the package raises whatever its readers do
        raise DataError(f"{path}: not a log of Inspect AI: {' '.join(str(error).split())[:200]}") from error
    for one in summaries:
        where = f"{path}, sample {one.id}, epoch {one.epoch}"

        def load(name: int | str = one.id, epoch: int = one.epoch, where: str = where) -> Trace:
            try:
                sample = read_eval_log_sample(path, name, epoch, resolve_attachments=True, exclude_fields=_UNREAD)
            except Exception as error:
                raise DataError(f"{where}: {' '.join(str(error).split())[:200]}") from error
            return _trace(sample, reading, where)

        yield where, load


def _trace(sample: EvalSample, reading: Reading, where: str) -> Trace:
    target = sample.target if isinstance(sample.target, str) else "\n".join(sample.target)
    outcome = Outcome(
        score=_score(sample, reading, where),
        feedback="\n".join(_score_texts(sample)),
        reference=target,
        observed=f"Error: {sample.error.message}" if sample.error else "",
    )
    name = f"{sample.id}" if sample.epoch == 1 else f"{sample.id}, epoch {sample.epoch}"
    return Trace.build(name, read_messages((one.model_dump() for one in sample.messages), where), outcome, where=where)


def _score(sample: EvalSample, reading: Reading, where: str) -> float | None:
    """Return the named score, or the first: text such as C, I and P as a number; ``None`` for other text."""
    scores = sample.scores or {}
    found = scores.get(reading.score) if reading.score else next(iter(scores.values()), None)
    value = None if found is None else found.value
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower())
    if not isinstance(value, int | float) or math.isnan(value):  # Inspect's sign that nothing was scored
        return None
    return reading.scaled(value, where)


def _score_texts(sample: EvalSample) -> Iterator[str]:
    for name, score in (sample.scores or {}).items():
        yield ": ".join(filter(None, (name, str(score.value), score.explanation)))
