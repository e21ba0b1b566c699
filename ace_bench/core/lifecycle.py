"""Optional interfaces of tasks, agents and backbones: start and close, and confinement of code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class Lifecycle(Protocol):
    """A backbone, task or agent that is started before the first call and closed after the last, such as a server."""

    def start(self, say: Callable[[str], None]) -> None:
        """Start, reporting progress in short lines; raises ``BackboneUnavailable`` or ``ConfigError``."""
        ...

    def close(self) -> None:
        """Release everything; may be called at any time and more than once."""
        ...


@runtime_checkable
class Confining(Protocol):
    """A task or agent that runs a model's code on this machine."""

    @property
    def confinement(self) -> Sequence[str] | None:
        """The layers that confined such code so far (see ``core.confine``); ``None`` if no code was run."""
        ...
