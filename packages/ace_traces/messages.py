"""Messages as OpenAI, Anthropic, Inspect AI and OpenTelemetry write them, and chats: one JSON object an attempt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ace_bench.core.errors import DataError
from ace_traces.trace import Outcome, Reading, Role, Said, Trace

_ROLES: Mapping[str, Role] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "model"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
_CALLS, _TEXTS = ("tool_call", "tool_use"), ("text", "content", "reasoning", "response", "result")
_SCORES = ("score", "correct", "label", "rating", "reward")


def read_messages(messages: Iterable[Any], where: str) -> Iterator[Said]:
    """Yield what was said; raises ``DataError`` for what is not a message."""
    for place, message in enumerate(messages, 1):
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise DataError(f"{where}, message {place}: it must be an object with a role of {', '.join(_ROLES)}")
        content = message.get("content", message.get("parts"))
        parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        calls = [*(message.get("tool_calls") or ()), message.get("function_call")]
        calls += [part for part in parts if part.get("type") in _CALLS]
        error = message.get("error")
        texts = [message.get("reasoning_content"), f"Error: {text_of(error)}" if error else content]
        yield Said(
            role=_ROLES[message["role"]],
            text="\n".join(filter(None, (*map(text_of, texts), text_of(message.get("refusal"))))),
            action="\n".join(_call(call) for call in calls if isinstance(call, dict)),
        )


def text_of(content: Any) -> str:
    """Return a content as text, without calls; what is no text is named by its kind, such as ``[image_url]``."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, dict):
        if content.get("type") in _CALLS:
            return ""
        found = next((content[name] for name in (*_TEXTS, "message") if content.get(name)), None)
        return f"[{content.get('type', 'data')}]" if found is None else text_of(found)
    return "" if content is None else str(content)


def _call(call: Mapping[str, Any]) -> str:
    """Return a tool call as ``name(key='value')``; arguments that are not an object stay as they are."""
    called = call["function"] if isinstance(call.get("function"), dict) else call
    name = str(called.get("name") or call.get("function"))
    given = called.get("arguments", called.get("input")) or {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return f"{name}({given})"
    if not isinstance(given, Mapping):
        return f"{name}({given!r})"
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})"


def read_chat(row: Any, reading: Reading, where: str) -> Trace:
    """Return the trace of a row; raises ``DataError`` that says what is missing."""
    if not isinstance(row, dict) or not isinstance(row.get("messages"), list):
        raise DataError(f'{where}: a chat is an object with a list "messages"')
    given = row.get(reading.feedback)
    known = {**given, **row} if isinstance(given, dict) else row
    names = (reading.score,) if reading.score else _SCORES
    value = next((known[name] for name in names if known.get(name) is not None), None)
    words = [given.get(key) for key in ("comment", "text", "message")] if isinstance(given, dict) else [given]
    outcome = Outcome(
        score=None if value is None else reading.scaled(value, where),
        feedback=text_of(words),
        reference=text_of(row.get(reading.reference)),
    )
    return Trace.build(text_of(row.get("id")), read_messages(row["messages"], where), outcome, where=where)
