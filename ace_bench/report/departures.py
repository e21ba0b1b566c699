"""Settings of a run that can change an answer and are not the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ace_bench.core.identity import CONTEXT_FILES, GROUPS
from ace_bench.report.overrides import written

_EMBEDDER, _TARGET = "embedder", "_target_"
_TOP = ("labels", "limit", "prompts")
_NOT_COMPARED = {(group, name) for group, name in CONTEXT_FILES} | {("mode", "before")}
"""Contexts that other runs make, and an evaluation that changes no other."""


def departures(settings: Mapping[str, Any], paper: Mapping[str, Any], source: str) -> Iterator[str]:
    """Yield the settings of a run that are not the paper's, as overrides.

    ``settings`` are those that the run wrote, ``paper`` those that the experiment plans with the paper's model, and
    ``source`` says whether the run's data is ``real`` or ``sample``.
    """
    yield from _models("backbone", settings["backbone"], paper["backbone"])
    for role in sorted({*settings["roles"], *paper["roles"]}):
        yield from _models(f"roles.{role}", settings["roles"].get(role, {}), paper["roles"].get(role, {}))
    for group in GROUPS:
        ours, theirs = (
            {key: value for key, value in part[group].items() if (group, key) not in _NOT_COMPARED}
            for part in (settings, paper)
        )
        yield from _changes(group, ours, theirs)
    names = (*_TOP, _EMBEDDER) if _uses_embedder(settings["method"]) else _TOP
    yield from (f"{name}={written(settings[name])}" for name in names if settings[name] != paper[name])
    if source == "sample":
        yield "sample data"


def _models(prefix: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    """Name another model alone: its sampling is its own."""
    named = [part.get("model") or part.get("name") or "none" for part in (ours, theirs)]
    if named[0] != named[1]:
        yield f"{prefix}.model={written(named[0])}"
    else:
        yield from _changes(prefix, ours, theirs)


def _changes(prefix: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*ours, *theirs} - {_TARGET, _EMBEDDER}):
        mine, other, name = ours.get(key), theirs.get(key), f"{prefix}.{key}"
        if isinstance(mine, Mapping) and isinstance(other, Mapping):
            yield from _changes(name, mine, other)
        elif mine != other:
            yield f"{name}={written(mine)}"


def _uses_embedder(part: Any) -> bool:
    return isinstance(part, Mapping) and (_EMBEDDER in part or any(map(_uses_embedder, part.values())))
