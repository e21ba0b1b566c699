"""What a task, an agent or a backbone may offer besides: a start and an end, and the confinement of code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class Lifecycle(Protocol):
    """A backbone, task or agent that must be made ready before the first call and put away after the last: a server."""

    def start(self, say: Callable[[str], None]) -> None:
        """Get ready, telling progress in short lines; raises ``BackboneUnavailable`` or ``ConfigError``."""
        ...

    def close(self) -> None:
        """Put away; must be safe to call at any time and more than once."""
        ...


@runtime_checkable
class Confining(Protocol):
    """A task or agent that runs code of a model on this machine."""

    @property
    def confinement(self) -> Sequence[str] | None:
        """The layers that confined such code so far, least first (see ``core.confine``); ``None``: none was run."""
        ...
