"""Where a run was made otherwise than the paper's: settings that can change an answer and are not those planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ace_bench.core.identity import CONTEXT_FILES, GROUPS, TOP, deciding, usual_embedder
from ace_bench.report.overrides import written

_EMBEDDER, _TARGET = "embedder", "_target_"
_SAME = {(group, name) for group, name in CONTEXT_FILES} | {("mode", "before")}
"""Files that other runs make, and an evaluation that changes no other."""


def departures(settings: Mapping[str, Any], paper: Mapping[str, Any], source: str) -> Iterator[str]:
    """Yield what of a run is not the paper's: nothing where its setting is the paper's.

    ``settings`` are the run's, ``paper`` is the configuration that the experiment plans with the paper's model, and
    ``source`` says whether the run's data is ``real`` or ``sample``.
    """
    ours, theirs = deciding(settings), deciding(paper)
    yield from _models("backbone", ours["backbone"], theirs["backbone"])
    for role in sorted({*ours["roles"], *theirs["roles"]}):
        yield from _models(f"roles.{role}", ours["roles"].get(role, {}), theirs["roles"].get(role, {}))
    for group in GROUPS:
        kept = ({k: v for k, v in part[group].items() if (group, k) not in _SAME} for part in (ours, theirs))
        yield from _changes(group, *kept)
    yield from (f"{name}={written(ours[name])}" for name in TOP if ours[name] != theirs[name])
    if _uses_embedder(ours["method"]) and settings.get(_EMBEDDER) not in ("auto", usual_embedder(simulated=False)):
        yield f"{_EMBEDDER}={written(settings.get(_EMBEDDER))}"
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
