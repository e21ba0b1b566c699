"""The calls of a run: each one kept with what it asked and its reply once it is paid for, and never made twice."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ace_bench.core.errors import StoreError
from ace_bench.core.typed import decoder_of
from ace_bench.core.types import Completion, Fault, Message, Record, Stage
from ace_bench.store.files import WriteGate
from ace_bench.store.ledger import Ledger
from ace_bench.store.lines import AppendLog
from ace_bench.store.requests import PreparedRequest, RequestHistory

FILE = "calls.jsonl"


@dataclass(frozen=True, kw_only=True)
class PaidReply:
    """A reply that was paid for; ``fault`` says why it could not be used, where it could not."""

    completion: Completion
    fault: Fault | None = None


class _Line(msgspec.Struct):
    """What the log needs of a line; the request is only read by reports."""

    id: str
    stage: Stage
    role: str
    fault: Fault | None = None
    request: msgspec.Raw = msgspec.Raw()


@dataclass(frozen=True, kw_only=True)
class _Entry:
    id: str
    stage: Stage
    role: str
    reply: PaidReply
    has_request: bool


def _parse(line: bytes) -> _Entry:
    found: _Line = decoder_of(_Line).decode(line)
    completion: Completion = decoder_of(Completion).decode(line)
    return _Entry(
        id=found.id,
        stage=found.stage,
        role=found.role,
        reply=PaidReply(completion=completion, fault=found.fault),
        has_request=bool(bytes(found.request)),
    )


class CallLog:
    """``calls.jsonl``: replies by call id, with the ledger over them.

    Each line also holds what the call asked (``requests``): prompts that share their beginning with earlier ones, as
    those of a growing playbook do, take little more room than what is new in them.

    A call that the backbone did not answer is kept for what it cost; when it is asked again, the later line counts.
    """

    def __init__(self, path: Path, gate: WriteGate | None = None):
        """Read the file; raises ``StoreError`` where it cannot be read or a version wrote it that kept no prompts."""
        self.ledger = Ledger()
        self._log = AppendLog(
            path,
            _parse,
            gate=gate,
            meaning="lost calls are made again and paid for again, and what may rest on them is repeated",
        )
        self.path = path
        self.lost = self._log.found.lost
        """Numbers of the lines that damage took."""
        self.seen = self._log.found.count
        """Number of the last line that was ever recorded, as far as the file shows."""
        self._by_id: dict[str, PaidReply] = {}
        self._requests = RequestHistory()
        for entry in self._log.found.entries:
            if not entry.has_request:
                raise StoreError(
                    f"{path} was begun by an older version of ace-bench, which kept no prompts, and cannot be "
                    "continued; start a new run with resume=false or another folder (results=)"
                )
            self._enter(entry.id, entry.reply, entry.stage, entry.role)

    @property
    def made(self) -> int:
        """Number of calls recorded, unanswered ones included."""
        return self._log.count

    def prepare(
        self, session: str, role: str, messages: Sequence[Message], *, schema: Record | None, settings: Record
    ) -> PreparedRequest:
        """Name and hash a request before it is sent."""
        return self._requests.prepare(session, role, messages, schema=schema, settings=settings)

    def replies(self, role: str) -> Iterator[Completion]:
        """Yield the usable replies that a role has got so far."""
        known = [(call_id, reply) for call_id, reply in [*self._by_id.items()] if reply.fault is None]
        for call_id, reply in known:
            if call_id.rsplit("/", 3)[-3] == role:  # session/role/digest/repetition
                yield reply.completion

    def find(self, call_id: str) -> PaidReply | None:
        """Return what an earlier process of this run got for a call."""
        return self._by_id.get(call_id)

    def add(self, call_id: str, reply: PaidReply, *, stage: Stage, request: PreparedRequest) -> None:
        """Keep a call that was just made; raises ``FolderUnwritable``."""
        record = {
            "id": call_id,
            "stage": stage,
            "role": request.role,
            "session": request.session,
            "at": round(time.time(), 3),
            "request": request.record(),
            **vars(reply.completion),
            "fault": reply.fault,
        }
        self._log.append(record)
        self._requests.add(request)  # only now may another request refer to it
        self._enter(call_id, reply, stage, request.role)

    def settle(self) -> None:
        """Put the file in order after damage; raises ``FolderUnwritable``."""
        self._log.settle()

    def sync(self) -> None:
        """Flush to the disk itself."""
        self._log.sync()

    def close(self) -> None:
        """Close the file."""
        self._log.close()

    def _enter(self, call_id: str, reply: PaidReply, stage: Stage, role: str) -> None:
        self._by_id[call_id] = reply
        answered = reply.fault is None or not reply.fault.unanswered
        self.ledger.add(stage, role, reply.completion, answered=answered)
