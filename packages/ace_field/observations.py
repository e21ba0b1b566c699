"""What the middleware remembers, as a context: the package's own entries, without the times it stamps on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from ace_bench.contexts.base import ContextValue
from ace_bench.core.types import GeneratorSpec, Sample


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

    kind = "heuristic"
    generator = GeneratorSpec(template="observed", reply="text")

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
