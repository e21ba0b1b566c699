"""Turns the result of a call into a completion, a fault of the rollout or the end of the run.

- An empty answer of a model that ended normally is retried once; a second empty one is ``empty_reply``, or
  ``no_content`` if the server sent null for the text.
- A refusal (``refusal`` of the message) is ``refusal``; an answer blocked by the provider's filter is
  ``content_filter``. Neither is retried: the same prompt would be refused again.
- An answer cut at the token limit is passed on where it can be used: as plain text, or if the JSON asked for is
  complete. Otherwise, and where the model wrote only hidden reasoning, it is ``length_truncated``.
- What a reasoning model returns beside its answer is kept as its thoughts and is not part of the answer. A reply whose
  words are all thoughts is empty; the message says so.

Messages of errors name the fix and never show a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

import msgspec

from ace_bench.backbones.openai_compatible.endpoint import Endpoint
from ace_bench.backbones.openai_compatible.http_backbone import CallResult
from ace_bench.backbones.openai_compatible.problems import Disposition, Problem
from ace_bench.backbones.openai_compatible.replies import Answer
from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.backbones.openai_compatible.wordings import ended_by_filter
from ace_bench.core.backbones import explain_all_reasoning, explain_blanks
from ace_bench.core.errors import BackboneUnavailable, RolloutFault
from ace_bench.core.replies import ToolTurn, is_offer, parse, write_turn
from ace_bench.core.thoughts import split_thoughts
from ace_bench.core.types import NO_USAGE, Completion, Fault, Record, Usage

_SHOWN = 8


def explain(problem: Problem, endpoint: Endpoint) -> str:
    """Return the problem's message, with the fix if one is known; may request the server's list of models."""
    text, setting = endpoint.ready().hide_in_error(problem.message), f"backbone.{endpoint.setting}"
    if problem.kind == "unreachable":
        trust = "name a file of certificates that you trust in SSL_CERT_FILE"
        fix = trust if "certificate" in text.lower() else f"start the server or correct {setting}"
        return f"{endpoint.base_url} cannot be reached ({text}); {fix}"
    if problem.kind == "unknown_model" and endpoint.azure.api_version:
        deployment = endpoint.azure.deployment or endpoint.model
        return f"{text}; check backbone.azure.deployment={deployment}, azure.api_version and {endpoint.base_url}"
    if problem.kind == "unknown_model":
        return f"{text}; {_models(endpoint, [listed.id for listed in endpoint.models()])}"
    variable = endpoint.api_key_env
    known_fix = {
        "authentication": "give the identity a role on the resource, such as Cognitive Services OpenAI User"
        if endpoint.azure.entra
        else f"check the key in the environment variable {variable}"
        if variable
        else "name the environment variable that holds the key: backbone.api_key_env=NAME",
        "quota_exhausted": f"top up the account at {endpoint.base_url}, or raise its limit",
        "redirected": f"{endpoint.base_url} redirects calls, and redirects are not followed: correct {setting}",
        "context_length": "shorten the context or lower backbone.sampling.max_tokens",
    }.get(problem.kind)
    return text if known_fix is None else f"{text}; {known_fix}"


def _models(endpoint: Endpoint, listed: Sequence[str]) -> str:
    model, base_url = endpoint.model, endpoint.base_url
    if not listed and endpoint.setting != "base_url":
        return f"check backbone.model={model} and backbone.{endpoint.setting}: the calls go to {base_url}"
    if not listed:
        return f"check backbone.model={model} and backbone.base_url={base_url}, which often ends in /v1"
    if model in listed:
        return f"{base_url} does list {model}: it may not offer chat completions for it"
    close = get_close_matches(model, listed, n=3, cutoff=0.4)
    examples = ", ".join(close or sorted(listed)[:_SHOWN])
    and_more = "" if close or len(listed) <= _SHOWN else f" and {len(listed) - _SHOWN} more"
    return f"set backbone.model to one that the server has: {examples}{and_more}"


class _AnyObject(msgspec.Struct):
    """Any JSON object."""


def accept(outcome: CallResult, *, schema: Record | None, prices: PriceCard, endpoint: Endpoint) -> Completion:
    """Return the completion; raises ``RolloutFault``, or ``BackboneUnavailable`` where the run must stop.

    A fault carries what the call cost: the tokens of an unusable answer, the retries and their time.
    """
    result, secrets = outcome.result, endpoint.ready()
    if isinstance(result, Problem):
        message = explain(result, endpoint)
        if result.disposition is Disposition.STOP or result.kind == "unreachable":
            raise BackboneUnavailable(message)
        unread = Completion(
            text=secrets.hide(result.text),
            usage=price_usage(outcome, prices),
            seconds=0.0,
            waited=outcome.waited + outcome.seconds,
            retries=outcome.retries,
            asked_again=outcome.asked_again,
        )
        retries = f" (after {outcome.retries} retries)" if outcome.retries else ""
        raise RolloutFault(Fault(owner=result.owner, kind=result.kind, message=f"{message}{retries}"), unread)
    text = result.text
    if is_offer(schema):
        text = write_turn(ToolTurn(content=text, tool_calls=result.tool_calls))
    completion = Completion(
        text=secrets.hide(text),
        usage=price_usage(outcome, prices),
        seconds=outcome.seconds,
        waited=outcome.waited,
        retries=outcome.retries,
        model=secrets.hide(result.model),
        cut=result.ended == "length",
        asked_again=outcome.asked_again,
        thoughts=secrets.hide(result.thoughts),
    )
    if (fault := _fault(result, schema)) is not None:
        if completion.cut_in_blanks and fault.kind == "length_truncated":
            message = f"the reply ended in blanks up to its token limit; {explain_blanks()}"
            fault = replace(fault, message=message)
        raise RolloutFault(replace(fault, message=secrets.hide(fault.message)), completion)
    return completion


def price_usage(outcome: CallResult, prices: PriceCard) -> Usage:
    """Return the usage and price of a call, discarded answers included."""
    result = outcome.result
    if isinstance(result, Problem) and outcome.discarded == NO_USAGE:
        return NO_USAGE  # without an answer nothing was used
    used = result.usage + outcome.discarded if isinstance(result, Answer) else outcome.discarded
    return replace(used, usd=prices.call_dollars(used))


def prices_fact(prices: PriceCard, usage: Usage) -> str:
    """Say where the prices of a probe come from, or why its dollars are unknown."""
    if usage.usd is not None:
        return prices.source or "as set"
    return "dollars are n/a without tokens" if usage.prompt is None else "neither set nor listed: dollars are n/a"


def _fault(answer: Answer, schema: Record | None) -> Fault | None:
    if answer.refusal:
        return Fault(owner="model", kind="refusal", message=f"the model refused: {answer.refusal[:300]}")
    if ended_by_filter(answer.ended):
        return Fault(owner="model", kind="content_filter", message="the provider's content filter blocked the answer")
    if answer.ended == "length" and not _usable(answer, schema):
        written = "unknown many" if answer.usage.completion is None else str(answer.usage.completion)
        raised = "raise backbone.sampling.max_tokens, or sampling.ROLE.max_tokens for one role"
        spent = ", all of them thoughts" if answer.only_thoughts else ""
        message = f"cut at the token limit after {written} tokens{spent}; {raised}"
        return Fault(owner="model", kind="length_truncated", message=message)
    if not answer.text.strip() and not (is_offer(schema) and answer.tool_calls):
        return Fault(owner="model", kind="no_content" if answer.null else "empty_reply", message=_why_empty(answer))
    return None


def _why_empty(answer: Answer) -> str:
    if answer.only_thoughts:
        return f"the reply has no text: {explain_all_reasoning()}"
    if answer.unread:
        return f"the reply has no text, only parts of type {', '.join(answer.unread)}, which are not read"
    return "the model returned an empty reply"


def _usable(answer: Answer, schema: Record | None) -> bool:
    """Whether an answer that was cut can be used."""
    if schema is None or not answer.text.strip():
        return bool(answer.text.strip())
    if is_offer(schema):
        return not answer.tool_calls
    try:
        parse(split_thoughts(answer.text).said, _AnyObject)
    except ValueError:
        return False
    return True
