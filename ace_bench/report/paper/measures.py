"""The units and metrics that an experiment's file may name; a wrong name is refused when the file is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

from ace_bench.core.errors import DataError

UNITS = (
    *("percent", "points", "count", "bullets", "tokens", "tokens per call", "tokens per query", "dollars", "seconds"),
    *("of_ten", "per_episode"),
)
_STAGES, _ANY = ("adapt", "evaluate"), None
_SPEEDS = ("tokens_per_s", "call_tokens_per_s", "calls_in_flight")
_TIMES = ("wall_s", "model_s", "retries", "asked_again", "waited_s", "wall_without_waiting_s", *_SPEEDS)
_EPISODE = ("n", "cached", "steps", "redundant_calls", "from_memory", "success", "quality", "seconds", "tokens")
_PATHS: Mapping[str, tuple[tuple[str, ...] | None, ...]] = {
    "context": (("items", "tokens"),),
    "headline": (("before", "after", "n"),),
    "gain": (("n", "before", "after", "p", "better", "worse", "detectable"),),
    "query": (("before", "after"), ("calls", "in", "out", "usd")),
    "answers_in_prompts": (("found", "n"),),
    "operations": (_ANY,),
    "rollouts": (_STAGES,),
    "restarts": (_STAGES,),
    "dropped_items": (_STAGES,),
    "replayed": (_STAGES,),
    **dict.fromkeys(
        ("calls", "faults", "counters", "cut_replies", "blank_replies", "thoughts", "unreadable_replies"),
        (_STAGES, _ANY),
    ),
    "tokens": ((*_STAGES, "total"), ("in", "out")),
    "usd": ((*_STAGES, "total"),),
    "verification": (("kept", "refused", "rollouts", "calls"),),
    "cache": ((*_STAGES, "total"), ("cached_tokens", "share", "saved")),
    "timing": ((*_STAGES, "total"), (*_TIMES, "probe_tokens_per_s", "times_slower_than_probe")),
    "spent": ((*_STAGES, "tested"), _ANY, _ANY, ("in", "out", "calls", "rollouts", "samples")),
    "fall": (("before", "after"), ("tokens",)),
    **dict.fromkeys(("episodes", "long_episodes"), (_EPISODE,)),
}
"""The later parts of a metric's path, each with its possible names. ``None``: a role, split or kind."""


def check_unit(unit: str, where: str) -> None:
    """Raise ``DataError`` for a unit that no table knows."""
    if unit not in UNITS:
        raise DataError(f"{where}: there is no unit {unit}; {_suggest(unit, UNITS)}")


def check_metric(metric: str, where: str) -> None:
    """Raise ``DataError`` for a path that no run has. A single word is a metric of the task, which only runs know."""
    for name in re.sub(r"\{\w+\}", "_", metric).split("/"):
        first, *parts = name.split(".")
        if not parts:
            continue
        if first not in _PATHS:
            raise DataError(f"{where}: there is no metric {name}; {_suggest(first, tuple(_PATHS))}")
        levels = _PATHS[first]
        for depth, (part, names) in enumerate(zip(parts, levels, strict=False), start=1):
            if part != "_" and names is not None and part not in names:
                path = ".".join([first, *parts[: depth - 1]])
                raise DataError(f"{where}: there is no metric {name}; below {path} {_suggest(part, names)}")
        if len(parts) != len(levels) and "_" not in parts:
            raise DataError(
                f"{where}: metric {name} has {len(parts) + 1} parts, and those of {first} {len(levels) + 1}"
            )


def _suggest(name: str, names: tuple[str, ...]) -> str:
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
