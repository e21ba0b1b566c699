"""Reserves what a call may cost before it is sent: no limit is passed, however many calls are in flight."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path

from ace_bench.core.backbones import Backbone
from ace_bench.core.errors import BackboneUnavailable, BudgetExhausted
from ace_bench.core.types import Usage
from ace_bench.runners.limits import Budget, CallBounds
from ace_bench.store.call_log import Cost, Ledger
from ace_bench.store.requests import PreparedRequest
from ace_bench.store.reservations import ReservationLog

_LOOK_S = 0.5


@dataclass(eq=False, kw_only=True)
class Ticket:
    """What is reserved for a call that is under way.

    ``extend`` reserves the same amount again, for another request after a reply that was paid for. ``refused`` says why
    it could not. A ticket that is not ``settled`` stays reserved in later processes, because nobody knows what its call
    cost. ``waited`` is how many seconds it took until there was room in the budget.
    """

    extend: Callable[[], bool] = lambda: True
    cost: Cost = field(default_factory=Cost)
    lines: list[int] = field(default_factory=list)
    refused: str | None = None
    settled: bool = False
    waited: float = 0.0


@dataclass(eq=False, kw_only=True)
class Spending:
    """What the runs that share a budget have spent, and have reserved for their calls in flight.

    The runs are in this process. A run with a budget of its own has a ``Spending`` of its own. ``by_run`` holds what
    each run has cost, also in earlier processes. ``limits`` replace the budgets of the runs. ``remark`` follows the
    message of a refusal. Only use it while you hold ``changed``, which is notified when a call ends.
    """

    by_run: dict[Path, Cost] = field(default_factory=dict)
    limits: Budget | None = None
    remark: str = ""
    reserved: Cost = field(default_factory=Cost)
    tickets: set[Ticket] = field(default_factory=set)
    waiting_to_extend: int = 0
    """Calls in flight that wait until there is room for one more request."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.spent = reduce(add, self.by_run.values(), Cost())

    def book(self, run: Path, cost: Cost) -> None:
        """Note what a run has cost by now."""
        self.spent = self.spent - self.by_run.get(run, Cost()) + cost
        self.by_run[run] = cost

    def reserve(self, ticket: Ticket, cost: Cost) -> None:
        """Reserve more for a call."""
        self.tickets.add(ticket)
        ticket.cost += cost
        self.reserved += cost

    def release(self, ticket: Ticket) -> None:
        """Forget the reservation of a call that is over."""
        self.tickets.remove(ticket)
        self.reserved = self.reserved - ticket.cost if self.tickets else Cost()  # floats leave a rest
        self.changed.notify_all()


@dataclass(kw_only=True)
class Reservations:
    """Admits the calls of one run to a budget.

    A call that does not fit waits for calls in flight, because these mostly cost less than was reserved for them. If it
    does not fit when there are none, the budget is exhausted, and every later call is refused. ``check`` is called
    while waiting and may raise. ``ledger`` holds the cost of the finished calls, ``wall`` the seconds of the run.
    ``log`` keeps what is reserved on disk. ``run`` is the folder by which ``spending`` knows the run.
    """

    budget: Budget
    ledger: Ledger
    wall: Callable[[], float]
    check: Callable[[], None]
    log: ReservationLog | None = None
    run: Path = Path()
    spending: Spending = field(default_factory=Spending)

    def __post_init__(self) -> None:
        self._limits = self.spending.limits or self.budget
        self._log = self.log if self.budget.limits_calls else None
        self._lost = Cost() if self._log is None else self._log.lost
        self._bounds = CallBounds()
        self._exhausted: str | None = None
        with self.spending.changed:
            self._book()

    @contextmanager
    def held(self, backbone: Backbone, request: PreparedRequest) -> Iterator[Ticket]:
        """Reserve what a call may cost until it is over and in the ledger; raises ``BudgetExhausted``."""
        if not (self.budget.has_limits or self.budget.shared):
            self.check()
            yield Ticket()
            return
        ticket = Ticket()
        with self.spending.changed:
            began = time.monotonic()
            while not self._admit(ticket, backbone, request):
                self.spending.changed.wait(_LOOK_S)
                ticket.waited = round(time.monotonic() - began, 3)
        cost = ticket.cost
        ticket.extend = lambda: self._extend(ticket, cost, request)
        try:
            yield ticket
        except BackboneUnavailable:  # it answered nothing
            ticket.settled = True
            raise
        finally:
            self._release(ticket)

    def learn(self, request: PreparedRequest, usage: Usage) -> None:
        """Take note of what a call did cost, for the bounds of later ones."""
        if self.budget.limits_calls:
            with self.spending.changed:
                self._bounds.learn(request, usage)

    def _admit(self, ticket: Ticket, backbone: Backbone, request: PreparedRequest) -> bool:
        self.check()
        limit = self.budget.seconds
        if limit is not None and self.wall() >= limit:
            self._exhausted = f"budget.seconds={limit:g} is used up"
        if self._exhausted is not None:
            raise BudgetExhausted(self._exhausted)
        cost = self._bounds.bound_call(backbone, request) if self.budget.limits_calls else Cost(calls=1)
        refusal = self._take(ticket, cost, request)
        if refusal is not None and not self.spending.tickets:
            self._exhausted = refusal
            raise BudgetExhausted(self._exhausted)
        return refusal is None

    def _extend(self, ticket: Ticket, cost: Cost, request: PreparedRequest) -> bool:
        """Reserve one more request for a call; ``False`` if all calls in flight wait for the same."""
        spending = self.spending
        with spending.changed:
            spending.waiting_to_extend += 1
            try:
                while True:
                    self.check()
                    ticket.refused = self._take(ticket, cost, request)
                    if ticket.refused is None:
                        return True
                    if spending.waiting_to_extend == len(spending.tickets):
                        self._exhausted = ticket.refused
                        return False
                    spending.changed.wait(_LOOK_S)
            finally:
                spending.waiting_to_extend -= 1

    def _take(self, ticket: Ticket, cost: Cost, request: PreparedRequest) -> str | None:
        """Reserve ``cost`` for a ticket if it fits; return why it does not."""
        refusal = self._limits.refusal(self.spending.spent + self.spending.reserved, cost)
        if refusal is not None:
            return f"{refusal}{self._remarks()}"
        if self._log is not None:
            ticket.lines.append(self._log.reserve(request.name, cost))
        self.spending.reserve(ticket, cost)
        return None

    def _release(self, ticket: Ticket) -> None:
        with self.spending.changed:
            if not ticket.settled:
                self._lost += ticket.cost
            self.spending.release(ticket)
            self._book()
            if ticket.settled and self._log is not None:
                self._log.settle(ticket.lines)

    def _book(self) -> None:
        self.spending.book(self.run, Cost.from_account(self.ledger.total) + self._lost)

    def _remarks(self) -> str:
        if not self._lost.calls:
            return self.spending.remark
        calls = "1 call" if self._lost.calls == 1 else f"{self._lost.calls} calls"
        return (
            f"{self.spending.remark}; it includes {calls} under way when the run was ended, which may have been "
            "billed: raise it"
        )
