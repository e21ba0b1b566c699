"""Sampling settings of single roles, which the top-level group ``sampling`` puts into the backbones' settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GENERATOR = "generator"


def with_role_sampling(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resolved configuration whose backbones hold ``sampling.roles``: what is set for the roles they answer.

    A role with a backbone of its own changes that one. Backbones that do not sample, as the embedded one, stay as they
    are, and so do those of roles for which nothing is set.
    """
    chosen = given_by_role(config)
    own = {role: node for role, node in (config.get("roles") or {}).items() if node}
    shared = {role: values for role, values in chosen.items() if role == GENERATOR or role not in own}
    roles = {role: _placed(node, {role: chosen.get(role, {})}) for role, node in own.items()}
    return {
        **config,
        "backbone": _placed(config["backbone"], shared),
        "roles": {**(config.get("roles") or {}), **roles},
    }


def given_by_role(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is set for single roles, without the roles for which nothing is set."""
    found = {
        role: {name: value for name, value in (values or {}).items() if value is not None}
        for role, values in (config.get("sampling") or {}).items()
    }
    return {role: values for role, values in found.items() if values}


def _placed(node: Any, chosen: Mapping[str, Mapping[str, Any]]) -> Any:
    roles = {role: values for role, values in chosen.items() if values}
    if not roles or not isinstance(node, Mapping) or not isinstance(node.get("sampling"), Mapping):
        return node
    return {**node, "sampling": {**node["sampling"], "roles": roles}}
