"""What an attempt has looked up already, and what of it still holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ace_bench.core.tool_calls import ActionCall, StatementReading, read_action
from ace_bench.core.tool_rules import ToolRules
from ace_bench.core.types import Turn

_Key = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Known:
    """A look-up that worked: the call, the step that made it, and whether its output was printed whole."""

    call: ActionCall
    step: int
    printed: bool


@dataclass
class KnownCalls:
    """The look-ups of one attempt that worked and still hold.

    A look-up is a call of a ``constant`` or ``read`` tool with constant arguments that runs exactly once. It is
    forgotten when a variable that it uses is set again and, unless it is ``constant``, when a statement runs that may
    change something: a ``write``, a call that no rule declares and that is not plain Python, or code that cannot be
    read. Statements of an action that failed may have run: they are taken to have changed what they may change, and to
    have shown nothing.
    """

    rules: ToolRules
    _known: dict[_Key, Known] = field(default_factory=dict)
    _opaque: bool = False

    def has_finding_for(self, tool: str, query: str) -> bool:
        """Whether a tool was asked this before and the answer still holds; both words as a ``ActionCall`` has them."""
        return (tool, query) in self._known

    def find(self, call: ActionCall) -> Known | None:
        """Return the look-up that made this call before, if it still holds."""
        return self._known.get((call.tool, call.query))

    def note(self, step: int, statement: StatementReading, *, worked: bool, is_complete: bool) -> None:
        """Take in a statement; ``worked``: its action worked, ``is_complete``: all of the action's output is there."""
        self._opaque |= statement.opaque
        if statement.changes or self._opaque:
            self._forget(
                call_output for call_output in self._known.values() if call_output.call.rule.access != "constant"
            )
        for call in statement.calls if worked else ():
            if call.is_lookup and (call.rule.access == "constant" or not (statement.changes or self._opaque)):
                printed = is_complete and statement.printed == call
                if printed or not self.has_finding_for(call.tool, call.query):
                    self._known[call.tool, call.query] = Known(call=call, step=step, printed=printed)
        self._forget(call_output for call_output in self._known.values() if call_output.call.names & statement.binds)

    def _forget(self, stale: Iterable[Known]) -> None:
        for call_output in list(stale):
            del self._known[call_output.call.tool, call_output.call.query]


def redundant_calls(turns: Sequence[Turn], rules: ToolRules) -> int:
    """Return how many look-ups of an attempt repeat one that worked before and still held.

    Calls count as the agent wrote them, whether they were run or answered from memory.
    """
    known_calls, redundant = KnownCalls(rules), 0
    for step, turn in enumerate(turns, start=1):
        for statement in read_action(turn.action, rules):
            redundant += sum(call.is_lookup and known_calls.find(call) is not None for call in statement.calls)
            known_calls.note(step, statement, worked=rules.succeeded(turn.observation), is_complete=False)
    return redundant
