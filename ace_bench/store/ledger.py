"""Sums over calls by stage and role: the cost of adaptation and evaluation."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from fractions import Fraction

from ace_bench.core.types import NO_USAGE, Completion, Stage, Usage


@dataclass(frozen=True, kw_only=True)
class Account:
    """Sums over some calls.

    ``calls`` counts answered calls. ``seconds`` is model time, ``waited`` time lost to ``retries``, including
    those of unanswered calls. ``replayed`` calls came from the response cache: they count in ``calls`` and in no other
    sum. ``cut`` counts replies that ended at the limit of their length.
    ``exact_usd`` makes ``usage.usd`` independent of the order of calls, which depends on threads.
    """

    calls: int = 0
    replayed: int = 0
    retries: int = 0
    cut: int = 0
    usage: Usage = NO_USAGE
    seconds: float = 0.0
    waited: float = 0.0
    exact_usd: Fraction | None = None

    def __post_init__(self) -> None:
        """Take the dollars of ``usage`` as exact."""
        if self.exact_usd is None and self.usage.usd is not None:
            object.__setattr__(self, "exact_usd", Fraction(self.usage.usd))

    @property
    def paid(self) -> int:
        """Calls that a backbone answered."""
        return self.calls - self.replayed

    def __add__(self, other: Account) -> Account:
        """Sum field by field; unknown usage stays unknown."""
        usd = None if self.exact_usd is None or other.exact_usd is None else self.exact_usd + other.exact_usd
        return Account(
            calls=self.calls + other.calls,
            replayed=self.replayed + other.replayed,
            retries=self.retries + other.retries,
            cut=self.cut + other.cut,
            usage=replace(self.usage + other.usage, usd=None if usd is None else float(usd)),
            exact_usd=usd,
            seconds=self.seconds + other.seconds,
            waited=self.waited + other.waited,
        )


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What some calls cost, or may cost at most; ``None`` is unknown."""

    calls: int = 0
    tokens: int | None = 0
    usd: float | None = 0.0

    @classmethod
    def of(cls, account: Account) -> Cost:
        """Return what a budget counts of some calls."""
        used = account.usage
        tokens = None if used.prompt is None or used.completion is None else used.prompt + used.completion
        return cls(calls=account.paid, tokens=tokens, usd=used.usd)

    def __add__(self, other: Cost) -> Cost:
        """Sum field by field; a sum with an unknown term is unknown."""
        return Cost(
            calls=self.calls + other.calls,
            tokens=None if self.tokens is None or other.tokens is None else self.tokens + other.tokens,
            usd=None if self.usd is None or other.usd is None else self.usd + other.usd,
        )


NOTHING = Cost()


class Ledger:
    """Accounts by (stage, role). Safe to use from several threads."""

    def __init__(self) -> None:
        self._accounts: dict[tuple[Stage, str], Account] = {}
        self._total = Account()
        self._lock = threading.Lock()

    def add(self, stage: Stage, role: str, completion: Completion, *, answered: bool = True) -> None:
        """Add one call; an unanswered one adds only its cost."""
        entry = Account(
            calls=int(answered),
            replayed=int(completion.replayed),
            retries=completion.retries,
            cut=int(completion.cut),
            usage=NO_USAGE if completion.replayed else completion.usage,
            seconds=completion.seconds,
            waited=completion.waited,
        )
        with self._lock:
            self._accounts[stage, role] = self._accounts.get((stage, role), Account()) + entry
            self._total = self._total + entry

    @property
    def total(self) -> Account:
        """All calls together."""
        return self._total

    def stage(self, stage: Stage) -> Account:
        """All calls of a stage."""
        return sum((account for (s, _), account in self._entries() if s is stage), Account())

    def roles(self, stage: Stage) -> dict[str, Account]:
        """The calls of a stage by role, in order of name."""
        return {role: replace(account) for (s, role), account in self._entries() if s is stage}

    def _entries(self) -> list[tuple[tuple[Stage, str], Account]]:
        with self._lock:
            return sorted(self._accounts.items())
