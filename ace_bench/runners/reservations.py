"""Reserves what a call may cost before it is sent: no limit is passed, however many calls are in flight."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from ace_bench.core.backbones import Backbone
from ace_bench.core.errors import BackboneUnavailable, BudgetExhausted
from ace_bench.core.types import Usage
from ace_bench.runners.limits import Budget, CallBounds
from ace_bench.store.call_log import Cost, Ledger
from ace_bench.store.requests import PreparedRequest
from ace_bench.store.reservations import ReservationLog
from ace_bench.store.spending import OtherRuns, SharedSpending

_LOOK_S = 0.5


@dataclass(eq=False, kw_only=True)
class Ticket:
    """What is reserved for a call that is under way.

    ``extend`` reserves as much once more, for a request that follows a reply that was paid for; ``refused`` says why it
    could not. A ticket that is not ``settled`` stays reserved in later processes: nobody knows what its call cost.
    ``waited`` are the seconds until there was room in the budget.
    """

    extend: Callable[[], bool] = lambda: True
    cost: Cost = field(default_factory=Cost)
    lines: list[int] = field(default_factory=list)
    refused: str | None = None
    settled: bool = False
    waited: float = 0.0


@dataclass(kw_only=True)
class Reservations:
    """Admits calls to a budget.

    A call that does not fit waits for those in flight: they mostly cost less than was reserved for them. If it does not
    fit when there are none, the budget is exhausted, and every later call is refused. ``check`` is called while waiting
    and may raise; ``ledger`` holds the cost of the finished calls, ``wall`` the seconds of the run. ``log`` keeps what
    is reserved on disk. ``shared`` is the spending of the runs that share the budget.
    """

    budget: Budget
    ledger: Ledger
    wall: Callable[[], float]
    check: Callable[[], None]
    log: ReservationLog | None = None
    shared: SharedSpending | None = None

    def __post_init__(self) -> None:
        self._limited = self.budget.has_limits or self.shared is not None
        self._log = self.log if self.budget.limits_calls else None
        self._lost = Cost() if self._log is None else self._log.lost
        self._bounds = CallBounds()
        self._changed = threading.Condition()
        self._held: set[Ticket] = set()
        self._extending = 0
        self._reserved = Cost()
        self._exhausted: str | None = None

    @contextmanager
    def held(self, backbone: Backbone, request: PreparedRequest) -> Iterator[Ticket]:
        """Reserve what a call may cost until it is over and in the ledger; raises ``BudgetExhausted``."""
        if not self._limited:
            self.check()
            yield Ticket()
            return
        ticket = Ticket()
        with self._changed:
            began = time.monotonic()
            while not self._admit(ticket, backbone, request):
                self._changed.wait(_LOOK_S)
                ticket.waited = round(time.monotonic() - began, 3)
        each = ticket.cost
        ticket.extend = lambda: self._extend(ticket, each, request)
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
            with self._changed:
                self._bounds.learn(request, usage)

    def _admit(self, ticket: Ticket, backbone: Backbone, request: PreparedRequest) -> bool:
        self.check()
        limit = self.budget.seconds
        if limit is not None and self.wall() >= limit:
            self._exhausted = f"budget.seconds={limit:g} is used up"
        if self._exhausted is not None:
            raise BudgetExhausted(self._exhausted)
        cost = self._bounds.bound_call(backbone, request) if self.budget.limits_calls else Cost(calls=1)
        refusal, others = self._take(ticket, cost, request)
        if refusal is not None and not self._held and not others.in_flight:
            self._exhausted = refusal
            raise BudgetExhausted(self._exhausted)
        return refusal is None

    def _extend(self, ticket: Ticket, cost: Cost, request: PreparedRequest) -> bool:
        """Reserve one more request for a call; ``False`` where only calls are in flight that wait for the same."""
        with self._changed:
            self._extending += 1
            try:
                while True:
                    self.check()
                    ticket.refused, others = self._take(ticket, cost, request)
                    if ticket.refused is None:
                        return True
                    if self._extending == len(self._held) and not others.in_flight:
                        self._exhausted = ticket.refused
                        return False
                    self._changed.wait(_LOOK_S)
            finally:
                self._extending -= 1

    def _take(self, ticket: Ticket, cost: Cost, request: PreparedRequest) -> tuple[str | None, OtherRuns]:
        """Reserve ``cost`` for a ticket if it fits; return why it does not."""
        with self._others() as others:
            taken = others.cost + Cost.from_account(self.ledger.total) + self._lost + self._reserved
            refusal = self.budget.refusal(taken, cost)
            if refusal is not None:
                return f"{refusal}{self._remarks()}", others
            if self._log is not None:
                ticket.lines.append(self._log.reserve(request.name, cost))
            self._held.add(ticket)
            ticket.cost = ticket.cost + cost
            self._reserved += cost
            self._book()
        return None, others

    def _release(self, ticket: Ticket) -> None:
        with self._changed:
            self._held.remove(ticket)
            self._reserved = self._reserved - ticket.cost if self._held else Cost()  # floats leave a rest
            if not ticket.settled:
                self._lost = self._lost + ticket.cost
            self._changed.notify_all()
            with self._others():
                self._book()
            if ticket.settled and self._log is not None:
                self._log.settle(ticket.lines)

    def _remarks(self) -> str:
        remark = "" if self.shared is None else f" (the budget of {self.shared})"
        if not self._lost.calls:
            return remark
        calls = "a call that was" if self._lost.calls == 1 else f"{self._lost.calls} calls that were"
        return f"{remark}; {calls} under way when the run was ended count too, as they may have been billed: raise it"

    def _others(self) -> AbstractContextManager[OtherRuns]:
        return nullcontext(OtherRuns()) if self.shared is None else self.shared.locked()

    def _book(self) -> None:
        if self.shared is not None:
            self.shared.book(Cost.from_account(self.ledger.total), self._reserved)
