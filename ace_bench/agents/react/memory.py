"""Execution memory: what the steps of one rollout have found out, in short, for its later steps.

Findings are taken from code and output by written rules, without a call to a model. A memory lives as long as its
rollout: what is worth keeping for other samples belongs in a playbook, and rollouts must not depend on their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ace_bench.agents.react.lookups import ToolCall, ToolConventions, read_code

_LONGEST_FACT = 200
_MOST_FINDINGS = 24
_MOST_NAMES = 40
_NAME = re.compile(r"""["']name["']:\s*["']([\w.-]{1,60})["']""")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing a step found out: by which tools, with what arguments, and whether it worked."""

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


class NoMemory:
    """Remembers nothing."""

    text = ""
    saved = 0

    def note(self, step: int, code: str, observation: str) -> None:
        """Do nothing."""

    def recall(self, code: str, in_view: Callable[[int], bool]) -> str | None:  # noqa: ARG002
        """Return ``None``: all code is run."""
        return None


@dataclass
class ExecutionMemory:
    """The findings of a rollout and what it has looked up; ``saved`` counts look-ups not run again."""

    conventions: ToolConventions
    findings: list[Finding] = field(default_factory=list)
    saved: int = 0
    _outputs: dict[int, str] = field(default_factory=dict)
    _looked_up: dict[str, int] = field(default_factory=dict)

    def note(self, step: int, code: str, observation: str) -> None:
        """Take findings from a step that was run: one for its look-ups and one for its other calls."""
        reading = read_code(code, self.conventions)
        success = not observation.lstrip().startswith(self.conventions.failed)
        lookups = [call for call in reading.calls if call.is_lookup]
        others = [call for call in reading.calls if not call.is_lookup]
        for calls, fact in ((lookups, _names(observation)), (others, _short(observation))):
            if calls:
                self.findings.append(_finding(calls, fact if success else _last_line(observation), step, success))
        if success and reading.printed and len(observation) <= self.conventions.whole_chars:
            self._outputs[step] = observation
            for spelling in reading.printed:
                self._looked_up.setdefault(spelling, step)

    def recall(self, code: str, in_view: Callable[[int], bool]) -> str | None:
        """Answer code that only repeats look-ups of this rollout; ``None`` where it must be run.

        An output still in view (``in_view`` of its step) is pointed to, another one given once more.
        """
        reading = read_code(code, self.conventions)
        if not reading.only_lookups or any(spelling not in self._looked_up for spelling in reading.printed):
            return None
        self.saved += len(reading.printed)
        by_step: dict[int, list[str]] = {}
        for spelling in reading.printed:
            by_step.setdefault(self._looked_up[spelling], []).append(spelling)
        return "\n".join(self._remembered(step, spellings, in_view) for step, spellings in by_step.items())

    @property
    def text(self) -> str:
        """The newest findings, oldest first; "" where there are none."""
        return "\n".join(finding.line for finding in self.findings[-_MOST_FINDINGS:])

    def _remembered(self, step: int, spellings: Iterable[str], in_view: Callable[[int], bool]) -> str:
        what = ", ".join(dict.fromkeys(spellings))
        if in_view(step):
            return f"(from memory: {what} was looked up before; see its output above)"
        return f"(from memory)\n{self._outputs[step]}"


def _finding(calls: Iterable[ToolCall], fact: str, step: int, success: bool) -> Finding:
    tools = ", ".join(dict.fromkeys(call.name for call in calls))
    queries = "; ".join(dict.fromkeys(call.query for call in calls if call.query))
    return Finding(tool=_short(tools), query=_short(queries), fact=fact, step=step, success=success)


def _names(observation: str) -> str:
    """Return the names that documentation lists."""
    names = list(dict.fromkeys(_NAME.findall(observation)))
    return f"names {', '.join(names[:_MOST_NAMES])}" if names else _short(observation)


def _last_line(observation: str) -> str:
    """Return the line of a traceback that says what went wrong."""
    lines = [line for line in observation.splitlines() if line.strip()]
    return _short(lines[-1]) if lines else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_FACT else f"{line[:_LONGEST_FACT]}..."
