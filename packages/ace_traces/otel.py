"""Spans of OpenTelemetry's conventions for generative AI in OTLP's JSON form, grouped into conversations.

A conversation is a ``gen_ai.conversation.id``, or else a trace. Its span with the most messages has all
of it; others hold parts, such as the calls before its last one. Scores are ``gen_ai.evaluation.result`` events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ace_bench.core.errors import DataError
from ace_traces.messages import read_messages, text_of
from ace_traces.trace import Outcome, Reading, Said, Trace

Attributes = Mapping[str, Any]
CONTENTS = ("resourceSpans", "resourceLogs")
"""The keys of an export, of which it has one."""
_CONVERSATION, _EVALUATION = "gen_ai.conversation.id", "gen_ai.evaluation.result"
_RIGHT, _WRONG = ("pass", "passed", "correct", "true", "yes"), ("fail", "failed", "incorrect", "false", "no")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A span or a log record: the trace it belongs to, its attributes, when it ended, and the error it ended with."""

    trace: str
    attributes: Attributes
    ended: int = 0
    error: str = ""
    evaluations: Sequence[Attributes] = field(default=())

    @property
    def conversation(self) -> str | None:
        """The id of the conversation it belongs to, if it says so."""
        found = self.attributes.get(_CONVERSATION)
        return None if found is None else str(found)


def read_entries(export: Any, where: str) -> Iterator[Entry]:
    """Yield what an export holds of generative AI; raises ``DataError`` if it is not one."""
    if not isinstance(export, dict) or not any(isinstance(export.get(key), list) for key in CONTENTS):
        raise DataError(f"{where}: an export of OpenTelemetry is an object with {' or '.join(CONTENTS)}")
    try:
        for span in _inner(export.get("resourceSpans", ()), "scopeSpans", "spans"):
            status, found = span.get("status", {}), _attributes(span)
            failed = status.get("code") in (2, "STATUS_CODE_ERROR")
            if any(name.startswith("gen_ai.") for name in found):
                yield Entry(
                    trace=span["traceId"],
                    attributes=found,
                    ended=int(span.get("endTimeUnixNano") or 0),
                    error=str(status.get("message") or "error") if failed else "",
                    evaluations=[_attributes(one) for one in span.get("events", ()) if one.get("name") == _EVALUATION],
                )
        for record in _inner(export.get("resourceLogs", ()), "scopeLogs", "logRecords"):
            found = _attributes(record)
            judges = _EVALUATION in (record.get("eventName"), found.get("event.name"))
            if judges or has_messages(found):
                ended = int(record.get("timeUnixNano") or 0)
                yield Entry(trace=record["traceId"], attributes=found, ended=ended, evaluations=[found] * judges)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{where}: not OTLP's JSON form: {type(error).__name__}: {error}") from error


def _inner(resources: Iterable[Any], scope: str, item: str) -> Iterator[Mapping[str, Any]]:
    return (one for resource in resources for part in resource.get(scope, ()) for one in part.get(item, ()))


def _attributes(holder: Mapping[str, Any]) -> Attributes:
    return {one["key"]: _value(one.get("value") or {}) for one in holder.get("attributes", ())}


def _value(typed: Mapping[str, Any]) -> Any:
    for kind, value in typed.items():
        if kind == "arrayValue":
            return [_value(one) for one in value.get("values", ())]
        if kind == "kvlistValue":
            return {one["key"]: _value(one["value"]) for one in value.get("values", ())}
        return int(value) if kind == "intValue" else value
    return None


def has_messages(attributes: Attributes) -> bool:
    """Whether attributes hold what was said; instrumentations leave it out unless they are asked for it."""
    return "gen_ai.output.messages" in attributes


def read_conversation(key: str, entries: Sequence[Entry], reading: Reading, where: str) -> Trace:
    """Return the conversation that entries of one ``key`` tell; raises ``DataError``."""
    if not any(has_messages(entry.attributes) for entry in entries):
        raise DataError(f"{where}: no span holds what was said: let the instrumentation capture message contents")
    conversations = [(_said_in(entry.attributes, where), entry) for entry in entries if has_messages(entry.attributes)]
    said, _ = max(conversations, key=lambda one: (len(one[0]), one[1].ended))
    evaluations = [found for entry in entries for found in entry.evaluations]
    failures = dict.fromkeys(entry.error for entry in entries if entry.error)
    outcome = Outcome(
        score=_score(evaluations, reading, where),
        feedback="\n".join(filter(None, map(_explain_score, evaluations))),
        observed="\n".join(f"Error: {one}" for one in failures),
    )
    return Trace.build(key, said, outcome, where=where)


def _said_in(attributes: Attributes, where: str) -> list[Said]:
    held = [_decode_list(attributes.get(f"gen_ai.{name}.messages"), where) for name in ("input", "output")]
    system = text_of(_decode_list(attributes.get("gen_ai.system_instructions"), where))
    first = [Said(role="system", text=system)] if system else []
    return [*first, *read_messages([one for messages in held for one in messages], where)]


def _decode_list(value: Any, where: str) -> list[Any]:
    """Return a list that a span holds as JSON, or as it is."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise DataError(f"{where}: messages that are not JSON: {error}") from error
    return found if isinstance(found, list) else []


def _score(evaluations: Sequence[Attributes], reading: Reading, where: str) -> float | None:
    for found in evaluations:
        if reading.score in (None, found.get("gen_ai.evaluation.name")):
            if (value := found.get("gen_ai.evaluation.score.value")) is not None:
                return reading.scaled(value, where)
            label = str(found.get("gen_ai.evaluation.score.label")).lower()
            if label in _RIGHT or label in _WRONG:
                return float(label in _RIGHT)
    return None


def _explain_score(found: Attributes) -> str:
    keys = ("name", "score.value", "score.label", "explanation")
    return ": ".join(str(found[key]) for key in (f"gen_ai.evaluation.{key}" for key in keys) if key in found)
