"""How many rollouts and calls ACE takes: from no retry to all reflection rounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ace_bench.core.workload import Span, exactly


def step_counts(settings: Mapping[str, Any]) -> Mapping[str, Span]:
    """Return the generator's rollouts and the other roles' calls for one sample, by the settings of ``method=ace``.

    The low end is a sample whose first rollout is right; the high end is wrong after all rounds of reflection.
    Calls that word merged bullets (``merge_wording``) are not counted: few steps merge.
    """
    reflects = settings["reflector"] == "on"
    rounds = settings["max_reflection_rounds"] if reflects else 0
    rollouts = Span(1, 1 + rounds) + exactly(int(settings["after_curation"]))
    asked = Span(1, rounds) if settings["curate"] == "attempt" and reflects else exactly(1)
    every = 1 / settings["curator_every"]
    reflections = {"reflector": Span(1, rounds)} if reflects else {}
    return {"generator": rollouts, **reflections, "curator": asked.times(exactly(every))}
