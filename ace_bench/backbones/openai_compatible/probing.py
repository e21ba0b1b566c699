"""Tiny calls that check whether an endpoint accepts its settings, before a run spends anything.

Two of them find out whether the server follows ``seed``: the same prompt is sent twice with one seed, at temperature 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from ace_bench.backbones.openai_compatible.endpoint import Endpoint
from ace_bench.backbones.openai_compatible.http_backbone import CallResult
from ace_bench.backbones.openai_compatible.outcomes import explain, price_usage, prices_fact
from ace_bench.backbones.openai_compatible.problems import Disposition, Problem
from ace_bench.backbones.openai_compatible.replies import Answer
from ace_bench.backbones.openai_compatible.requests import Dialect, Question, refuses_system_role
from ace_bench.backbones.openai_compatible.settings import ChatSettings, Retry, Sampling
from ace_bench.core.backbones import explain_all_reasoning
from ace_bench.core.errors import BackboneUnavailable, ConfigError, SettingError
from ace_bench.core.model_names import is_same_model
from ace_bench.core.prompts import REFUSED
from ace_bench.core.replies import parse, schema_of
from ace_bench.core.thoughts import split_thoughts
from ace_bench.core.types import Message, Probe, ProbeReply, Usage

_TOKENS, _SEED = 16, 7
_TELLING_WORDS = 3
"""Fewest words of a reply that is hardly repeated by chance."""
PROMPT = (Message(role="user", content="Write one sentence about a town that you like."),)
_FOLLOWED, _IGNORED, _REFUSED, _UNKNOWN = "followed", "ignored", "refused", "n/a"
_MOST_RETRIES, _MOST_SECONDS, _FIRST_PAUSE = 3, 60, 0.2
_SESSION = "probe"
_ROOM = 2048
"""Tokens in which a model that thinks gets to the reply that the probe asks for."""


class _Ready(msgspec.Struct):
    """The reply that the probe requests; the text has bounds where the setting asks for them."""

    ready: bool
    note: str = ""


_MESSAGES = (
    Message(role="system", content="You reply with one JSON object."),
    Message(role="user", content='Reply with this JSON object and nothing else: {"ready": true, "note": "ok"}'),
)

Ask = Callable[[Question, Dialect], CallResult]


def probe(
    ask: Ask,
    *,
    endpoint: Endpoint,
    dialects: Sequence[Dialect],
    settings: ChatSettings,
    check_seed: bool = True,
) -> tuple[Dialect, Probe]:
    """Try the dialects until the server takes one; return it and the findings.

    With ``check_seed``, two more calls find out whether the server follows ``seed``.

    Raises ``ConfigError`` with the fix if the server refuses the call or reports whole replies as reasoning, and
    ``BackboneUnavailable`` where it fails and may recover. A malformed answer does not fail the probe.
    """
    secrets, sampling, prices = endpoint.ready(), settings.sampling, settings.prices
    asked = Question(messages=_MESSAGES, session=_SESSION, schema=schema_of(_Ready))
    dialect, outcome = _first_taken(dialects, lambda candidate: ask(asked, candidate))
    result = accept_probe(outcome.result, lambda problem: f"the backbone does not answer: {explain(problem, endpoint)}")
    usage = price_usage(outcome, prices)
    calls = [outcome]

    def ask_more(question: Question, dialect: Dialect) -> CallResult:
        calls.append(ask(question, dialect))
        return calls[-1]

    def ask_longer(limit: int) -> Answer | Problem:
        return ask_more(replace(asked, changes={sampling.max_tokens_field: limit}), dialect).result

    model = secrets.hide(result.model) or endpoint.model
    warnings = (_thoughts_warning(result, sampling.max_tokens, ask_longer), _model_warning(model, endpoint))
    seed, used = _seed_followed(ask_more, dialect, sampling) if check_seed else (None, None)
    longest = _longest_reply(calls)
    cached = usage.cached is not None or (used is not None and used.cached is not None)
    facts = {
        "endpoint": endpoint.base_url,
        "key": _key_source(endpoint),
        "model": model,
        "structured replies": _structured_replies(dialect, result),
        "tokens": "reported" if None not in (usage.prompt, usage.completion) else "not reported: n/a in all tables",
        "cached tokens": "reported" if cached else "not reported by these calls",
        **({} if seed is None else {"seed": seed}),
        "prices": prices_fact(prices, usage),
        "latency": f"{outcome.seconds:.2f} s",
        "speed": "n/a" if longest is None else f"{longest.tokens_per_s:,.1f} tokens/s",
    }
    if outcome.retries:
        facts["retries"] = str(outcome.retries)
    if result.simulated:
        facts["simulated"] = "yes"
    return dialect, Probe(facts=facts, usage=usage, longest=longest, warnings=tuple(filter(None, warnings)))


def _key_source(endpoint: Endpoint) -> str:
    if endpoint.api_key_env or endpoint.azure.entra:
        return f"from {endpoint.api_key_env or 'Microsoft Entra ID'}"
    return "none"


def _structured_replies(dialect: Dialect, result: Answer) -> str:
    if dialect.structured == "none":
        return "by the prompt alone"
    return f"{dialect.words()}, {_schema_followed(result)}"


def _longest_reply(calls: Sequence[CallResult]) -> ProbeReply | None:
    """Return the reply with most tokens. If there are several it is the fastest."""
    answered = [(call.result.usage.completion, call.seconds) for call in calls if isinstance(call.result, Answer)]
    timed = [ProbeReply(tokens=tokens, seconds=seconds) for tokens, seconds in answered if tokens and seconds > 0]
    return max(timed, key=lambda reply: (reply.tokens, reply.tokens_per_s), default=None)


def control(max_tokens_field: str) -> Question:
    """Return a tiny question with a system message, which a server that works can answer in any form of reply."""
    return Question(messages=_MESSAGES, session=_SESSION, changes={max_tokens_field: _TOKENS})


def accept_probe(result: Answer | Problem, say: Callable[[Problem], str]) -> Answer:
    """Return the answer to a probe; raises ``ConfigError`` or ``BackboneUnavailable`` with what ``say`` returns."""
    if isinstance(result, Problem):
        # A failing server may recover; if nothing listens, the address is probably wrong.
        passing = result.disposition is Disposition.RETRY and result.kind != "unreachable"
        raise (BackboneUnavailable if passing else ConfigError)(say(result))
    return result


def check_simulated(*, reported: bool, configured: bool) -> None:
    """Raise ``SettingError`` if a server reports that it is not a language model, and the settings do not."""
    if reported and not configured:
        raise SettingError(
            "simulated=false, but the server reports that it is not a language model: set simulated=true, which "
            "marks the run as simulated"
        )


def shorten_retries(retry: Retry) -> Retry:
    """Return the retries of a probe: fewer and faster than in a run, because the user is waiting for it to start."""
    return replace(
        retry,
        times=min(retry.times, _MOST_RETRIES),
        seconds=min(retry.seconds, _MOST_SECONDS),
        first_pause=min(retry.first_pause, _FIRST_PAUSE),
    )


def _seed_followed(ask: Ask, dialect: Dialect, sampling: Sampling) -> tuple[str, Usage | None]:
    """Return what is known of ``seed``, and the usage of the last reply."""
    fields: dict[str, Any] = {} if sampling.temperature is None else {"temperature": 1.0}
    fields |= {sampling.max_tokens_field: _TOKENS, "seed": _SEED}
    question = Question(messages=PROMPT, session=_SESSION, changes=fields)
    first = ask(question, dialect).result
    if isinstance(first, Problem):
        return _REFUSED if first.kind == REFUSED else _UNKNOWN, None
    if len(first.text.split()) < _TELLING_WORDS:
        return _UNKNOWN, first.usage
    second = ask(question, dialect).result
    if isinstance(second, Problem):
        return _UNKNOWN, first.usage
    return _FOLLOWED if second.text.strip() == first.text.strip() else _IGNORED, second.usage


def _first_taken(dialects: Sequence[Dialect], ask: Callable[[Dialect], CallResult]) -> tuple[Dialect, CallResult]:
    """Return the first dialect that the server does not refuse, or the last one with its refusal.

    If the server accepts none, all are tried again without a system role.
    """
    refused: list[tuple[Dialect, CallResult]] = []
    for dialect in dialects:
        outcome = ask(dialect)
        refused.append((dialect, outcome))
        if not isinstance(outcome.result, Problem) or outcome.result.kind != REFUSED:
            return dialect, outcome
        if refuses_system_role(outcome.result):
            break
    if dialects[0].system_role:
        dialect, outcome = _first_taken([replace(candidate, system_role=False) for candidate in dialects], ask)
        if not isinstance(outcome.result, Problem):
            return dialect, outcome
    return refused[-1]


def _schema_followed(answer: Answer) -> str:
    try:
        parse(split_thoughts(answer.text).said, _Ready)
    except ValueError:
        return "accepted, but the reply did not follow it"
    return "followed"


def _thoughts_warning(first: Answer, limit: int | None, ask: Callable[[int], Answer | Problem]) -> str:
    """Return a warning about a reply that has only thoughts, or "".

    Such a reply has two causes. The server has a reasoning parser and the model does not think: then every reply will
    be empty, and the run must not start. Or the model thinks and reached the limit of the reply: then the user is
    warned. A longer second call tells one from the other.

    ``limit`` is the most tokens of a reply (``None``: no limit is sent); ``ask`` sends the request with another one.
    Raises ``ConfigError`` if the server reports whole replies as reasoning.
    """
    if not first.only_thoughts:
        return ""
    was_cut, room = first.ended == "length", max(limit or 0, _ROOM)
    second = first if was_cut and room == limit else ask(room)
    if isinstance(second, Problem):  # it may not take so long a reply
        second = first
    if second.only_thoughts and second.ended != "length":
        raise ConfigError(f"the server answers, but its replies have no text: {explain_all_reasoning()}")
    if not was_cut:
        return ""
    setting = "the server's own limit" if limit is None else f"backbone.sampling.max_tokens={limit}"
    return (
        f"The model's thoughts took all tokens of its reply, and no text was left: raise {setting}, or switch thinking "
        "off (backbone.extra_body.chat_template_kwargs.enable_thinking=false, or as the model's page says)."
    )


def _model_warning(answered: str, endpoint: Endpoint) -> str:
    """Return a warning if another model answers than the requested one, or ""."""
    if is_same_model(endpoint.model, answered):
        return ""
    if endpoint.azure.api_version and endpoint.azure.deployment is None:
        fix = f"set backbone.model={answered} and backbone.azure.deployment={endpoint.model} if that is meant"
    else:
        fix = f"set backbone.model={answered} if that is meant, or correct the server"
    return f"Asked for {endpoint.model}, {answered} answers: {fix}."
