"""What an endpoint understands of the protocol: how JSON replies are asked for, bounds in schemas, the system role."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ace_bench.backbones.openai_compatible.problems import Problem
from ace_bench.backbones.openai_compatible.settings import Structured
from ace_bench.core.types import Message, Record

AUTO = "auto"
_NO_SYSTEM = re.compile(r"system (role|message)|roles? must alternate|only user and assistant", re.I)
_REFUSED = "bad_request"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """``structured`` is how JSON replies are asked for; ``bounded``: open strings in schemas get a longest length.

    Without ``system_role`` the system message is put before the first user message.
    """

    structured: Structured
    bounded: bool = False
    system_role: bool = True

    def record(self) -> Record:
        """Return the dialect for identities and recorded calls; what every endpoint understands is left out."""
        found: dict[str, object] = {"structured": self.structured}
        found |= {"bounded": True} if self.bounded else {}
        found |= {} if self.system_role else {"system_role": False}
        return found

    def words(self) -> str:
        """Describe the dialect for the console."""
        parts = [self.structured, *(["with bounded strings"] if self.bounded else [])]
        return ", ".join([*parts, *([] if self.system_role else ["no system role"])])

    def messages(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages as the endpoint takes them."""
        if self.system_role or len(messages) < 2 or messages[0].role != "system" or messages[1].role != "user":
            return messages
        merged = replace(messages[1], content=f"{messages[0].content}\n\n{messages[1].content}")
        return (merged, *messages[2:])


def read_dialect(recorded: Record) -> Dialect:
    """Return the dialect that ``record`` described."""
    return Dialect(
        structured=recorded["structured"],
        bounded=recorded.get("bounded", False),
        system_role=recorded.get("system_role", True),
    )


def candidates(structured: Structured, *, bound: bool) -> Sequence[Dialect]:
    """Return the dialects to try, the best first; a setting other than ``auto`` is tried alone.

    llama.cpp's form has no bounds: its Python server dies of long ones, and short ones take it a third of a second a
    token.
    """
    if structured != AUTO:
        return (Dialect(structured=structured),)
    kinds: tuple[Structured, ...] = ("json_schema", "json_object_schema", "json_object", "none")
    best = [Dialect(structured="json_schema", bounded=True)] if bound else []
    return [*best, *(Dialect(structured=kind) for kind in kinds)]


def refuses_system_role(problem: Problem) -> bool:
    """Whether a server refused a request for its system message."""
    return problem.kind == _REFUSED and bool(_NO_SYSTEM.search(problem.message))


def refuses_format(problem: Problem) -> bool:
    """Whether a server refused a request for its form, so that another dialect may pass."""
    return problem.kind == _REFUSED
