"""Reserves the most that a call may cost before it is sent, so that no limit is passed however many are in flight."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ace_bench.core.backbones import Backbone
from ace_bench.core.errors import BudgetExhausted
from ace_bench.core.types import Usage
from ace_bench.runners.budget import Budget, CallBounds, Cost
from ace_bench.store.ledger import Account
from ace_bench.store.requests import PreparedRequest

_LOOK_S = 0.5


class Reservations:
    """Admits calls to a budget.

    A call that does not fit waits for those in flight: they mostly cost less than was reserved for them. If it does not
    fit when there are none, the budget is exhausted, and every later call is refused. ``check`` is called while waiting
    and may raise; ``spent`` returns the cost of the finished calls, ``wall`` the seconds of the run.
    """

    def __init__(
        self, budget: Budget, *, spent: Callable[[], Account], wall: Callable[[], float], check: Callable[[], None]
    ):
        self._budget = budget
        self._spent = spent
        self._wall = wall
        self._check = check
        self._bounds = CallBounds()
        self._changed = threading.Condition()
        self._held: dict[object, Cost] = {}
        self._exhausted: str | None = None

    @contextmanager
    def held(self, backbone: Backbone, request: PreparedRequest) -> Iterator[None]:
        """Reserve what a call may cost until it is over and in the ledger; raises ``BudgetExhausted``."""
        ticket = object()
        with self._changed:
            while not self._admit(ticket, backbone, request):
                self._changed.wait(_LOOK_S)
        try:
            yield
        finally:
            with self._changed:
                del self._held[ticket]
                self._changed.notify_all()

    def learn(self, request: PreparedRequest, usage: Usage) -> None:
        """Take note of what a call did cost, for the bounds of later ones."""
        if self._budget.needs_bounds:
            with self._changed:
                self._bounds.learn(request, usage)

    def _admit(self, ticket: object, backbone: Backbone, request: PreparedRequest) -> bool:
        self._check()
        limit = self._budget.seconds
        if limit is not None and self._wall() >= limit:
            self._exhausted = f"budget.seconds={limit:g} is used up"
        if self._exhausted is not None:
            raise BudgetExhausted(self._exhausted)
        cost = self._bounds.of(backbone, request) if self._budget.needs_bounds else Cost(calls=1)
        spent = self._budget.spent(self._spent())
        refusal = self._budget.refusal(sum(self._held.values(), spent), cost)
        if refusal is None:
            self._held[ticket] = cost
        elif not self._held:
            self._exhausted = refusal
            raise BudgetExhausted(refusal)
        return refusal is None
