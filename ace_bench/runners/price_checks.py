"""Limits in dollars need prices: checked before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping

from ace_bench.core.agent import Agent, CostLimited
from ace_bench.core.backbones import EMBEDDER, GENERATOR, Backbone, Priced
from ace_bench.core.errors import ConfigError
from ace_bench.core.types import Usage
from ace_bench.runners.budget import Budget

_ANY_USAGE = Usage(prompt=2, completion=1, cached=1)


def place_of(role: str) -> str:
    """Return the configuration key of a role's backbone."""
    return {GENERATOR: "backbone", EMBEDDER: EMBEDDER}.get(role, f"roles.{role}")


def check_budget_prices(budget: Budget, backbones: Mapping[str, Backbone]) -> None:
    """Raise ``ConfigError`` for a budget in dollars if a backbone has no prices."""
    if budget.usd is not None:
        for role, backbone in backbones.items():
            _check(role, backbone, f"budget.usd={budget.usd:g}", "use budget.calls or budget.tokens")


def check_agent_prices(agent: Agent, generator: Backbone) -> None:
    """Raise ``ConfigError`` for an agent with a limit in dollars if its backbone has no prices."""
    if isinstance(agent, CostLimited) and agent.max_usd is not None:
        _check(GENERATOR, generator, f"agent.max_usd={agent.max_usd:g}", "use agent.max_steps alone")


def _check(role: str, backbone: Backbone, limit: str, other: str) -> None:
    if isinstance(backbone, Priced) and backbone.dollars(_ANY_USAGE) is None:
        where = place_of(role)
        if role == EMBEDDER:
            raise ConfigError(f"{limit} needs prices: set embedder.usd_per_million, or {other}")
        raise ConfigError(
            f"{limit} needs prices: set {where}.prices.input, {where}.prices.cached_input and {where}.prices.output, "
            f"or {other}"
        )
