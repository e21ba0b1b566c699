"""What an agent did in one run, and the entries of a playbook that a reflector without a model writes of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.types import Attempt, Turn
from ace_bench.playbook.apply import Add, Limits, Operation, Tag, Votes, apply
from ace_bench.playbook.bullets import Bullet, clean, comparable, section_name
from ace_bench.playbook.playbook import Playbook

Outcome = Literal["success", "failure", "neutral"]
_COUNTERS = {"success": "helpful", "failure": "harmful", "neutral": "neutral"}
_MARKS: Mapping[Outcome, str] = {"success": "[+] ", "failure": "[-] ", "neutral": "[o] "}
_LONGEST = 240
_LIMITS = Limits(kinds=("ADD", "TAG"), repeats=True)


@dataclass(frozen=True, kw_only=True)
class DeltaEntry:
    """One observation: the playbook section it belongs to (``category``), its text, and how it went."""

    category: str
    content: str
    outcome: Outcome = "neutral"


Reflect = Callable[[AIMessage], Iterable[Any]]
"""Returns what one reply teaches: values with the fields of ``DeltaEntry``."""
Refine = Callable[[Playbook, Collection[str], int], Playbook]
"""Returns a playbook refined at a step, given the ids of its bullets with new content."""


def observe(latest: AIMessage) -> Sequence[DeltaEntry]:
    """Note a reply: its tool calls, or else its first 240 characters.

    It calls no model and never says that something succeeded or failed, because a reply alone does not show it.
    """
    event = f"Called {'; '.join(calls_in_text(latest))}." if latest.tool_calls else str(latest.text).strip()
    content = event if len(event) <= _LONGEST else f"{event[: _LONGEST - 3]}..."
    return [DeltaEntry(category="tool_use" if latest.tool_calls else "final_answer", content=content)] if event else []


def calls_in_text(message: AIMessage) -> list[str]:
    """Return a reply's tool calls as ``name(key='value')``."""
    return [
        f"{call['name']}({', '.join(f'{k}={v!r}' for k, v in call['args'].items())})" for call in message.tool_calls
    ]


def entry_record(entry: Any) -> dict[str, str]:
    """Return an entry as JSON; raises ``ValueError`` for what has not the fields of ``DeltaEntry``."""
    try:
        record = {"category": str(entry.category), "content": str(entry.content), "outcome": str(entry.outcome)}
    except AttributeError as error:
        raise ValueError(f"reflect must return DeltaEntry values, not {type(entry).__name__}") from error
    if record["outcome"] not in _COUNTERS:
        raise ValueError(f"the outcome of an entry is one of {', '.join(_COUNTERS)}, not {record['outcome']!r}")
    return record


def with_entries(playbook: Playbook, entries: Sequence[Mapping[str, str]], *, step: int, refine: Refine) -> Playbook:
    """Add entries and refine. One with the category, content and outcome of a bullet adds to that bullet's counter."""
    touched: list[str] = []
    for entry in entries:
        sections = Playbook.start([*playbook.sections, entry["category"]]).sections
        if sections != playbook.sections:
            playbook = playbook.replace_fields(sections=sections)
        twin = _find_same(playbook, entry)
        votes = Votes(**{_COUNTERS[entry["outcome"]]: 1})
        new = Add(section=entry["category"], content=entry["content"], votes=votes)
        operation: Operation = Tag(id=twin, votes=votes) if twin else new
        applied = apply(playbook, [operation], step=step, sources=(), limits=_LIMITS, count=estimate_tokens)
        playbook = applied.playbook
        touched += applied.touched
    return refine(playbook, touched, step)


def _find_same(playbook: Playbook, entry: Mapping[str, str]) -> str | None:
    """Return the id of the bullet with an entry's category, content and outcome."""
    content, section, others = comparable(clean(entry["content"])), section_name(entry["category"]), list[str]()
    while (bullet_id := playbook.index.find_by_content(content, besides=others)) is not None:
        bullet = playbook.index.get(bullet_id)
        if bullet is not None and bullet.section == section and outcome_of(bullet) == entry["outcome"]:
            return bullet_id
        others.append(bullet_id)
    return None


def outcome_of(bullet: Bullet) -> Outcome:
    """Return what most votes on a bullet say; ``neutral`` where helpful and harmful ones are equal."""
    return "success" if bullet.utility > 0 else "failure" if bullet.utility < 0 else "neutral"


def with_marks(playbook: Playbook) -> Playbook:
    """Return the playbook with ``[+]`` before what has worked, ``[-]`` before what has failed, ``[o]`` before others.

    A playbook in which nothing has worked or failed stays as it is.
    """
    if not any(bullet.utility for bullet in playbook.bullets):
        return playbook
    marked = [replace(bullet, content=_MARKS[outcome_of(bullet)] + bullet.content) for bullet in playbook.bullets]
    return playbook.with_index(playbook.index.changed(put=marked))


_CITED = re.compile(r"\[([^\s\[\]]+-\d+)\]")
_ERROR = "Error"


def question_in(messages: Sequence[BaseMessage]) -> str:
    """Return the text of the newest message by a user; "" if there is none."""
    user_messages = (message for message in reversed(messages) if isinstance(message, HumanMessage))
    return next((str(m.text) for m in user_messages if m.additional_kwargs.get("lc_source") != "summarization"), "")


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
    text = "\n".join(str(reply.text) for reply in replies)
    answer = str(replies[-1].text) if replies and not replies[-1].tool_calls else None
    return Attempt(
        answer=answer,
        reply=answer or "",
        cited=tuple(name for name in dict.fromkeys(_CITED.findall(text)) if name in playbook.index),
        trajectory=tuple(_turns(replies, run)),
        ended="completed" if answer is not None else "steps",
    )


def _turns(replies: Sequence[AIMessage], run: Sequence[BaseMessage]) -> Iterator[Turn]:
    results = {message.tool_call_id: _result(message) for message in run if isinstance(message, ToolMessage)}
    for reply in replies:
        observed = "\n".join(results.get(str(call["id"]), "") for call in reply.tool_calls)
        yield Turn(thought=str(reply.text), action="\n".join(calls_in_text(reply)), observation=observed)


def _result(message: ToolMessage) -> str:
    """Return what a tool returned; a failure says so in its first word."""
    text = str(message.text)
    return f"{_ERROR}: {text}" if message.status == "error" and not text.startswith(_ERROR) else text


def _line(function: Mapping[str, Any]) -> str:
    names = ", ".join(function.get("parameters", {}).get("properties", {}))
    return f"- {function['name']}({names}): {' '.join(str(function.get('description', '')).split())}"
