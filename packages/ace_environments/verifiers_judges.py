"""Lets the judges of ``verifiers`` call the run's model: they would open clients of their own."""

from __future__ import annotations

import json
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import verifiers.v1.judge as judges
from verifiers.v1.judges import decision

from ace_bench.core.task import ReplyRequest
from ace_bench.core.types import Message
from ace_environments.host import Ask, fault

_ASK: ContextVar[Ask] = ContextVar("ask")


def judge_by(ask: Ask) -> None:
    """Send the calls of judges to ``ask``, for what runs in this context from now on."""
    judges.build_async_openai = decision.build_async_openai = _Client
    _ASK.set(ask)


class _Client:
    """The part of OpenAI's client that judges use."""

    def __init__(self, config: Any):
        del config  # address and key are those of the run's backbone
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=_create))
        self.beta = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(parse=_parse)))

    async def __aenter__(self) -> _Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def post(self, *_: Any, **__: Any) -> Any:
        raise fault("scorer", "the judge needs an evaluations endpoint of its own, which is not supported")


async def _create(*, messages: list[dict[str, Any]], **_: Any) -> Any:
    return _completion(await _said(messages))


async def _parse(*, messages: list[dict[str, Any]], response_format: Any, **_: Any) -> Any:
    form = json.dumps(response_format.model_json_schema())
    asked = {"role": "user", "content": f"Reply with one JSON object of this schema and nothing else:\n{form}"}
    text = await _said([*messages, asked])
    start, end = text.find("{"), text.rfind("}")
    return _completion(text, response_format.model_validate_json(text[start : end + 1]))


async def _said(messages: list[dict[str, Any]]) -> str:
    sent = tuple(Message(role=str(one["role"]), content=_text(one.get("content"))) for one in messages)
    return (await _ASK.get()(ReplyRequest(messages=sent))).content


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return str(content or "")


def _completion(text: str, parsed: Any = None) -> Any:
    message = SimpleNamespace(content=text, parsed=parsed, refusal=None)
    return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")], usage=None)
