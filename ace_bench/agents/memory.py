"""Execution memory: what the steps of one rollout have found out, in short, for its later steps.

Findings are taken from code and output by the task's tool rules, without a call to a model. A memory lives as long as
its rollout: what is worth keeping for other samples belongs in a playbook, and rollouts must not depend on their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ace_bench.core.known_calls import KnownCalls
from ace_bench.core.tool_calls import ActionCall, read_action
from ace_bench.core.tool_rules import ToolRules

_LONGEST_FACT = 200
_MOST_FINDINGS = 24
_MOST_MATCHES = 40


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing a step found out: by which tools, with what arguments, and whether it worked."""

    category: str
    tool: str
    query: str
    fact: str
    step: int
    success: bool

    @property
    def line(self) -> str:
        """The finding as the agent is shown it."""
        failed = "" if self.success else ", failed"
        return f"- step {self.step}{failed}: {self.tool}({self.query}): {self.fact}"


@dataclass
class ExecutionMemory:
    """The findings of a rollout and what it has looked up; ``saved`` counts look-ups not run again."""

    rules: ToolRules
    findings: list[Finding] = field(default_factory=list)
    saved: int = 0

    def __post_init__(self) -> None:
        """Start with nothing known."""
        self._known = KnownCalls(self.rules)
        self._outputs: dict[int, str] = {}
        self._reads: dict[int, list[ActionCall]] = {}

    def note(self, step: int, code: str, observation: str) -> None:
        """Take findings from a step that was run, one for each category of its calls."""
        statements = read_action(code, self.rules)
        calls = [call for statement in statements for call in statement.calls]
        success = self.rules.succeeded(observation)
        for category in dict.fromkeys(call.rule.category for call in calls if call.rule.category):
            matching_calls = [call for call in calls if call.rule.category == category]
            fact = _fact(matching_calls[0], observation) if success else _last_line(observation)
            self.findings.append(_finding(category, matching_calls, fact, step, success))
        is_short = len(observation) <= self.rules.whole_chars
        for statement in statements:
            self._known.note(step, statement, worked=success, is_complete=is_short)
        self._outputs[step] = observation
        self._reads[step] = [call for call in calls if call.rule.access == "read"]

    def recall(self, code: str, in_view: Callable[[int], bool]) -> str | None:
        """Answer code that only repeats look-ups of this rollout that still hold; ``None`` if it must be run.

        An output still in view (``in_view`` of its step) is pointed to. Another one is given once more, unless it also
        shows what no longer holds.
        """
        statements = read_action(code, self.rules)
        by_step: dict[int, list[str]] = {}
        for statement in statements:
            output = self._known.find(statement.printed) if statement.printed else None
            if output is None or not output.printed or not (in_view(output.step) or self._holds(output.step)):
                return None
            by_step.setdefault(output.step, []).append(self._spelling(output.call))
        self.saved += len(statements)
        recalled = [self._recall_output(step, spellings, in_view) for step, spellings in by_step.items()]
        return "\n".join(recalled) if statements else None

    @property
    def text(self) -> str:
        """The newest findings by category, oldest first; "" if there are none."""
        newest = self.findings[-_MOST_FINDINGS:]
        order = dict.fromkeys(rule.category for rule in self.rules.rules.values() if rule.category)
        parts = [[fact.line for fact in newest if fact.category == category] for category in order]
        return "\n\n".join("\n".join([f"{title}:", *lines]) for title, lines in zip(order, parts, strict=True) if lines)

    def _holds(self, step: int) -> bool:
        return all(self._known.find(call) is not None for call in self._reads[step])

    def _recall_output(self, step: int, spellings: Iterable[str], in_view: Callable[[int], bool]) -> str:
        call_names = ", ".join(dict.fromkeys(spellings))
        if in_view(step):
            return f"(from memory: {call_names} was looked up before; see its output above)"
        return f"(from memory)\n{self._outputs[step]}"

    def _spelling(self, call: ActionCall) -> str:
        return f"{'' if call.rule.tool else self.rules.prefix or ''}{call.tool}({call.query})"


def _finding(category: str, calls: Sequence[ActionCall], fact: str, step: int, success: bool) -> Finding:
    tools = ", ".join(dict.fromkeys(call.tool for call in calls))
    queries = "; ".join(dict.fromkeys(call.shown for call in calls if call.shown))
    return Finding(category=category, tool=_short(tools), query=_short(queries), fact=fact, step=step, success=success)


def _fact(call: ActionCall, observation: str) -> str:
    """Return what the call's rule looks for in an output and how much more there is, or the output's beginning."""
    matches_of_rule = re.finditer(call.rule.fact, observation) if call.rule.fact else ()
    matches = list(dict.fromkeys(match[1] for match in matches_of_rule if match[1]))
    more = [f"and {len(matches) - _MOST_MATCHES} more"] if len(matches) > _MOST_MATCHES else []
    listed = f"{call.rule.label or ''} {', '.join([*matches[:_MOST_MATCHES], *more])}".strip()
    return listed if matches else _short(observation)


def _last_line(observation: str) -> str:
    """Return the line of a traceback that says what went wrong."""
    lines = [line for line in observation.splitlines() if line.strip()]
    return _short(lines[-1]) if lines else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_FACT else f"{line[:_LONGEST_FACT]}..."
