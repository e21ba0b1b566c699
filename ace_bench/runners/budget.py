"""The hard budget of a run."""

from __future__ import annotations

from dataclasses import dataclass

from ace_bench.core.settings import Count, Positive
from ace_bench.store.ledger import Account


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits over the whole run, earlier processes included; ``None`` is no limit.

    ``calls`` is exact and counts answered calls. ``tokens`` (prompt + completion) and ``usd`` are known only after a
    call, so a run may exceed them by the calls in flight. ``seconds`` is wall time of adaptation and evaluation.
    """

    calls: Count | None = None
    tokens: Count | None = None
    usd: Positive | None = None
    seconds: Positive | None = None

    def too_small_for(self, needed: Account) -> str | None:
        """Return the limit that a run with this cost would pass, ``None`` if there is none. Unknown costs fit."""
        tokens = _plus(needed.usage.prompt, needed.usage.completion)
        costs = {"calls": needed.calls, "tokens": tokens, "usd": needed.usage.usd}
        for name, cost in costs.items():
            limit = getattr(self, name)
            if limit is not None and cost is not None and cost > limit:
                return f"budget.{name}={limit:g}"
        return None

    def exceeded(self, spent: Account, under_way: int, wall: float) -> str | None:
        """Return the reason why one more call is forbidden, ``None`` if it is allowed. A limit that cannot be checked
        forbids it."""
        if self.calls is not None and spent.paid + under_way >= self.calls:
            return f"budget.calls={self.calls} is used up"
        if self.seconds is not None and wall >= self.seconds:
            return f"budget.seconds={self.seconds:g} is used up"
        tokens = _plus(spent.usage.prompt, spent.usage.completion)
        return _check("tokens", self.tokens, tokens) or _check("usd", self.usd, spent.usage.usd)


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _check(name: str, limit: float | None, spent: float | None) -> str | None:
    if limit is None:
        return None
    if spent is None:
        return f"budget.{name} is set but the backbone does not report {name}; drop it or use budget.calls"
    return f"budget.{name}={limit:g} is used up" if spent >= limit else None
