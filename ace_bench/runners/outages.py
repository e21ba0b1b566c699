"""Tells a prompt that a server refuses from a server that fails: the first is one failed attempt, the second stops.

What tells them apart is whether the server answers others. A call that is left without an answer is made again, and
what happened in between decides. It is looked up in the recorded calls, so a continued run decides alike.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, replace

from ace_bench.core.backbones import Answering, Backbone
from ace_bench.core.errors import BackboneUnavailable
from ace_bench.core.prompts import REFUSED
from ace_bench.core.types import Fault, Stage
from ace_bench.runners.limits import Stop
from ace_bench.store.call_log import CallLog
from ace_bench.store.requests import PreparedRequest

_FAILED = "server_error"
_TIMES = 3
"""How often a server that fails for one call must answer a tiny one: errors of servers mostly pass."""
_REFUSED_TWICE = "refused again although the server answers other calls"
_FAILED_ALONE = "failed again and again although the server answers other calls"


@dataclass(frozen=True, kw_only=True)
class FaultRule:
    """``stop_after`` unanswered calls in a row stop the run; with ``accept`` none does, and each is a wrong answer.

    ``learn_unreadable``: a reply that cannot be read is an attempt that failed, as in the authors' code, and no fault.
    """

    accept: bool = False
    stop_after: int = 5
    learn_unreadable: bool = True

    def is_answer(self, fault: Fault | None) -> bool:
        """Whether a call or rollout that ended with ``fault`` counts as finished."""
        return fault is None or self.accept or not fault.unanswered


@dataclass(frozen=True, kw_only=True)
class FailedCall:
    """A call that a backbone left without an answer."""

    id: str
    stage: Stage
    backbone: Backbone
    request: PreparedRequest
    fault: Fault


class Outage:
    """Decides what an unanswered call means, counts those in a row by backbone, and requests the stop."""

    def __init__(self, rule: FaultRule, stop: Stop, calls: CallLog):
        self._rule = rule
        self._stop = stop
        self._calls = calls
        self._in_a_row: Counter[int] = Counter()
        self._new_refusals: Counter[str] = Counter()
        self._unproven: Counter[str] = Counter()
        self._lock = threading.Lock()

    def reset(self, backbone: Backbone, role: str) -> None:
        """Record an answered call."""
        # Seldom; most calls need not take the lock.
        if self._in_a_row[id(backbone)] or self._new_refusals[role] or self._unproven[role]:
            with self._lock:
                self._in_a_row[id(backbone)] = self._new_refusals[role] = self._unproven[role] = 0

    def judge(self, call: FailedCall) -> Fault:
        """Return the fault of a call: the model's where the server answers others and not this one.

        Otherwise the fault stays the backbone's, the call is to be made again, and the run stops after too many in a
        row.
        """
        since = self._calls.replies_since_failure(call.id, call.request.role)
        if call.fault.kind == REFUSED:
            if since is None:
                self._note_new_refusal(call)
                return call.fault
            if since or self._answers_others(call):
                return _fault_of_model(call.fault, _REFUSED_TWICE)
        if self._count(call) < self._rule.stop_after:
            return call.fault
        if call.fault.kind == _FAILED and since is not None and all(self._answers(call) for _ in range(_TIMES)):
            self._forget(call)
            return _fault_of_model(call.fault, _FAILED_ALONE)
        self._request_stop(call)
        return call.fault

    def count_failure(self, call: FailedCall) -> None:
        """Record an unanswered call for whose reply no fault can stand."""
        if self._count(call) >= self._rule.stop_after:
            self._request_stop(call)

    def _note_new_refusal(self, call: FailedCall) -> None:
        """Let other calls be tried before this one is repeated, unless the server answers nothing any more."""
        with self._lock:
            self._new_refusals[call.request.role] += 1
            number = self._new_refusals[call.request.role]
        if number == self._rule.stop_after and not self._answers(call):
            self._count(call, number)
            self._request_stop(call)

    def _answers_others(self, call: FailedCall) -> bool:
        """Whether a refusal is the prompt's, although no call was answered since the first one.

        A tiny call of the same role stands for the others. Where the role never had a reply in the run, that shows
        little: in adaptation, whose next step waits for this call, a few calls are decided so, and in evaluation, where
        all others had their turn, none.
        """
        if not self._answers(call):
            return False
        if self._calls.count_replies(call.request.role):
            return True
        with self._lock:
            self._unproven[call.request.role] += 1
            return call.stage is Stage.ADAPT and self._unproven[call.request.role] < self._rule.stop_after

    def _answers(self, call: FailedCall) -> bool:
        """Whether the backbone answers a tiny call now. A backbone without such a call counts as answering."""
        if not isinstance(call.backbone, Answering):
            return True
        return call.backbone.answers(role=call.request.role, schema=call.request.schema)

    def _count(self, call: FailedCall, number: int = 1) -> int:
        with self._lock:
            self._in_a_row[id(call.backbone)] += number
            return self._in_a_row[id(call.backbone)]

    def _forget(self, call: FailedCall) -> None:
        with self._lock:
            self._in_a_row[id(call.backbone)] = 0

    def _request_stop(self, call: FailedCall) -> None:
        number = self._rule.stop_after  # other threads may have lost more by now
        calls = "a call" if number == 1 else f"{number} calls in a row"
        self._stop.request(
            BackboneUnavailable(
                f"{call.backbone.name} left {calls} unanswered ({call.fault.kind}: {call.fault.message}); a continued "
                "run repeats them, and with accept_faults=true they count as wrong"
            )
        )


def _fault_of_model(fault: Fault, why: str) -> Fault:
    return replace(fault, owner="model", message=f"{fault.message} ({why})")
