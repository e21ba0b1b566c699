"""Sampling settings of single roles, which the top-level group ``sampling`` puts into the backbones' settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ace_bench.core.settings import Count, NotNegative, check, make_part

GENERATOR = "generator"


@dataclass(frozen=True, kw_only=True)
class RoleSampling:
    """What one role has in place of its backbone's own; ``None``: the backbone's."""

    temperature: NotNegative | None = None
    max_tokens: Count | None = None


def check_role_sampling(config: Mapping[str, Any]) -> None:
    """Check the group, also where the backbone does not sample; raises ``ConfigError`` that names the wrong setting."""
    by_role = config.get("sampling")
    if not isinstance(by_role, Mapping):
        check(by_role, Mapping[str, RoleSampling | None] | None, "sampling")
    for role, values in (by_role or {}).items():
        if isinstance(values, Mapping):
            make_part(RoleSampling, values, f"sampling.{role}")
        else:
            check(values, RoleSampling | None, f"sampling.{role}")


def with_role_sampling(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resolved configuration whose backbones hold ``sampling.roles``: what is set for the roles they answer.

    A role with a backbone of its own changes that one. Backbones that do not sample, as the embedded one, stay as they
    are, and so do those of roles for which nothing is set.
    """
    chosen = given_by_role(config)
    own = {role: node for role, node in (config.get("roles") or {}).items() if node}
    shared = {role: values for role, values in chosen.items() if role == GENERATOR or role not in own}
    roles = {role: _put_roles(node, {role: chosen.get(role, {})}) for role, node in own.items()}
    return {
        **config,
        "backbone": _put_roles(config["backbone"], shared),
        "roles": {**(config.get("roles") or {}), **roles},
    }


def given_by_role(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is set for single roles, without the roles for which nothing is set."""
    found = {
        role: {name: value for name, value in (values or {}).items() if value is not None}
        for role, values in (config.get("sampling") or {}).items()
    }
    return {role: values for role, values in found.items() if values}


def _put_roles(node: Any, chosen: Mapping[str, Mapping[str, Any]]) -> Any:
    roles = {role: values for role, values in chosen.items() if values}
    if not roles or not isinstance(node, Mapping) or not isinstance(node.get("sampling"), Mapping):
        return node
    return {**node, "sampling": {**node["sampling"], "roles": roles}}
