"""The LangChain middleware agent_episodic_memory as a step learner: its hooks run over each attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import msgspec

from ace_bench.contexts.base import ContextValue
from ace_bench.core.method import Arena, ContextUpdate
from ace_bench.core.resources import require
from ace_bench.core.settings import Count
from ace_bench.core.types import Attempt, GeneratorSpec, Record, Rollout, Sample, Step
from ace_bench.methods.base import BaseMethod


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One observation, in the package's fields."""

    category: str
    content: str
    outcome: str


@dataclass(frozen=True, kw_only=True)
class Observations(ContextValue):
    """All entries, the oldest first; a prompt shows the last ``shown``, as the package writes them."""

    shown: int = 32
    entries: tuple[Entry, ...] = ()

    kind: ClassVar[str] = "heuristic"
    generator = GeneratorSpec(template="observed", answer_format="text")

    def state(self) -> dict[str, Any]:
        """The entries as the package keeps them in an agent's state."""
        return {"entries": [msgspec.to_builtins(entry) for entry in self.entries]}

    def with_state(self, state: Mapping[str, Any]) -> Observations:
        """Return the entries of an agent's state."""
        kept = [Entry(**{name: raw[name] for name in Entry.__struct_fields__}) for raw in state["entries"]]
        return Observations(shown=self.shown, entries=tuple(kept))

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return the field ``observations``: the package's instruction and its playbook."""
        return {"observations": self._text}

    @cached_property
    def _text(self) -> str:
        if not self.entries:
            return ""
        from agent_episodic_memory import Playbook
        from agent_episodic_memory.middleware import PLAYBOOK_INSTRUCTION

        return f"{PLAYBOOK_INSTRUCTION}\n\n{Playbook.from_dict(self.state()).render(max_entries=self.shown)}"


class Heuristic(BaseMethod[Observations]):
    """Remembers the beginnings of its own replies, each once.

    It never looks at feedback, so good and bad replies count alike.

    The package's hooks do the work: ``after_model`` for every reply of an attempt, ``after_agent`` at its end. Its own
    injection would put the playbook into a system message; here its text is a field of the prompt, so that attempts go
    through the arena as with all methods. ``max_entries`` are shown, the latest (the package's default: 32).
    """

    generator = GeneratorSpec(template="observed", answer_format="text")

    def __init__(self, *, max_entries: Count) -> None:
        require("method=heuristic", "agent_episodic_memory")
        self._shown = max_entries

    def start(self, arena: Arena) -> Observations:
        """Return the memory without entries."""
        return Observations(shown=self._shown)

    def update(
        self, context: Observations, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[Observations]:
        """Run the hooks over the attempts of a batch, in the order of its samples; no calls."""
        events: list[Record] = []
        for rollout in rollouts:
            before = context.size
            if rollout.fault is None:
                context = context.with_state(_observe(context.state(), rollout.attempt))
            event = "kept" if context.size > before else "skipped"
            events.append({"event": event, "sample": rollout.sample.id, "entries": context.size - before})
        return ContextUpdate(context=context, events=tuple(events))


def _observe(playbook: Mapping[str, Any], attempt: Attempt) -> Mapping[str, Any]:
    """Return the playbook after the middleware has seen an attempt."""
    from agent_episodic_memory import ACEMiddleware
    from agent_episodic_memory.middleware import PENDING_KEY, PLAYBOOK_KEY
    from langchain_core.messages import AIMessage

    middleware: Any = ACEMiddleware()
    replies = [
        AIMessage(turn.thought, tool_calls=[{"name": "python", "args": {"code": turn.action}, "id": "1"}])
        for turn in attempt.trajectory
    ]
    if attempt.answer:
        replies.append(AIMessage(attempt.answer))
    pending: list[Any] = []
    for reply in replies:
        pending += (middleware.after_model({"messages": [reply]}, None) or {}).get(PENDING_KEY, [])
    merged = middleware.after_agent({PLAYBOOK_KEY: playbook, PENDING_KEY: pending}, None) or {}
    result: Mapping[str, Any] = merged.get(PLAYBOOK_KEY, playbook)
    return result
