"""The calls of a run, each kept once it is paid for and never made twice; ours, because trackers cannot replay a call.

The ledger sums them up by stage and role: the cost of adaptation and evaluation.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import msgspec

from ace_bench.core.encoding import decoder_of
from ace_bench.core.errors import UNREADABLE
from ace_bench.core.types import NO_USAGE, Completion, Fault, Message, Record, Stage, Usage, add_known
from ace_bench.store.lines import AppendLog, DiskGuard, read_lines
from ace_bench.store.requests import PreparedRequest, RequestHistory
from ace_bench.store.speed import Speed, SpeedMeter

FILE = "calls.jsonl"
_KEPT_IF_ANY = ("thoughts", "written", "several")


class PaidReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply that was paid for; ``fault`` says why it could not be used, where it could not."""

    completion: Completion
    fault: Fault | None = None


class _Line(msgspec.Struct):
    """What the log needs of a line; what is in the request is only read by reports."""

    id: str
    stage: Stage
    role: str
    request: msgspec.Raw
    at: float
    fault: Fault | None = None


def _parse(line: bytes) -> tuple[_Line, PaidReply]:
    record: _Line = decoder_of(_Line).decode(line)
    return record, PaidReply(completion=decoder_of(Completion).decode(line), fault=record.fault)


class CallLog(AppendLog[tuple[_Line, PaidReply]]):
    """``calls.jsonl``: replies by call id, with the ledger over them.

    Each line also holds what the call asked (``requests``): prompts that share their beginning with earlier ones, as
    with a growing playbook, take little more room than their new part.

    A call that the backbone did not answer is kept for what it cost; when it is asked again, the later line counts.
    """

    def __init__(self, path: Path, guard: DiskGuard | None = None):
        """Read the file; raises ``StoreError`` if it cannot be read."""
        meaning = "lost calls are made again and paid for again, and what may rest on them is repeated"
        super().__init__(read_lines(path, _parse), guard=guard, meaning=meaning)
        self.ledger = Ledger()
        self.lost = self.found.lost
        """Numbers of the lines that damage took."""
        self.seen = self.found.count
        """Number of the last line that was ever recorded, as far as the file shows."""
        self._by_id: dict[str, PaidReply] = {}
        self._replies: Counter[str] = Counter()
        self._failures: dict[str, int] = {}
        self._requests = RequestHistory()
        for line, reply in self.found.entries:
            self._enter(line.id, reply, line.stage, line.role, line.at)

    @property
    def made(self) -> int:
        """Number of calls recorded, unanswered ones included."""
        return self.count

    def prepare(
        self, session: str, role: str, messages: Sequence[Message], *, schema: Record | None, settings: Record
    ) -> PreparedRequest:
        """Name and hash a request before it is sent."""
        return self._requests.prepare(session, role, messages, schema=schema, settings=settings)

    def replies(self, role: str) -> Iterator[Completion]:
        """Yield the usable replies that a role has got so far."""
        answered = [(call_id, reply) for call_id, reply in [*self._by_id.items()] if reply.fault is None]
        for call_id, reply in answered:
            if call_id.rsplit("/", 3)[-3] == role:  # session/role/digest/repetition
                yield reply.completion

    def find(self, call_id: str) -> PaidReply | None:
        """Return what an earlier process of this run got for a call."""
        return self._by_id.get(call_id)

    def count_replies(self, role: str) -> int:
        """Return how many replies with a text, readable or not, a role has got so far."""
        return self._replies[role]

    def replies_since_failure(self, call_id: str, role: str) -> int | None:
        """Return how many replies the role has got since this call was first left unanswered; ``None``: it never was.

        It is counted in the order of the file, so that a continued run comes to the same.
        """
        before = self._failures.get(call_id)
        return None if before is None else self._replies[role] - before

    def add(self, call_id: str, reply: PaidReply, *, stage: Stage, request: PreparedRequest) -> None:
        """Keep a call that was just made; raises ``FolderUnwritable``."""
        at = round(time.time(), 3)
        record = {
            "id": call_id,
            "stage": stage,
            "role": request.role,
            "session": request.session,
            "at": at,
            "request": request.record(),
            **{name: value for name, value in vars(reply.completion).items() if value or name not in _KEPT_IF_ANY},
            "fault": reply.fault,
        }
        self.append(record)
        self._requests.add(request)  # only now may another request refer to it
        self._enter(call_id, reply, stage, request.role, at)

    def _enter(self, call_id: str, reply: PaidReply, stage: Stage, role: str, at: float) -> None:
        self._by_id[call_id] = reply
        answered = reply.fault is None or not reply.fault.unanswered
        if not answered:
            self._failures.setdefault(call_id, self._replies[role])
        elif reply.fault is None or reply.fault.kind in UNREADABLE:
            self._replies[role] += 1
        self.ledger.add(stage, role, reply.completion, answered=answered, at=at)


@dataclass(frozen=True, kw_only=True)
class Account:
    """Sums over some calls.

    ``calls`` counts answered calls, ``asked_again`` further replies that were paid for and useless. ``seconds`` is
    model time, ``waited`` time lost to ``retries``, including retries of unanswered calls, and in our own queue.
    ``replayed`` calls came from earlier runs: they count in ``calls`` only. ``cut`` counts replies that ended at
    the limit of their length, ``blank`` those of them that ended in white space. ``thought`` counts replies with
    thoughts, which are ``thought_chars`` long, ``several`` those with different objects that fit, and
    ``all_reasoning`` those without text that ended by themselves: the server reports all their words as reasoning.
    """

    calls: int = 0
    asked_again: int = 0
    replayed: int = 0
    retries: int = 0
    cut: int = 0
    blank: int = 0
    thought: int = 0
    thought_chars: int = 0
    several: int = 0
    all_reasoning: int = 0
    usage: Usage = NO_USAGE
    seconds: float = 0.0
    waited: float = 0.0

    @property
    def paid(self) -> int:
        """Calls that a backbone answered."""
        return self.calls - self.replayed

    def __add__(self, other: Account) -> Account:
        """Sum field by field; unknown usage stays unknown."""
        return Account(**{name: value + getattr(other, name) for name, value in vars(self).items()})


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What some calls cost, or may cost at most; ``None`` is unknown."""

    calls: int = 0
    tokens: int | None = 0
    usd: float | None = 0.0

    @classmethod
    def from_account(cls, account: Account) -> Cost:
        """Return what a budget counts of some calls."""
        return cls(calls=account.paid + account.asked_again, tokens=account.usage.tokens, usd=account.usage.usd)

    def __add__(self, other: Cost) -> Cost:
        """Sum field by field; a sum with an unknown term is unknown."""
        return Cost(
            calls=self.calls + other.calls,
            tokens=add_known(self.tokens, other.tokens),
            usd=add_known(self.usd, other.usd),
        )

    def __sub__(self, other: Cost) -> Cost:
        """Take away what was added before; an unknown sum stays unknown."""
        return self + Cost(
            calls=-other.calls,
            tokens=None if other.tokens is None else -other.tokens,
            usd=None if other.usd is None else -other.usd,
        )


class _Sums:
    """An account that grows, quickly, with exact dollars: these do not depend on the order in which threads ended."""

    def __init__(self) -> None:
        self._calls = self._asked_again = self._replayed = self._retries = self._cut = self._blank = 0
        self._thought = self._thought_chars = self._several = self._all_reasoning = 0
        self._tokens: list[int | None] = [0, 0, 0]
        self._usd: Fraction | None = Fraction(0)
        self._seconds = self._waited = 0.0

    def add(self, completion: Completion, *, answered: bool) -> None:
        """Add one call; an unanswered one adds only its cost."""
        self._calls += answered
        self._replayed += completion.replayed
        self._retries += completion.retries
        self._cut += completion.cut
        self._blank += completion.cut_in_blanks
        self._thought += bool(completion.thoughts)
        self._thought_chars += len(completion.thoughts)
        self._several += completion.several
        self._all_reasoning += completion.all_reasoning
        self._seconds += completion.seconds
        self._waited += completion.waited
        if not completion.replayed:
            self._asked_again += completion.asked_again
            used = completion.usage
            self._tokens = [*map(add_known, self._tokens, (used.prompt, used.completion, used.cached))]
            if used.usd != 0:
                self._usd = add_known(self._usd, None if used.usd is None else Fraction(used.usd))

    def account(self) -> Account:
        """Return the sums so far."""
        prompt, completion, cached = self._tokens
        usd = None if self._usd is None else float(self._usd)
        usage = Usage(prompt=prompt, completion=completion, cached=cached, usd=usd)
        return Account(
            calls=self._calls,
            asked_again=self._asked_again,
            replayed=self._replayed,
            retries=self._retries,
            cut=self._cut,
            blank=self._blank,
            thought=self._thought,
            thought_chars=self._thought_chars,
            several=self._several,
            all_reasoning=self._all_reasoning,
            usage=usage,
            seconds=self._seconds,
            waited=self._waited,
        )


class Ledger:
    """Accounts of all calls, by stage, and by stage and role. Safe to use from several threads."""

    def __init__(self) -> None:
        self._sums: defaultdict[tuple[str, ...], _Sums] = defaultdict(_Sums)
        self._meters: defaultdict[Stage | None, SpeedMeter] = defaultdict(SpeedMeter)
        self._models: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def add(
        self, stage: Stage, role: str, completion: Completion, *, answered: bool = True, at: float | None = None
    ) -> None:
        """Add one call, recorded ``at`` a Unix time or just now; an unanswered one adds only its cost."""
        at = time.time() if at is None else at
        with self._lock:
            for key in ((), (stage,), (stage, role)):
                self._sums[key].add(completion, answered=answered)
            for measured in (None, stage):
                self._meters[measured].add(completion, at)
            self._models[role, completion.model] += answered

    def models(self) -> dict[tuple[str, str], int]:
        """Return the answered calls by role and the name of the model that the server gave."""
        with self._lock:
            return dict(self._models)

    @property
    def total(self) -> Account:
        """All calls together."""
        return self._account(())

    def stage(self, stage: Stage) -> Account:
        """All calls of a stage."""
        return self._account((stage,))

    def roles(self, stage: Stage) -> dict[str, Account]:
        """The calls of a stage by role, in order of name."""
        with self._lock:
            return {key[1]: sums.account() for key, sums in sorted(self._sums.items()) if key[:-1] == (stage,)}

    def speed(self, stage: Stage | None = None) -> Speed:
        """How fast the calls of a stage write, or all calls."""
        with self._lock:
            return self._meters[stage].speed()

    def _account(self, key: tuple[str, ...]) -> Account:
        with self._lock:
            return self._sums[key].account()
