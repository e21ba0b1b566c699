"""What the authors' code does differently with replies and with a conversation that grew too long."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ace_bench.agents.conversation import AgentReply, Conversation
from ace_bench.core.types import Message

NO_ANSWER = "No final answer found"
"""The answer of a reply that has none."""

_CITED = re.compile(r"\[([a-z]{3,}-\d{5})\]")
_FINISH = re.compile(r"Finish\[([^\]]*)")
_DOUBLE_QUOTED = re.compile(r'"final_answer"\s*:\s*"([^"]*)"')
_SINGLE_QUOTED = re.compile(r"'final_answer'\s*:\s*'([^']*)'")
_UNQUOTED = re.compile(r"""["']final_answer["']\s*:\s*([^,}]+)""")
_SENTENCE_BOXED = re.compile(r"[Tt]he final answer is:?\s*\$?\\boxed(?=\{)")
_SENTENCE = re.compile(r"[Tt]he final answer is:?\s*([^\n.]+)")
_ONLY_BOXED = re.compile(r"\$?\\boxed\{([^}]+)\}\$?")


def official_answer(text: str) -> str:
    """Return the answer; raises ``ValueError`` or ``RecursionError`` where the authors' code breaks off, too."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return _from_text(text)
    return str(value.get("final_answer", NO_ANSWER)) if isinstance(value, dict) else _from_text(text)


def official_citations(text: str) -> tuple[str, ...]:
    """Return the bullet ids that stand in brackets by themselves, as often as they do; others are not seen."""
    return tuple(_CITED.findall(text))


def _from_text(text: str) -> str:
    finished = _read_finish(text)
    if finished is not None:
        return finished
    for pattern in (_DOUBLE_QUOTED, _SINGLE_QUOTED):
        if matches := pattern.findall(text):
            return str(matches[-1])
    if matches := _UNQUOTED.findall(text):
        return str(matches[-1]).strip().rstrip(",}")
    boxed = _SENTENCE_BOXED.search(text)
    if boxed is not None and (inner := _in_braces(text, boxed.end())):
        return inner
    if matches := _SENTENCE.findall(text):
        sentence = str(matches[-1]).strip()
        only = _ONLY_BOXED.fullmatch(sentence)
        return (only[1] if only else sentence).replace("$", "").strip() or NO_ANSWER
    return NO_ANSWER


def _read_finish(text: str) -> str | None:
    """Return what stands in the last ``Finish[...]`` that ends on its line."""
    closed = (line.rpartition("]")[0] for line in text.split("\n"))  # so that every match ends at a bracket
    answers = [answer for line in closed for answer in _FINISH.findall(line)]
    return answers[-1] if answers else None


def _in_braces(text: str, opening: int) -> str:
    depth = 0
    for brace in re.finditer(r"[{}]", text[opening:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[opening + 1 : opening + brace.start()]
    return ""


_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
_OPEN_BLOCK = re.compile(r".*```python\n(.*)", re.DOTALL)
_AFTER_REPLY = "\n\n"
_TASK = "Task: "
_OUTPUT = "Output:"
_KEPT_BLOCKS = 5
"""The last messages, whose outputs are never left out."""

Trim = Callable[[Sequence[Message]], tuple[Message, ...]]


def read_official_reply(text: str) -> AgentReply:
    """Find code as ``extract_code_and_fix_content`` of the official agents does.

    Code is what stands in the first closed block that opens with ```` ```python````, else what follows the last such
    opening. What the conversation keeps ends with that block, closed where the reply left it open.
    """
    closed = _BLOCK.search(text)
    if closed:
        return _reply(text[: closed.end()], closed[1])
    unclosed = _OPEN_BLOCK.match(text)
    if unclosed:
        return _reply(text + ("```" if text.endswith("\n") else "\n```"), unclosed[1])
    return _reply(text, "")


def _reply(text: str, code: str) -> AgentReply:
    return AgentReply(shown=text + _AFTER_REPLY, thought=text.partition("```python\n")[0].strip(), code=code.strip())


@dataclass(frozen=True, kw_only=True)
class OfficialConversation(Conversation):
    """A conversation that is shortened anew for each call, as ``trimmed_messages`` of the official agents does."""

    trim: Trim

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """What the model is sent."""
        return self.trim(self.whole)

    def trimmed(self, limit: int) -> OfficialConversation:
        """Return the conversation: it is shortened when it is sent."""
        return self


@dataclass(frozen=True, kw_only=True)
class OfficialTrimming:
    """Shortens what follows the instructions to ``limit`` characters, as the official agents do.

    First ``output_left_out`` replaces the oldest outputs, except in the last messages. Then the oldest pairs of
    messages go, and ``history_left_out`` ends the message that states the task. The instructions end with the message
    of index ``task``.
    """

    limit: int
    task: int
    output_left_out: str
    history_left_out: str

    def __call__(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages to send. They may exceed the limit if nothing more can be dropped."""
        before, after = list(messages[: self.task]), list(messages[self.task :])
        head, separator, _ = _text(after).partition(_TASK)
        uncounted = len(head + separator) if separator else 0
        index = 0
        while len(_text(after)) - uncounted > self.limit:
            output = next((i for i in range(index, len(after)) if _is_output(after[i])), len(after))
            if index < len(after) - _KEPT_BLOCKS and output < len(after):
                after[output] = replace(after[output], content=self.output_left_out)
                index = output + 1
            elif len(after) > 1:
                index = index if index >= len(after) - _KEPT_BLOCKS else len(after)
                after = [self._mark_left_out(after[0]), *after[2:]]
            else:
                break
        return (*before, *after)

    def _mark_left_out(self, task: Message) -> Message:
        if task.content.endswith(self.history_left_out):
            return task
        return replace(task, content=task.content + self.history_left_out)


def _is_output(message: Message) -> bool:
    return message.role == "user" and message.content.startswith(_OUTPUT)


def _text(messages: Sequence[Message]) -> str:
    return "".join(f"{message.role.upper()}:\n{message.content}" for message in messages)
