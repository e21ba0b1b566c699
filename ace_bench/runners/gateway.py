"""The counted gateway: every model call of every method passes here (design rule 5)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from ace_bench.core.backbones import Backbone
from ace_bench.core.encoding import digest_of_text
from ace_bench.core.errors import BudgetExhausted, CallLost, RolloutFault
from ace_bench.core.objects import holds_several
from ace_bench.core.replies import takes_tools, without_surrogates
from ace_bench.core.thoughts import cut_thoughts, require_answer
from ace_bench.core.types import Completion, Fault, Message, Record, Stage
from ace_bench.runners.call_slots import Slots
from ace_bench.runners.limits import Budget, Stop
from ace_bench.runners.outages import FailedCall, FaultRule, Outage
from ace_bench.runners.reservations import Reservations, Spending, Ticket
from ace_bench.store.call_log import CallLog, PaidReply
from ace_bench.store.requests import PreparedRequest
from ace_bench.store.reservations import ReservationLog
from ace_bench.store.responses import Responses, response_key


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who makes a call, for the ledger: a role in a stage, within one backbone session.

    ``repeats`` says whether a prompt that is sent again in the session gets a new reply or its first one. ``needed``
    says that a fault may not replace the reply, so that the call is lost and made again.
    """

    stage: Stage
    role: str
    session: str
    repeats: bool = True
    needed: bool = False


class _Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call: ``repetition`` counts how often it was made before."""

    caller: Caller
    repetition: int
    backbone: Backbone
    request: PreparedRequest
    run_seed: int

    @property
    def id(self) -> str:
        return f"{self.request.name}/{self.repetition}"

    @property
    def seed(self) -> int:
        """The run's seed, or for a call that samples its reply a seed made from the run's seed and the call's id.

        So no two draws of a run share a seed, and the same run draws the same replies again, in any order.
        """
        draws: Callable[[str], bool] | None = getattr(self.backbone, "draws", None)  # asking a protocol is slow
        if draws is None or not draws(self.caller.role):
            return self.run_seed
        return int(digest_of_text(f"{self.run_seed}/{self.id}")[:8], 16) >> 1


@dataclass(kw_only=True)
class CallGateway:
    """Lets a call through if it was not made before, the budget allows it and nobody asked to stop.

    A call is identified by its session, its role, the hash of its whole request, and how often this request was made
    in the session. A run that is killed and continued makes the same requests in the same sessions and gets the
    recorded replies for free.

    A call waits for one of the ``slots``, and for room in the budget. ``spending`` is what counts against the budget,
    and knows this run by its folder ``run``. ``critical_path_s`` estimates the seconds of work that a call of
    adaptation holds up.

    A call that the backbone leaves unanswered raises ``CallLost``, unless ``faults`` accepts that as an answer. If
    only recorded calls may be replayed, ``unrecorded`` makes the error of any other call.
    """

    calls: CallLog
    budget: Budget
    stop: Stop
    wall: Callable[[], float]
    faults: FaultRule = field(default_factory=FaultRule)
    responses: Responses | None = None
    slots: Slots | None = None
    spending: Spending | None = None
    reserved: ReservationLog | None = None
    run: Path = Path()
    critical_path_s: Callable[[], float] = lambda: 0.0
    unrecorded: Callable[[Caller], Exception] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self._outage = Outage(self.faults, self.stop, self.calls)
        self._reservations = Reservations(
            budget=self.budget,
            ledger=self.calls.ledger,
            wall=self.wall,
            check=self.stop.check,
            log=self.reserved,
            run=self.run,
            spending=self.spending or Spending(),
        )
        self._lock = threading.Lock()
        self._seen: Counter[str] = Counter()

    def complete(
        self, backbone: Backbone, messages: Sequence[Message], caller: Caller, schema: Record | None
    ) -> Completion:
        """Return the recorded reply of this call, or make it and record it.

        Raises ``RolloutFault`` if the answer is a fault, ``CallLost`` without an answer, ``BudgetExhausted``,
        and whatever ``stop`` raises.
        """
        call = self._prepare(backbone, messages, caller, schema)
        recorded = self._recorded_outcome(call)
        if recorded is not None:
            return recorded
        if self.unrecorded is not None:
            raise self.unrecorded(caller)
        return self._pay(call) if self.responses is None else self._cached_or_paid(call, self.responses)

    def replay(self, session: str) -> None:
        """Let a session start over: prompts it sent before get their recorded replies."""
        with self._lock:
            for name in [name for name in self._seen if name.startswith(f"{session}/")]:
                del self._seen[name]

    def replay_all(self) -> None:
        """Let all sessions start over, as in a process that continues the run."""
        with self._lock:
            self._seen.clear()

    def _prepare(self, backbone: Backbone, messages: Sequence[Message], caller: Caller, schema: Record | None) -> _Call:
        """Name a call and count how often it was made before."""
        settings = {"backbone": backbone.name, **backbone.identity, "seed": self.seed}
        request = self.calls.prepare(caller.session, caller.role, messages, schema=schema, settings=settings)
        with self._lock:
            repetition = self._seen[request.name]
            self._seen[request.name] += caller.repeats
        return _Call(caller=caller, repetition=repetition, backbone=backbone, request=request, run_seed=self.seed)

    def _recorded_outcome(self, call: _Call) -> Completion | None:
        """Return what an earlier process of this run got for a call; raises ``RolloutFault`` if that is a fault."""
        outcome = self.calls.find(call.id)
        if outcome is None or not self._is_answer(call, outcome.fault):
            return None
        if outcome.fault is not None:
            raise RolloutFault(outcome.fault, outcome.completion)
        return outcome.completion

    def _is_answer(self, call: _Call, fault: Fault | None) -> bool:
        return fault is None or (not call.caller.needed and self.faults.is_answer(fault))

    def _cached_or_paid(self, call: _Call, responses: Responses) -> Completion:
        """Return the reply that any run got for a call, or make it while other runs wait for its reply."""
        request = call.request
        key = response_key(
            call.backbone.identity, request.messages, schema=request.schema, seed=call.seed, repetition=call.repetition
        )
        with responses.claim(key, self.stop.check):
            cached = responses.find(key)
            if cached is not None:
                cached = _clean(cached, request)
                self._record(call, PaidReply(completion=cached))
                return cached
            completion = self._pay(call)
            responses.add(key, completion)
            return completion

    def _pay(self, call: _Call) -> Completion:
        """Make a call within the budget, once there is a slot for it, and record its cost even if it fails."""
        # An evaluation is wide, as its calls do not wait for each other.
        priority = self.critical_path_s() if self.slots is not None and call.caller.stage is Stage.ADAPT else 0.0
        slot = nullcontext(0.0) if self.slots is None else self.slots.acquire(priority, self.stop.check)
        with slot as for_slot, self._reservations.held(call.backbone, call.request) as ticket:
            queued = for_slot + ticket.waited
            try:
                completion = _clean(_ask(call, queued, ticket), call.request)
                require_answer(completion, call.request.schema)
            except RolloutFault as error:
                if error.paid is not None:
                    error.paid = _clean(error.paid, call.request)
                if ticket.refused is not None:
                    self._keep_unfinished(call, error, ticket)
                    raise BudgetExhausted(ticket.refused) from error
                fault = self._judge(call, error.fault)
                if error.paid is not None:
                    self._record(call, PaidReply(completion=error.paid, fault=fault))
                ticket.settled = True
                if self._is_answer(call, fault):
                    if fault == error.fault:
                        self._outage.reset(call.backbone, call.caller.role)
                    raise RolloutFault(fault, error.paid) from error
                self.stop.check()
                raise CallLost(fault) from error
            self._record(call, PaidReply(completion=completion))
            ticket.settled = True
            self._outage.reset(call.backbone, call.caller.role)
            return completion

    def _keep_unfinished(self, call: _Call, error: RolloutFault, ticket: Ticket) -> None:
        """Record the cost of a call that the budget does not let repeat its request. A continued run makes it anew."""
        if error.paid is not None:
            replies = error.paid.asked_again + (not error.fault.unanswered)
            fault = Fault(owner="backbone", kind="budget", message=f"not asked again: {ticket.refused}")
            self._record(call, PaidReply(completion=replace(error.paid, asked_again=replies), fault=fault))
        ticket.settled = True

    def _judge(self, call: _Call, fault: Fault) -> Fault:
        """Return the fault of a call: the model's if only this call gets no answer. Any other fault is counted."""
        if self._is_answer(call, fault):
            return fault
        failed = FailedCall(
            id=call.id, stage=call.caller.stage, backbone=call.backbone, request=call.request, fault=fault
        )
        if call.caller.needed:
            self._outage.count_failure(failed)
            return fault
        return self._outage.judge(failed)

    def _record(self, call: _Call, reply: PaidReply) -> None:
        self.calls.add(call.id, reply, stage=call.caller.stage, request=call.request)
        if not (reply.completion.replayed or reply.completion.asked_again):
            self._reservations.learn(call.request, reply.completion.usage)


def _ask(call: _Call, queued: float, ticket: Ticket) -> Completion:
    """Send a call that waited ``queued`` seconds in our own queue to its backbone."""
    request = call.request
    # Only a backbone that is ``Sampled`` has calls with a seed of their own.
    options: dict[str, Any] = {"seed": seed} if (seed := call.seed) != call.run_seed else {}
    if getattr(call.backbone, "asks_again", False):
        options["may_repeat"] = ticket.extend
    try:
        completion = call.backbone.complete(
            request.messages, role=request.role, session=request.session, schema=request.schema, **options
        )
    except RolloutFault as error:
        if error.paid is not None:
            error.paid = _after_queue(error.paid, queued)
        raise
    return _after_queue(completion, queued)


def _after_queue(completion: Completion, queued: float) -> Completion:
    return replace(completion, waited=completion.waited + queued) if queued else completion


def _clean(completion: Completion, request: PreparedRequest) -> Completion:
    """Return a completion as everybody reads it. All replies of all backbones pass here."""
    text = without_surrogates(completion.text)
    reply = cut_thoughts(completion if text == completion.text else replace(completion, text=text), request.schema)
    holds_many = request.schema is not None and holds_several(reply.text, request.schema, request.messages)
    return replace(reply, several=True) if holds_many else reply


class BoundLm(msgspec.Struct, kw_only=True):
    """A backbone bound to its caller; counts the calls made through it."""

    gateway: CallGateway
    backbone: Backbone
    caller: Caller
    calls: int = 0

    @property
    def takes_tools(self) -> bool:
        """Whether the backbone can be offered tools."""
        return takes_tools(self.backbone)

    def __call__(self, messages: Sequence[Message], schema: Record | None = None) -> Completion:
        """Complete once through the gateway."""
        self.calls += 1
        return self.gateway.complete(self.backbone, messages, self.caller, schema)
