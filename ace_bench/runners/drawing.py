"""Tells whether a run draws anything by its seed. If it does not, runs with other seeds send the same requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any

from ace_bench.core.backbones import EMBEDDER, GENERATOR, JUDGE, Backbone, Greedy
from ace_bench.core.method import Method, may_draw
from ace_bench.runners.mode import Mode
from ace_bench.runners.settings import Parts, build_backbones


def draws_by_seed(
    *,
    task: object,
    agent: object,
    method: Method[Any],
    mode: Mode,
    make_backbones: Callable[[], Mapping[str, Backbone]],
) -> bool:
    """Whether the parts of a run, or the sampling of a role, draw by the seed; tasks and agents may be classes.

    The backbones are made only where the answer depends on them.
    A part that does not say so is assumed to draw. Our modes say whether they draw the order of samples for the method.
    """
    if any(map(may_draw, (task, agent, method))):
        return True
    if "draws_order" not in vars(type(mode)) or mode.draws_order(method):
        return True
    backbones = make_backbones()
    roles = {GENERATOR, JUDGE, *method.roles, *backbones} - {EMBEDDER}
    answering = ((backbones.get(role, backbones[GENERATOR]), role) for role in roles)
    return not all(isinstance(backbone, Greedy) and backbone.is_greedy(role) for backbone, role in answering)


def planned_draws_by_seed(parts: Parts) -> bool:
    """Whether a run of these parts draws by its seed; raises ``ConfigError``."""
    return draws_by_seed(
        task=resolve_name(parts.task.target),
        agent=resolve_name(parts.agent.target),
        method=parts.method.build(),
        mode=parts.mode.build(),
        make_backbones=lambda: build_backbones(parts.backbones),
    )
