"""The counted gateway: every model call of every method passes here (design rule 5)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ace_bench.core.backbones import Backbone
from ace_bench.core.errors import BudgetExhausted, CallLost, RolloutFault
from ace_bench.core.replies import without_surrogates
from ace_bench.core.types import Completion, Message, Record, Stage
from ace_bench.runners.budget import Budget
from ace_bench.runners.stopping import Stop
from ace_bench.runners.unanswered import FaultRule, Outage
from ace_bench.store.call_log import CallLog, PaidReply
from ace_bench.store.requests import PreparedRequest
from ace_bench.store.responses import Responses, response_key


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who asks, for the ledger: a role in a stage, within one backbone session.

    ``repeats`` says whether a prompt sent again in the session wants a new reply, or the one it got before.
    """

    stage: Stage
    role: str
    session: str
    repeats: bool = True


class CallGateway:
    """Lets a call through if it was not made before, the budget allows it and nobody asked to stop.

    A call is known by its session, role, the hash of all that it asks, and how often that was asked in the session: a
    run that is killed and continued asks the same in the same sessions and gets the recorded replies for free.

    A call that the backbone leaves unanswered raises ``CallLost``, unless ``faults`` accepts that as an answer.
    """

    def __init__(  # noqa: PLR0913 - parts, all keyword-only
        self,
        *,
        calls: CallLog,
        budget: Budget,
        stop: Stop,
        wall: Callable[[], float],
        faults: FaultRule | None = None,
        responses: Responses | None = None,
        seed: int = 0,
    ):
        self.faults = faults or FaultRule()
        self._outage = Outage(self.faults, stop)
        self._calls = calls
        self._responses = responses
        self._seed = seed
        self._budget = budget
        self._stop = stop
        self._wall = wall
        self._lock = threading.Lock()
        self._under_way = 0
        self._seen: Counter[str] = Counter()

    def complete(
        self, backbone: Backbone, messages: Sequence[Message], caller: Caller, schema: Record | None
    ) -> Completion:
        """Return the recorded reply of this call, or make it and record it."""
        settings = {"backbone": backbone.name, **backbone.identity, "seed": self._seed}
        request = self._calls.prepare(caller.session, caller.role, messages, schema=schema, settings=settings)
        name = request.name
        with self._lock:
            repetition = self._seen[name]
            self._seen[name] += caller.repeats
        call_id = f"{name}/{repetition}"
        known = self._calls.find(call_id)
        if known is not None and self.faults.is_answer(known.fault):
            if known.fault is not None:
                raise RolloutFault(known.fault)
            return known.completion
        pay = partial(self._pay, call_id, backbone, request, caller.stage)
        if self._responses is None:
            return pay()
        key = response_key(backbone.identity, request.messages, schema=schema, seed=self._seed, repetition=repetition)
        with self._responses.claimed(key, self._stop.check):
            shared = self._responses.find(key)
            if shared is not None:
                self._calls.add(call_id, PaidReply(completion=shared), stage=caller.stage, request=request)
                return shared
            completion = pay()
            self._responses.add(key, completion)
            return completion

    def replay(self, session: str) -> None:
        """Let a session start over: prompts it sent before get their recorded replies."""
        with self._lock:
            for name in [name for name in self._seen if name.startswith(f"{session}/")]:
                del self._seen[name]

    def replay_all(self) -> None:
        """Let all sessions start over, as in a process that continues the run."""
        with self._lock:
            self._seen.clear()

    def _pay(self, call_id: str, backbone: Backbone, request: PreparedRequest, stage: Stage) -> Completion:
        """Make a call within the budget."""
        self._admit()
        try:
            return self._ask(call_id, backbone, request, stage)
        finally:
            with self._lock:
                self._under_way -= 1

    def _ask(self, call_id: str, backbone: Backbone, request: PreparedRequest, stage: Stage) -> Completion:
        """Make a call and record what it cost, whatever comes of it."""
        add = partial(self._calls.add, call_id, stage=stage, request=request)
        try:
            reply = backbone.complete(
                request.messages, role=request.role, session=request.session, schema=request.schema
            )
        except RolloutFault as error:
            if error.paid is not None:
                add(PaidReply(completion=_clean(error.paid), fault=error.fault))
            if self.faults.is_answer(error.fault):
                self._outage.answered(backbone)
                raise
            self._outage.unanswered(backbone, error.fault)
            self._stop.check()
            raise CallLost(error.fault) from error
        completion = _clean(reply)
        add(PaidReply(completion=completion))
        self._outage.answered(backbone)
        return completion

    def _admit(self) -> None:
        self._stop.check()
        with self._lock:
            reason = self._budget.exceeded(self._calls.ledger.total, self._under_way, self._wall())
            if reason is not None:
                raise BudgetExhausted(reason)
            self._under_way += 1


def _clean(completion: Completion) -> Completion:
    text = without_surrogates(completion.text)
    return completion if text == completion.text else replace(completion, text=text)


class BoundLm:
    """A backbone bound to its caller; counts the calls made through it."""

    def __init__(self, *, gateway: CallGateway, backbone: Backbone, caller: Caller):
        self._gateway = gateway
        self._backbone = backbone
        self._caller = caller
        self.calls = 0

    def __call__(self, messages: Sequence[Message], schema: Record | None = None) -> Completion:
        """Complete once through the gateway."""
        self.calls += 1
        return self._gateway.complete(self._backbone, messages, self._caller, schema)
