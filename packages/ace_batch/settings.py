"""The settings of batches, the price of their calls, and what sends them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.core.settings import Count, NotNegative, Parallel, Positive, Seconds, Share, Text
from ace_bench.core.types import Usage


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """How calls are gathered and sent.

    A file is sent once ``calls`` of them wait, or no call came for ``gather_seconds`` and no rollout is at work; it has
    at most ``max_lines`` lines and ``max_mb`` megabytes. ``poll_seconds`` lie between two questions whether it is done,
    which it must be within ``window``. ``adapt`` says what becomes of the calls of adaptation, which depend on each
    other: ``online`` (sent at once, at the full price), ``batch`` (in files as well) or ``refuse``. A call in a file
    costs ``price_factor`` of the price.
    """

    calls: Parallel = 2000
    gather_seconds: NotNegative = 5.0
    poll_seconds: Seconds = 30.0
    adapt: Literal["online", "batch", "refuse"] = "online"
    price_factor: Share = 0.5
    window: Text = "24h"
    max_lines: Count = 50_000
    max_mb: Positive = 200.0


@dataclass(frozen=True, kw_only=True)
class BatchPrices(PriceCard):
    """Dollars per million tokens, of which a call in a batch costs the share ``factor``."""

    factor: float

    def dollars(self, usage: Usage) -> float | None:
        """Return the price of a call; ``None`` if a price or token count is unknown."""
        full = super().dollars(usage)
        return None if full is None else full * self.factor


class Unreachable(Exception):
    """The provider does not answer now; the message says where and why."""


State = Literal["running", "ended", "failed"]


@dataclass(frozen=True, kw_only=True)
class Status:
    """How far a batch is: ``word`` is the provider's for it; ``failed``: it was refused as a whole, ``why``."""

    state: State
    word: str
    why: str = ""


class Provider(Protocol):
    """What takes files of calls. Methods raise ``Unreachable``, and ``BackboneUnavailable`` where repeating is vain."""

    def check(self) -> None:
        """Raise ``SettingError`` if batches cannot be sent."""
        ...

    def send(self, file: Path, token: str) -> str:
        """Begin a batch of the calls in a file, marked by a token, and return its id."""
        ...

    def find(self, file: Path, token: str) -> str | None:
        """Return the id of the batch with a token, ``None`` if it was never begun."""
        ...

    def status(self, batch: str) -> Status:
        """Return how far a batch is."""
        ...

    def replies(self, batch: str) -> bytes:
        """Return the lines of an ended batch, errors included."""
        ...

    def close(self) -> None:
        """Let go of connections; end what runs on this machine."""
        ...
