"""The reader as an agent on apps: takes the next step from the conversation so far.

With ``attention`` it is a careful and forgetful agent, which works in small steps and looks an API up before it calls
it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ace_bench.backbones.embedded.items import choose
from ace_bench.backbones.embedded.kinds import entries_of
from ace_bench.backbones.embedded.kinds.queries import API, CodeItem, described_apis, next_code, read_step
from ace_bench.backbones.embedded.lessons import Entry, one_line
from ace_bench.backbones.embedded.prompt_parser import PLAIN, parse_prompt, parts_under_headings, read_bullets
from ace_bench.core.python_text import read_python
from ace_bench.core.types import Message

_MARK = "apis.supervisor.complete_task"
_QUESTION = re.compile(r"^<question>[ \t]*$", re.MULTILINE)
_TASK = re.compile(r"^(?:[\w' ]{0,40}\b)?[Tt]ask(?: is)?:\s*(\S.*)$", re.MULTILINE)


class Scene(NamedTuple):
    """An unfinished task. Message ``task_index`` of the conversation states it."""

    messages: Sequence[Message]
    task_index: int
    question: str
    entries: tuple[Entry, ...]

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Pairs of code and output. Replies without code are left out."""
        later = self.messages[self.task_index + 1 :]
        steps = (
            read_step(f"{reply.content}\n{output.content}")
            for reply, output in zip(later[::2], later[1::2], strict=False)
        )
        return [step for step in steps if step[0]]


def act(messages: Sequence[Message], attention: int | None = None) -> str | None:
    """Take the next step in an agent's conversation; ``None`` if the messages are not one.

    With ``attention`` the code is run piece by piece (see ``stepwise``).
    """
    scene = _read_scene(messages)
    if scene is None:
        return None
    steps = scene.steps
    best, cited = choose(CodeItem(cue=one_line(scene.question), apis=described_apis(steps)), scene.entries)
    thought, code = next_code(best, steps)
    if attention is not None and code == best:
        listed = f"{messages[0].content}\n{messages[-1].content}"  # where a memory may stand
        code = next_step(code, steps, attention=attention, listed=listed)
    relied = "".join(f" [{name}]" for name in cited)
    return f"{thought}{relied}\n\n```python\n{code}\n```"


def _read_scene(messages: Sequence[Message]) -> Scene | None:
    if not any(_MARK in message.content for message in messages):
        return None
    index = next((n for n, m in enumerate(messages) if m.role == "user" and _QUESTION.search(m.content)), None)
    if index is None:
        return _read_dialogue(messages)
    if messages[0].role != "system" or _MARK not in messages[0].content:
        return None
    parts = parse_prompt([messages[0], messages[index]])
    return Scene(messages, index, parts.question, entries_of(parts))


def _read_dialogue(messages: Sequence[Message]) -> Scene | None:
    """A conversation without tags: instructions, worked examples, and finally a line with the task."""
    statements = [(n, match) for n, m in enumerate(messages) if m.role == "user" and (match := _TASK.search(m.content))]
    if not statements:
        return None
    index, match = statements[-1]
    head = next((n for n, message in enumerate(messages) if message.role == "assistant"), index)
    instructions = [*messages[: min(head, index)], messages[index]]
    if parse_prompt(instructions).form is not PLAIN:
        return None  # the prompt is about an attempt
    texts = (parts_under_headings(message.content)[0].get("playbook", message.content) for message in instructions)
    advice = Entry(id="", content=instructions[-1].content[match.end() :])
    bullets = tuple(bullet for text in texts for bullet in read_bullets(text))
    return Scene(messages, index, match[1], (*bullets, advice))


_LOOKED_UP = re.compile(r"api_docs\.(show_api_descriptions|show_api_doc)\(([^()\n]*)\)")
_LINES = re.compile(r"^- step \d+: .*", re.MULTILINE)
_DOCS = "api_docs"


def next_step(code: str, steps: Sequence[tuple[str, str]], *, attention: int, listed: str) -> str:
    """Return the next look-up, or the next piece of ``code``.

    Before a piece is run, the descriptions of its apps and the documentation of its APIs are looked up, unless a
    look-up is among the newest ``attention`` steps, was made since the last piece, or is ``listed`` as known.
    """
    ran = [step for step, _ in steps]
    pieces = list(_pieces(code))
    done = sum(piece in ran for piece in pieces)
    if done == len(pieces):
        return code
    last = max((n for n, step in enumerate(ran) if step in pieces), default=-1)
    recent = ran[min(last + 1, max(0, len(ran) - attention)) :]
    looked_up = (call for text in [*recent, *_LINES.findall(listed)] for call in _LOOKED_UP.findall(text))
    lookups = {f"{name}({arguments})" for name, arguments in looked_up}
    missing = next((lookup for lookup in _needed_lookups(pieces[done]) if lookup not in lookups), None)
    return pieces[done] if missing is None else f"print(apis.{_DOCS}.{missing})"


def _pieces(code: str) -> Iterator[str]:
    """Cut code after each top-level statement that uses an API. The last piece takes the remaining lines."""
    lines, start = code.splitlines(), 0
    tree = read_python(lambda: ast.parse(code))
    ends = [statement.end_lineno or 0 for statement in tree.body if API.search(ast.unparse(statement))]
    for end in [*ends[:-1], len(lines)]:
        yield "\n".join(lines[start:end]).strip("\n")
        start = end


def _needed_lookups(piece: str) -> Iterator[str]:
    for app, api in dict.fromkeys(API.findall(piece)):
        yield f"show_api_descriptions(app_name='{app}')"
        yield f"show_api_doc(app_name='{app}', api_name='{api}')"
