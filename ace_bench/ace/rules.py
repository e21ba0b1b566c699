"""ACE that learns strategies from tool executions by rules, without a model: ``method.reflector=rules``.

After the architecture analysis of an ACE engine for a coding assistant ("Phase 2: Add Reflection", "Phase 3: Playbook
Integration"). Which tools there are, and how a failure shows, is declared in ``configs/tools``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import msgspec

from ace_bench.ace.ace import Curator, Reflector
from ace_bench.ace.editing import Insight
from ace_bench.ace.replies import BulletTag, Delta, Lesson
from ace_bench.core.errors import SettingError
from ace_bench.core.method import Arena
from ace_bench.core.python_text import read_python
from ace_bench.core.tool_calls import ActionCall, read_action
from ace_bench.core.tool_rules import ToolRules
from ace_bench.core.types import Rollout, Step, Turn
from ace_bench.playbook.apply import Add, Operation, Tag, Votes
from ace_bench.playbook.bullets import comparable
from ace_bench.playbook.playbook import Playbook

Outcome = Literal["success", "error", "partial"]

ERROR_HANDLING = "error_handling"
"""The category of failures and recoveries; an order of calls belongs to the app of its last call but one."""

_TAGS: dict[Outcome, str] = {"success": "helpful", "error": "harmful", "partial": "neutral"}
_LONGEST_ERROR = 200
_EXCEPTION = re.compile(r"^\w*(?:Error|Exception): .*", re.MULTILINE | re.DOTALL)
_OWN = re.compile(r"[\w.+-]+@[\w.-]+|\b\d{4,}\b")
"""Parts of an error that belong to one task: addresses and long numbers. A status code has three digits."""


class Strategy(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson for the playbook; ``worked`` tells what led somewhere from a warning."""

    category: str
    content: str
    worked: bool


class ExecutionLesson(msgspec.Struct, frozen=True, kw_only=True):
    """What the executions of one attempt teach."""

    outcome: Outcome
    strategies: tuple[Strategy, ...]

    @property
    def tag(self) -> str:
        """The vote for the bullets that the attempt used."""
        return _TAGS[self.outcome]

    @property
    def text(self) -> str:
        """The lesson as a reflection, for a new attempt."""
        return "\n".join([f"Outcome: {self.outcome}", *(strategy.content for strategy in self.strategies)])


@dataclass(frozen=True, kw_only=True)
class _Step:
    """One action: its tool calls in their order, and the error that it ended in, ``None`` for none."""

    calls: tuple[ActionCall, ...]
    observation: str
    error: str | None

    @cached_property
    def blamed(self) -> ActionCall | None:
        """The call that the traceback shows; ``None`` if no tool failed."""
        traced_calls = (call for call in reversed(self.calls) if call.tool in self.observation)
        return None if self.error is None else next(traced_calls, None)


def reflect_on_executions(rollout: Rollout, tools: ToolRules) -> ExecutionLesson | None:
    """Return the lesson of an agent's attempt by the rules of its tools, ``None`` if it is not worth learning from.

    Worth learning are attempts with two or more tool calls and those with a failure; a single look-up is not. The
    outcome is the verdict where ``labels`` shows one: right is a success, wrong a ``partial`` one if the task was
    completed. Where it is hidden, a completed task is a success if no step failed, else ``partial``. An attempt that
    ended otherwise is an ``error``. Gold answers and test reports are never read.
    """
    steps = [_read_step(turn, tools) for turn in rollout.attempt.trajectory if turn.action]
    failed = any(step.error is not None for step in steps)
    if not failed and sum(len(step.calls) for step in steps) < 2:
        return None
    outcome = _outcome(rollout, failed=failed)
    learnt = [*_failures(steps), *(_find_order(steps) if outcome == "success" else ())]
    return ExecutionLesson(outcome=outcome, strategies=tuple(dict.fromkeys(learnt)))


def _read_step(turn: Turn, tools: ToolRules) -> _Step:
    calls = tuple(call for statement in read_action(turn.action, tools) for call in statement.calls)
    error = None if tools.succeeded(turn.observation) else _error(turn.observation)
    return _Step(calls=calls, observation=turn.observation, error=error)


def _outcome(rollout: Rollout, *, failed: bool) -> Outcome:
    completed, correct = rollout.attempt.ended == "completed", rollout.feedback.correct
    if correct or (correct is None and completed and not failed):
        return "success"
    return "partial" if completed else "error"


def _failures(steps: Sequence[_Step]) -> Iterable[Strategy]:
    """Yield each failure of a tool, with what came between it and the next call of the tool that worked."""
    for index, step in enumerate(steps):
        blamed = step.blamed
        if blamed is None:
            continue
        later = [call for later_step in steps[index + 1 :] if later_step.error is None for call in later_step.calls]
        tools = [call.tool for call in later]
        worked, lesson = blamed.tool in tools, "Check what it takes before calling it."
        if worked:
            at = tools.index(blamed.tool)
            between = f", after {_list_calls(_distinct(later[:at]))}" if at else ""
            lesson = f"It worked as `{_spelling(later[at])}`{between}."
        content = f"`{_spelling(blamed)}` can fail with: {step.error}\n{lesson}"
        yield Strategy(category=ERROR_HANDLING, content=content, worked=worked)


def _find_order(steps: Sequence[_Step]) -> Iterable[Strategy]:
    """Yield the order of the calls that worked, unless there is only one.

    Its category is the tool's app, or the tool itself. The last call completes the task, so the one before says where.
    """
    calls = _distinct(call for step in steps if step.error is None for call in step.calls)
    if len(calls) >= 2:
        category = calls[-2].tool.partition(".")[0]
        yield Strategy(category=category, content=f"This order of calls worked: {_list_calls(calls)}.", worked=True)


def _distinct(calls: Iterable[ActionCall]) -> list[ActionCall]:
    """Return the first call of each tool."""
    first: dict[str, ActionCall] = {}
    for call in calls:
        first.setdefault(call.tool, call)
    return list(first.values())


def _list_calls(calls: Iterable[ActionCall]) -> str:
    return ", then ".join(f"`{_spelling(call)}`" for call in calls)


def _spelling(call: ActionCall) -> str:
    """Return a call with the names of its arguments: their values belong to one task."""
    try:
        read = read_python(lambda: ast.parse(f"call({call.query})", mode="eval")).body
    except (SyntaxError, ValueError):
        return call.tool
    keywords = [word.arg for word in read.keywords if word.arg] if isinstance(read, ast.Call) else []
    return f"{call.tool}({', '.join(keywords)})"


def _error(observation: str) -> str:
    """Return what an output says went wrong, without what belongs to one task."""
    match = _EXCEPTION.search(observation)
    text = match[0] if match else observation.strip().rpartition("\n")[2]
    line = _OWN.sub("...", " ".join(text.split()))
    return line if len(line) <= _LONGEST_ERROR else f"{line[:_LONGEST_ERROR]}..."


class RulesReflector(Reflector):
    """Takes the strategies of an attempt as the lesson and votes by the attempt's outcome."""

    templates = ()

    def reflect(self, playbook: Playbook, rollout: Rollout, insight: Insight, step: Step, arena: Arena) -> Insight:
        """Return the insight with the lesson, if the attempt is worth one."""
        return self._learn(rollout, insight, arena)

    def _learn(self, rollout: Rollout, insight: Insight, arena: Arena) -> Insight:
        lesson = _lesson(rollout, arena)
        if lesson is None:
            return insight
        tags = [BulletTag(id=bullet, tag=lesson.tag) for bullet in rollout.attempt.cited]
        return insight.with_lesson(rollout, Lesson(lesson.text, tags))

    def conclude(self, last: Rollout, insight: Insight, arena: Arena) -> Insight:
        """Learn from a retry that was right, too: it shows what worked, and no lesson costs a call."""
        return self._learn(last, insight, arena) if last.fault is None and last not in insight.rollouts else insight

    def check(self, arena: Arena) -> None:
        """Reject agents without tools."""
        if arena.tools is None:
            raise SettingError(
                "reflector=rules needs an agent that acts by tools (task=appworld): questions that are answered in one "
                "turn have no tool executions; set reflector=on"
            )


class RulesCurator(Curator):
    """Adds new strategies, and votes for those that worked again."""

    templates = ()

    def propose(self, playbook: Playbook, insight: Insight, step: Step, arena: Arena) -> Delta:
        """Return the operations; a bullet that the attempt used has its vote by the outcome."""
        lessons = [_lesson(rollout, arena) for rollout in insight.rollouts]
        operations: list[Operation] = []
        for strategy in dict.fromkeys(strategy for lesson in lessons if lesson for strategy in lesson.strategies):
            votes = Votes(helpful=int(strategy.worked))
            bullet = playbook.index.find_by_content(comparable(strategy.content))
            if bullet is None:
                operations.append(Add(section=strategy.category, content=strategy.content, votes=votes))
            elif strategy.worked and bullet not in insight.rollouts[-1].attempt.cited:
                operations.append(Tag(id=bullet, votes=votes))
        return Delta(tuple(operations))


def _lesson(rollout: Rollout, arena: Arena) -> ExecutionLesson | None:
    return None if arena.tools is None else reflect_on_executions(rollout, arena.tools)
