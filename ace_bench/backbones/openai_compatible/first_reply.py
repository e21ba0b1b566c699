"""What a probe's first reply says of all later ones: where the text is, and which model writes it.

A reply without text whose words are all reasoning has two causes. The server has a reasoning parser and the model does
not think: then every reply will be empty, and the run must not start. Or the model thinks and reached the limit of the
reply: then the user is warned. A longer second call tells one from the other.
"""

from __future__ import annotations

from collections.abc import Callable

from ace_bench.backbones.openai_compatible.endpoint import Endpoint
from ace_bench.backbones.openai_compatible.problems import Problem
from ace_bench.backbones.openai_compatible.replies import Answer
from ace_bench.core.backbones import explain_all_reasoning
from ace_bench.core.errors import ConfigError
from ace_bench.core.model_names import is_same_model

ROOM = 2048
"""Tokens in which a model that thinks gets to the reply that the probe asks for."""


def thoughts_warning(first: Answer, limit: int | None, ask: Callable[[int], Answer | Problem]) -> str:
    """Return a warning about a reply of thoughts alone, "" where nothing is wrong.

    ``limit`` is the most tokens of a reply (``None``: no limit is sent); ``ask`` sends the request with another one.
    Raises ``ConfigError`` if the server reports whole replies as reasoning.
    """
    if not first.only_thoughts:
        return ""
    was_cut, room = first.ended == "length", max(limit or 0, ROOM)
    second = first if was_cut and room == limit else ask(room)
    if isinstance(second, Problem):  # it may not take so long a reply
        second = first
    if second.only_thoughts and second.ended != "length":
        raise ConfigError(f"the server answers, but its replies have no text: {explain_all_reasoning()}")
    if not was_cut:
        return ""
    named = "the server's own limit" if limit is None else f"backbone.sampling.max_tokens={limit}"
    return (
        f"The model's thoughts took all tokens of its reply, and no text was left: raise {named}, or switch thinking "
        "off (backbone.extra_body.chat_template_kwargs.enable_thinking=false, or as the model's page says)."
    )


def model_warning(answered: str, endpoint: Endpoint) -> str:
    """Return a warning that another model answers than the one that was asked for, "" if it is the same."""
    if is_same_model(endpoint.model, answered):
        return ""
    if endpoint.azure.api_version and endpoint.azure.deployment is None:
        fix = f"set backbone.model={answered} and backbone.azure.deployment={endpoint.model} if that is meant"
    else:
        fix = f"set backbone.model={answered} if that is meant, or correct the server"
    return f"Asked for {endpoint.model}, {answered} answers: {fix}."
