"""The counted door: every model call of every method passes here (design rule 5)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ace_bench.core.backbones import Backbone
from ace_bench.core.errors import BudgetExhausted, Interrupted, RolloutFault
from ace_bench.core.types import Completion, Message, Record, Stage
from ace_bench.runners.budget import Budget
from ace_bench.store.calls import CallLog, Recorded, call_name
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


class Door:
    """Lets a call through if it was not made before, the budget allows it and nobody asked to stop.

    A call is known by its session, role, prompt and how often that prompt was sent in the session: a run that is
    killed and continued asks the same questions in the same sessions and gets the recorded replies for free.
    """

    def __init__(  # noqa: PLR0913 - parts, all keyword-only
        self,
        *,
        calls: CallLog,
        budget: Budget,
        stop: threading.Event,
        wall: Callable[[], float],
        responses: Responses | None = None,
        seed: int = 0,
    ):
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
        name = call_name(caller.session, caller.role, messages)
        with self._lock:
            repetition = self._seen[name]
            self._seen[name] += caller.repeats
        call_id = f"{name}/{repetition}"
        known = self._calls.find(call_id)
        if known is not None:
            if known.fault is not None:
                raise RolloutFault(known.fault)
            return known.completion
        key = self._key(backbone, messages, schema, repetition)
        shared = self._responses.find(key) if self._responses else None
        if shared is not None:
            self._record(call_id, Recorded(completion=shared), caller)
            return shared
        self._admit()
        try:
            completion = _clean(backbone.complete(messages, role=caller.role, session=caller.session, schema=schema))
            self._record(call_id, Recorded(completion=completion), caller)
        except RolloutFault as error:
            if error.paid is not None:
                self._record(call_id, Recorded(completion=_clean(error.paid), fault=error.fault), caller)
            raise
        finally:
            with self._lock:
                self._under_way -= 1
        if self._responses:
            self._responses.add(key, completion)
        return completion

    def replay(self, session: str) -> None:
        """Let a session start over: prompts it sent before get their recorded replies."""
        with self._lock:
            for name in [name for name in self._seen if name.startswith(f"{session}/")]:
                del self._seen[name]

    def _record(self, call_id: str, recorded: Recorded, caller: Caller) -> None:
        self._calls.add(call_id, recorded, stage=caller.stage, role=caller.role, session=caller.session)

    def _key(self, backbone: Backbone, messages: Sequence[Message], schema: Record | None, repetition: int) -> str:
        if self._responses is None:
            return ""
        return response_key(backbone.identity, messages, schema=schema, seed=self._seed, repetition=repetition)

    def _admit(self) -> None:
        if self._stop.is_set():
            raise Interrupted("interrupted by the user")
        with self._lock:
            reason = self._budget.exceeded(self._calls.ledger.total, self._under_way, self._wall())
            if reason is not None:
                raise BudgetExhausted(reason)
            self._under_way += 1


def _clean(completion: Completion) -> Completion:
    """Replace half surrogate pairs, which a JSON reply may hold and no file can."""
    text = completion.text.encode("utf-8", "replace").decode()
    return completion if text == completion.text else replace(completion, text=text)


class BoundLm:
    """A backbone bound to its caller; counts the calls made through it."""

    def __init__(self, *, door: Door, backbone: Backbone, caller: Caller):
        self._door = door
        self._backbone = backbone
        self._caller = caller
        self.calls = 0

    def __call__(self, messages: Sequence[Message], schema: Record | None = None) -> Completion:
        """Complete once through the door."""
        self.calls += 1
        return self._door.complete(self._backbone, messages, self._caller, schema)
