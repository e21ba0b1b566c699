"""Error messages that name the fix and never show a key."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from ace_bench.backbones.openai_compatible.endpoint import Endpoint
from ace_bench.backbones.openai_compatible.problems import Problem

_SHOWN = 8


def explain(problem: Problem, endpoint: Endpoint) -> str:
    """Return the problem's message, with the fix if one is known; may request the server's list of models."""
    text = endpoint.ready().hide_in_error(problem.message)
    if problem.kind == "unreachable":
        return f"{endpoint.base_url} cannot be reached ({text}); start the server or correct backbone.base_url"
    if problem.kind == "unknown_model" and endpoint.azure.api_version:
        deployment = endpoint.azure.deployment or endpoint.model
        return f"{text}; check backbone.azure.deployment={deployment}, azure.api_version and {endpoint.base_url}"
    if problem.kind == "unknown_model":
        return f"{text}; {_models(endpoint.model, [one.id for one in endpoint.models()], endpoint.base_url)}"
    variable = endpoint.api_key_env
    fix = {
        "authentication": "give the identity a role on the resource, such as Cognitive Services OpenAI User"
        if endpoint.azure.entra
        else f"check the key in the environment variable {variable}"
        if variable
        else "name the environment variable that holds the key: backbone.api_key_env=NAME",
        "quota_exhausted": f"top up the account at {endpoint.base_url}, or raise its limit",
        "redirected": f"{endpoint.base_url} redirects calls, and redirects are not followed: correct backbone.base_url",
        "context_length": "shorten the context or lower backbone.sampling.max_tokens",
    }.get(problem.kind)
    return text if fix is None else f"{text}; {fix}"


def _models(model: str, listed: Sequence[str], base_url: str) -> str:
    if not listed:
        return f"check backbone.model={model} and backbone.base_url={base_url}, which often ends in /v1"
    if model in listed:
        return f"{base_url} does list {model}: it may not offer chat completions for it"
    close = get_close_matches(model, listed, n=3, cutoff=0.4)
    names = ", ".join(close or sorted(listed)[:_SHOWN])
    more = "" if close or len(listed) <= _SHOWN else f" and {len(listed) - _SHOWN} more"
    return f"set backbone.model to one that the server has: {names}{more}"
