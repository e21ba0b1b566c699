"""What an agent did in one run, read from its messages, as the roles of ACE are shown it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.types import Attempt, Turn
from ace_langchain.entries import calls_in_text

_CITED = re.compile(r"\[([^\s\[\]]+-\d+)\]")
_ERROR = "Error"


def question_in(messages: Sequence[BaseMessage]) -> str:
    """Return the text of the newest message by a user; "" if there is none."""
    return next((str(m.text) for m in reversed(messages) if isinstance(m, HumanMessage) and not _is_summary(m)), "")


def task_text(system: str, tools: Iterable[BaseTool | dict[str, Any]]) -> str:
    """Return what all runs of an agent share: its system message and its tools, one on a line."""
    lines = [_line(convert_to_openai_tool(tool)["function"]) for tool in tools]
    listed = ["\n".join(["Tools:", *lines])] if lines else []
    return "\n\n".join(filter(None, [system.strip(), *listed]))


def attempt_in(messages: Sequence[BaseMessage], question: str, playbook: Playbook) -> Attempt:
    """Read the run that began with ``question``: its steps, its answer and the bullets that it names in brackets.

    Of a conversation that a summary has shortened, the steps that are left are read.
    """
    start = max(
        (n for n, m in enumerate(messages) if isinstance(m, HumanMessage) and str(m.text) == question), default=-1
    )
    run = messages[start + 1 :]
    replies = [message for message in run if isinstance(message, AIMessage)]
    said = "\n".join(str(reply.text) for reply in replies)
    answer = str(replies[-1].text) if replies and not replies[-1].tool_calls else None
    return Attempt(
        answer=answer,
        reply=answer or "",
        cited=tuple(name for name in dict.fromkeys(_CITED.findall(said)) if name in playbook.index),
        trajectory=tuple(_turns(replies, _results(run))),
        ended="completed" if answer is not None else "steps",
    )


def _turns(replies: Sequence[AIMessage], results: Mapping[str, str]) -> Iterator[Turn]:
    for reply in replies:
        observed = "\n".join(results.get(str(call["id"]), "") for call in reply.tool_calls)
        yield Turn(thought=str(reply.text), action="\n".join(calls_in_text(reply)), observation=observed)


def _results(messages: Sequence[BaseMessage]) -> Mapping[str, str]:
    """Return the results of tools by the ids of their calls; a failure says so in its first word."""
    found = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            text = str(message.text)
            failed = message.status == "error" and not text.startswith(_ERROR)
            found[message.tool_call_id] = f"{_ERROR}: {text}" if failed else text
    return found


def _line(function: Mapping[str, Any]) -> str:
    names = ", ".join(function.get("parameters", {}).get("properties", {}))
    return f"- {function['name']}({names}): {' '.join(str(function.get('description', '')).split())}"


def _is_summary(message: BaseMessage) -> bool:
    return message.additional_kwargs.get("lc_source") == "summarization"
