"""One tiny call that checks whether an endpoint accepts its settings, before a run spends anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from ace_bench.backbones.openai_compatible.attempts import CallResult
from ace_bench.backbones.openai_compatible.dialects import Dialect, refuses_format, refuses_system_role
from ace_bench.backbones.openai_compatible.endpoint import Endpoint
from ace_bench.backbones.openai_compatible.error_hints import explain
from ace_bench.backbones.openai_compatible.outcomes import priced
from ace_bench.backbones.openai_compatible.problems import Disposition, Problem
from ace_bench.backbones.openai_compatible.replies import Answer
from ace_bench.backbones.openai_compatible.settings import Retry
from ace_bench.core.errors import BackboneUnavailable, ConfigError
from ace_bench.core.replies import parse, schema_of
from ace_bench.core.types import Message, Probe, Record
from ace_bench.store.prices import PriceCard

_MOST_RETRIES, _MOST_SECONDS, _FIRST_PAUSE = 3, 60, 0.2
"""Fewer and faster retries than in a run, because the user is waiting for the run to start."""


class _Ready(msgspec.Struct):
    """The reply that the probe requests; the text is there to have something to bound."""

    ready: bool
    note: str = ""


_MESSAGES = (
    Message(role="system", content="You reply with one JSON object."),
    Message(role="user", content='Reply with this JSON object and nothing else: {"ready": true, "note": "ok"}'),
)

Ask = Callable[[Sequence[Message], Record | None, Retry, Dialect], CallResult]


SIMULATED = "simulated"
"""Key of the fact that a server reports it is not a language model, as the embedded reader's server does."""


def probe(
    ask: Ask, *, endpoint: Endpoint, dialects: Sequence[Dialect], prices: PriceCard, retry: Retry
) -> tuple[Dialect, Probe]:
    """Try the dialects until the server takes one; return it and the findings.

    Raises ``ConfigError`` with the fix if the server refuses the call, and ``BackboneUnavailable`` where it fails and
    may recover. A malformed answer does not fail the probe; only a refused setting or an unreachable server does.
    """
    secrets = endpoint.ready()
    patience = replace(
        retry,
        times=min(retry.times, _MOST_RETRIES),
        seconds=min(retry.seconds, _MOST_SECONDS),
        first_pause=min(retry.first_pause, _FIRST_PAUSE),
    )
    dialect, outcome = _first_taken(dialects, lambda one: ask(_MESSAGES, schema_of(_Ready), patience, one))
    result = outcome.result
    if isinstance(result, Problem):
        # A failing server may recover; if nothing listens, the address is probably wrong.
        passing = result.disposition is Disposition.RETRY and result.kind != "unreachable"
        kind = BackboneUnavailable if passing else ConfigError
        raise kind(f"the backbone does not answer: {explain(result, endpoint)}")
    usage = priced(outcome, prices)
    facts = {
        "endpoint": endpoint.base_url,
        "key": f"from {endpoint.api_key_env or 'Microsoft Entra ID'}"
        if endpoint.api_key_env or endpoint.azure.entra
        else "none",
        "model": secrets.hide(result.model) or endpoint.model,
        "structured replies": f"{dialect.words()}, {_schema_followed(result)}"
        if dialect.structured != "none"
        else "by the prompt alone",
        "tokens": "reported" if None not in (usage.prompt, usage.completion) else "not reported: n/a in all tables",
        "cached tokens": "reported" if usage.cached is not None else "not reported by this call",
        "prices": "known" if usage.usd is not None else "unknown: dollars are n/a",
        "latency": f"{outcome.seconds:.2f} s",
    }
    if outcome.retries:
        facts["retries"] = str(outcome.retries)
    if result.simulated:
        facts[SIMULATED] = "yes"
    return dialect, Probe(facts=facts, usage=usage)


def _first_taken(dialects: Sequence[Dialect], ask: Callable[[Dialect], CallResult]) -> tuple[Dialect, CallResult]:
    """Return the first dialect that the server does not refuse, or the last with its refusal."""
    dialect, *others = dialects
    outcome = ask(dialect)
    if isinstance(outcome.result, Problem) and dialect.system_role and refuses_system_role(outcome.result):
        return _first_taken([replace(one, system_role=False) for one in dialects], ask)
    if others and isinstance(outcome.result, Problem) and refuses_format(outcome.result):
        return _first_taken(others, ask)
    return dialect, outcome


def _schema_followed(answer: Answer) -> str:
    try:
        parse(answer.text, _Ready)
    except ValueError:
        return "accepted, but the reply did not follow it"
    return "followed"
