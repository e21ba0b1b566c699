"""Figures of an agent's episodes, and of the long ones alone, which show the use of an execution memory.

An episode is the attempt of a tested rollout. Its quality is the share of the task's unit tests that it passes, out of
10. Founding document 002 ("Consequences", "Why Limited Impact") claims a benefit of its memory from five steps on. All
figures are means over episodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import msgspec

from ace_bench.core.known_calls import redundant_calls
from ace_bench.core.settings import read_part
from ace_bench.core.tool_rules import ToolRules
from ace_bench.core.types import NO_USAGE, Record, Turn, Usage
from ace_bench.report.evidence import CallCosts, RolloutLine, evaluations, read_journal

LEAST_STEPS = 5


class _Attempt(msgspec.Struct, gc=False):
    trajectory: tuple[Turn, ...] = ()
    counters: dict[str, int] = {}


class _AttemptLine(RolloutLine, gc=False):
    attempt: _Attempt = msgspec.field(default_factory=_Attempt)
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Episode:
    """A tested attempt: ``figures`` are its numbers by name, and ``usage`` sums up all its calls."""

    figures: Mapping[str, float | None]
    usage: Usage


def episodes_of(folder: Path, *, settings: Record, metrics: Record, calls: Sequence[CallCosts]) -> list[Episode]:
    """Return all episodes of a run's test. Raises ``StoreError``."""
    tools = settings["agent"].get("tools")
    rules: ToolRules | None = read_part(ToolRules, tools, "agent.tools") if tools else None
    split, context = metrics["headline"]["split"], metrics["context"]["digest"]
    spent: dict[str, Usage] = {}
    for call in calls:
        spent[call.session] = spent.get(call.session, NO_USAGE) + call.usage
    episodes = []
    for line in evaluations(read_journal(folder, _AttemptLine), split, context).values():
        if line.grade:
            detail = line.grade.detail
            turns, usage = line.attempt.trajectory, spent.get(line.key, Usage())
            figures = {
                "steps": len(turns),
                "redundant_calls": redundant_calls(turns, rules) if rules else 0,
                "from_memory": line.attempt.counters.get("lookups_saved", 0),
                "success": 100.0 * line.grade.correct,
                "quality": 10.0 * detail["passes"] / detail["tests"] if detail.get("tests") else None,
                "seconds": line.seconds,
                "tokens": usage.tokens,
            }
            episodes.append(Episode(figures=figures, usage=usage))
    return episodes


def long_ones(episodes: Sequence[Episode]) -> list[Episode]:
    """Return the episodes of five steps and more."""
    return [episode for episode in episodes if (episode.figures["steps"] or 0) >= LEAST_STEPS]


def figure_of(episodes: Sequence[Episode], name: str) -> float | None:
    """Return a figure of episodes: ``n``, ``cached`` (percent of tokens in), or a mean of its ``figures``.

    ``None`` if it is unknown, or a mean of no episodes.
    """
    if name == "n":
        return len(episodes)
    if name == "cached":
        total = sum((episode.usage for episode in episodes), NO_USAGE)
        return 100 * total.cached / total.prompt if total.prompt and total.cached is not None else None
    values = [episode.figures.get(name) for episode in episodes]
    known_values = [value for value in values if value is not None]
    return fmean(known_values) if known_values and len(known_values) == len(values) else None
