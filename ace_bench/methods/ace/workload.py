"""How many rollouts and calls ACE takes: from no retry to all reflection rounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ace_bench.core.workload import Span, exactly


def step_counts(settings: Mapping[str, Any], *, acts: bool, shown: bool) -> Mapping[str, Span]:
    """Return the generator's rollouts and the other roles' calls for one sample, by the settings of ``method=ace``.

    The low end is a sample whose first rollout is right; the high end is wrong after all rounds of reflection. ``acts``
    says whether attempts act in an environment, ``shown`` whether the outcome of a training sample is shown: then
    ``retries`` limits the attempts. Calls that word merged bullets (``merge_wording``) are not counted.
    """
    by_rules = settings["reflector"] == "rules"
    reflects = settings["reflector"] != "off"
    reflected, again = _rounds(settings, acts=acts, shown=shown) if reflects else (0, 0)
    rollouts = Span(1, 1 + again) + exactly(int(settings["after_curation"]))
    asked = Span(1, reflected) if settings["curate"] == "attempt" and reflects else exactly(1)
    every = 1 / settings["curator_every"]
    if by_rules:
        return {"generator": rollouts}
    reflections = {"reflector": Span(1, reflected)} if reflects else {}
    return {"generator": rollouts, **reflections, "curator": asked.times(exactly(every))}


def _rounds(settings: Mapping[str, Any], *, acts: bool, shown: bool) -> tuple[int, int]:
    """Return the most reflections and the most new rollouts of a sample."""
    rounds = settings["max_reflection_rounds"]
    if not acts:
        return rounds, rounds
    retries = settings["retries"]
    if retries == "auto":
        retries = rounds - 1 if shown else 0
    return retries + 1, retries
