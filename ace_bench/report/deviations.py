"""Settings of a run that can change an answer and differ from the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ace_bench.core.identity import CONTEXT_FILES, GROUPS
from ace_bench.report.overrides import override_value

_EMBEDDER, _TARGET = "embedder", "_target_"
_TOP = ("labels", "limit", "prompts")
_NOT_COMPARED = {(group, name) for group, name in CONTEXT_FILES} | {("mode", "before")}
"""Files with contexts of other runs, and the evaluation before adaptation, which does not affect other results."""


def deviations(settings: Mapping[str, Any], paper: Mapping[str, Any], source: str) -> Iterator[str]:
    """Yield the settings of a run that differ from the paper's, as overrides.

    ``settings`` come from the run's ``identity.json``, ``paper`` from the experiment with the paper's model.
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
    yield from (f"{name}={override_value(settings[name])}" for name in names if settings[name] != paper[name])
    if source == "sample":
        yield "sample data"


def _models(prefix: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    """Yield only the name if the model differs, since sampling settings belong to a model."""
    named = [part.get("model") or part.get("name") or "none" for part in (ours, theirs)]
    if named[0] != named[1]:
        yield f"{prefix}.model={override_value(named[0])}"
    else:
        yield from _changes(prefix, ours, theirs)


def _changes(prefix: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*ours, *theirs} - {_TARGET, _EMBEDDER}):
        mine, other, name = ours.get(key), theirs.get(key), f"{prefix}.{key}"
        if isinstance(mine, Mapping) and isinstance(other, Mapping):
            yield from _changes(name, mine, other)
        elif mine != other:
            yield f"{name}={override_value(mine)}"


def _uses_embedder(part: Any) -> bool:
    return isinstance(part, Mapping) and (_EMBEDDER in part or any(map(_uses_embedder, part.values())))
