"""Kind of question: call one of the offered tools; a lesson's call is made again with this question's values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from ace_bench.backbones.embedded.items import Index, Item
from ace_bench.backbones.embedded.kinds.queries import read_steps
from ace_bench.backbones.embedded.lessons import CALL, Lesson, one_line
from ace_bench.backbones.embedded.slots import Candidate, candidates_in, fill_slots
from ace_bench.backbones.embedded.words import content_stems, stem, tokens
from ace_bench.core.python_text import read_python
from ace_bench.core.types import Record

NO_CALL = ""
_LIST = re.compile(r"^Tools:\n((?:- \w+\(.*\n?)+)", re.MULTILINE)
_LISTED = re.compile(r"^- (\w+)\(", re.MULTILINE)
_FAILED = ("Error", "Traceback")
Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class ToolItem(Item):
    """A question and the tools that may answer it, by name.

    Calls in ``tried`` are not made again; ``hint`` is what their errors said.
    """

    verb = CALL

    tools: Mapping[str, Record] = field(default_factory=dict)
    tried: Set[str] = frozenset()
    hint: str = ""

    def fill(self, lesson: Lesson, index: Index) -> tuple[str, float] | None:
        text, fit = fill_slots(lesson.cue, lesson.payload, self.cue, index)
        text = self.payload(text)
        return (text, fit) if text and text not in self.tried else None

    def guesses(self) -> Mapping[str, float]:
        """Score every tool by the share of the words in its name and description that question or hint have."""
        question_stems = set(content_stems(tokens(f"{self.cue} {self.hint}")))
        scores = {NO_CALL: 0.0}
        for name, tool in self.tools.items():
            tool_stems = {*content_stems(tokens(str(tool.get("description", "")))), *map(stem, name.split("_"))}
            call = write_calls([(name, _arguments(tool.get("parameters") or {}, self.cue))])
            if tool_stems & question_stems and call not in self.tried:
                scores[call] = len(tool_stems & question_stems) / (len(tool_stems) + 1.0) / 2
        return scores

    def payload(self, answer: str) -> str:
        """The calls of an answer, "" if it is none or a tool is unknown."""
        calls = read_calls(answer)
        return write_calls(calls) if calls and all(name in self.tools for name, _ in calls) else ""

    def is_same(self, first: str, second: str) -> bool:
        return bool(self.payload(first)) and self.payload(first) == self.payload(second)


def lists_tools(background: str) -> bool:
    """Whether the background of a task lists tools."""
    return bool(read_tool_use(background, ""))


def read_tool_use(background: str, question: str) -> Sequence[ToolItem]:
    """Recognise a list of tools."""
    listed = _LIST.search(background)
    names = _LISTED.findall(listed[1]) if listed else []
    return [ToolItem(cue=one_line(question), tools={name: {} for name in names})] if names else []


def read_calling(trajectory: str) -> tuple[str, bool]:
    """The last calls of a trajectory, and whether they worked after others had failed."""
    steps = [(code, output) for code, output in read_steps(trajectory) if code]
    if not steps:
        return trajectory, False
    failed = [has_failed(output) for _, output in steps]
    return one_line(steps[-1][0].replace("\n", "; ")), any(failed) and not failed[-1]


def has_failed(output: str) -> bool:
    """Whether a tool's output is an error."""
    return output.lstrip().startswith(_FAILED)


def read_calls(text: str) -> list[Call]:
    """Read ``name(key='value'); other(n=1)``; empty for anything else. Nothing is run."""
    try:
        return [*_calls(read_python(lambda: ast.parse(text.strip())))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _calls(tree: ast.Module) -> Iterator[Call]:
    for node in tree.body:
        if not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
        ):
            raise ValueError("not a call")
        if node.value.args or any(keyword.arg is None for keyword in node.value.keywords):
            raise ValueError("arguments without a name")
        values = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.value.keywords}
        yield node.value.func.id, values


def write_calls(calls: Sequence[Call]) -> str:
    """Write calls as lessons hold them."""
    return "; ".join(f"{name}({', '.join(f'{k}={v!r}' for k, v in values.items())})" for name, values in calls)


def _arguments(parameters: Record, question: str) -> Mapping[str, Any]:
    """Fill the required parameters from a question: each takes the unused value that fits it best."""
    free = list(candidates_in(question))
    arguments: dict[str, Any] = {}
    for name in parameters.get("required", ()):
        kind = str(parameters.get("properties", {}).get(name, {}).get("type", "string"))
        best = max(free, key=lambda one: _fit(one, name, kind), default=None)
        if best is not None:
            free.remove(best)
            arguments[name] = _value(best.value, kind)
    return arguments


def _fit(candidate: Candidate, name: str, kind: str) -> float:
    shape = {"number": 0.0, "word": 0.0, "quoted": 2.0, "name": 2.0}[candidate.shape]
    if kind in ("integer", "number"):
        shape = 3.0 * (candidate.shape == "number")
    return shape + (candidate.before == stem(name))


def _value(text: str, kind: str) -> Any:
    try:
        return {"integer": int, "number": float}.get(kind, str)(text)
    except ValueError:
        return text
