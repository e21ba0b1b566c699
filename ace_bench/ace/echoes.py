"""Refuses bullets that repeat the prompt or speak about the playbook: small models write such bullets (ours)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ace_bench.ace.replies import Delta
from ace_bench.core.types import Sample
from ace_bench.playbook.apply import Operation, reject

_RUN = 3
"""Words of a run. Shorter runs are in every English text."""
_LEAST_RUNS = 4
"""A bullet with fewer runs of words is too short to tell whether it is copied."""
_MOST_COPIED = 0.6
"""The share of a bullet's runs of words that the prompt may hold, too: one changed word in ten leaves more."""
_ABOUT = {
    "the playbook": re.compile(r"\bplaybook", re.IGNORECASE),
    "the reflection": re.compile(r"^\W*(the|this) reflection\b", re.IGNORECASE),
}
"""What a bullet speaks of where it is about the instruction in place of the task."""

_Runs = frozenset[tuple[str, ...]]


def refuse_echoes(delta: Delta, prompts: Iterable[str], samples: Sequence[Sample]) -> Delta:
    """Return the delta without contents that repeat the fixed text of ``prompts`` or speak about the playbook.

    A word that the samples use themselves is about the task.
    """
    copied = frozenset[tuple[str, ...]]().union(*map(_runs, prompts))
    asked = "\n".join(text for sample in samples for text in sample.inputs.values())
    kept, events = list[Operation](), list(delta.events)
    for operation in delta.operations:
        reason = _find_echo(getattr(operation, "content", None) or "", copied, asked)
        if reason is None:
            kept.append(operation)
        else:
            events.append(reject(operation, reason))
    return Delta(tuple(kept), tuple(events))


def _find_echo(content: str, copied: _Runs, asked: str) -> str | None:
    for subject, pattern in _ABOUT.items():
        if pattern.search(content) and subject.partition(" ")[2] not in asked.casefold():
            return f"the content is about {subject}, not about the task"
    runs = _runs(content)
    if len(runs) >= _LEAST_RUNS and len(runs & copied) >= _MOST_COPIED * len(runs):
        return "the content repeats the prompt"
    return None


@lru_cache(maxsize=64)
def _runs(text: str) -> _Runs:
    """Return the word sequences of a text, ignoring case and punctuation."""
    words = re.findall(r"\w+", text.casefold())
    return frozenset(zip(*(words[start:] for start in range(_RUN)), strict=False))
