"""Reserves the most that a call may cost before it is sent, so that no limit is passed however many are in flight."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import reduce
from operator import add

from ace_bench.core.backbones import Backbone
from ace_bench.core.errors import BudgetExhausted
from ace_bench.core.types import Usage
from ace_bench.runners.budget import Budget, CallBounds
from ace_bench.store.ledger import Account
from ace_bench.store.requests import PreparedRequest
from ace_bench.store.spending import Cost, OtherRuns, SharedSpending

_LOOK_S = 0.5


class Reservations:
    """Admits calls to a budget.

    A call that does not fit waits for those in flight: they mostly cost less than was reserved for them. If it does not
    fit when there are none, the budget is exhausted, and every later call is refused. ``check`` is called while waiting
    and may raise; ``spent`` returns the cost of the finished calls, ``wall`` the seconds of the run. ``shared`` is the
    spending of the runs that share the budget.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        spent: Callable[[], Account],
        wall: Callable[[], float],
        check: Callable[[], None],
        shared: SharedSpending | None = None,
    ):
        self._budget = budget
        self._spent = spent
        self._wall = wall
        self._check = check
        self._shared = shared
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
                with self._others():
                    self._book()

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
        with self._others() as others:
            taken = others.cost + Cost.of(self._spent()) + self._reserved()
            refusal = self._budget.refusal(taken, cost)
            if refusal is None:
                self._held[ticket] = cost
                self._book()
        if refusal is not None and not self._held and not others.in_flight:
            self._exhausted = refusal if self._shared is None else f"{refusal} (it is that of {self._shared})"
            raise BudgetExhausted(self._exhausted)
        return refusal is None

    def _reserved(self) -> Cost:
        return reduce(add, self._held.values(), Cost())

    def _others(self) -> AbstractContextManager[OtherRuns]:
        return nullcontext(OtherRuns()) if self._shared is None else self._shared.locked()

    def _book(self) -> None:
        if self._shared is not None:
            self._shared.book(Cost.of(self._spent()), self._reserved())
