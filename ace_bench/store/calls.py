"""The calls of a run: each one kept with its reply the moment it is paid for, and never made twice."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ace_bench.core.typed import decoder_of
from ace_bench.core.types import Completion, Fault, Message, Stage
from ace_bench.store.files import WriteGate
from ace_bench.store.ledger import Ledger
from ace_bench.store.lines import AppendLog


@dataclass(frozen=True, kw_only=True)
class PaidReply:
    """A reply that was paid for; ``fault`` says why it could not be used, where it could not."""

    completion: Completion
    fault: Fault | None = None


_END = 4096
"""Characters at either end of a message that enter a call's checksum."""


def call_name(session: str, role: str, messages: Sequence[Message]) -> str:
    """Name a call by who asks what in which session; a number behind it tells how often that was asked before."""
    # The session holds the digest of the context; the checksum only guards against another prompt set or sample. Ends
    # and length do for that: reading a whole playbook at every call would cost more than all the rest of the harness.
    value = 0
    for message in messages:
        content = message.content
        known = f"{message.role} {len(content)} {content[:_END]} {content[-_END:]}"
        value = zlib.crc32(known.encode(errors="replace"), value)
    return f"{session}/{role}/{value:08x}"


@dataclass(frozen=True, kw_only=True)
class CallRecord:
    """One line of ``calls.jsonl``."""

    id: str
    stage: Stage
    role: str
    session: str
    completion: Completion
    fault: Fault | None


class _About(msgspec.Struct):
    id: str
    stage: Stage
    role: str
    session: str
    fault: Fault | None = None


def parse_call(line: bytes) -> CallRecord:
    """Read a line of ``calls.jsonl``; raises ``ValueError``."""
    about: _About = decoder_of(_About).decode(line)
    completion: Completion = decoder_of(Completion).decode(line)
    return CallRecord(
        id=about.id,
        stage=about.stage,
        role=about.role,
        session=about.session,
        completion=completion,
        fault=about.fault,
    )


class CallLog:
    """``calls.jsonl``: replies by call id, with the ledger over them.

    The prompt itself is not kept: it can be made again from the context step, ``samples.json`` and ``prompts/``, and
    writing a whole playbook at every call would let the folder grow by the playbook instead of the delta.

    A call that the backbone did not answer is kept for what it cost; when it is asked again, the later line counts.
    """

    def __init__(self, path: Path, gate: WriteGate | None = None):
        self.ledger = Ledger()
        self._log = AppendLog(
            path,
            parse_call,
            gate=gate,
            meaning="the calls that are gone are made again, and what may rest on them is done again over the others",
        )
        self.lost = self._log.found.lost
        """Numbers of the lines that damage took."""
        self._by_id: dict[str, PaidReply] = {}
        for record in self._log.found.entries:
            recorded = PaidReply(completion=record.completion, fault=record.fault)
            self._enter(record.id, recorded, record.stage, record.role)

    @property
    def made(self) -> int:
        """Number of calls recorded, unanswered ones included."""
        return self._log.count

    def find(self, call_id: str) -> PaidReply | None:
        """Return what an earlier process of this run got for a call."""
        return self._by_id.get(call_id)

    def add(self, call_id: str, recorded: PaidReply, *, stage: Stage, role: str, session: str) -> None:
        """Keep a call that was just made; raises ``FolderUnwritable``."""
        record = {
            "id": call_id,
            "stage": stage.value,
            "role": role,
            "session": session,
            **msgspec.to_builtins(recorded.completion),
            "fault": msgspec.to_builtins(recorded.fault),
        }
        self._log.append(record)
        self._enter(call_id, recorded, stage, role)

    def settle(self) -> None:
        """Put the file in order after damage; raises ``FolderUnwritable``."""
        self._log.settle()

    def sync(self) -> None:
        """Flush to the disk itself."""
        self._log.sync()

    def close(self) -> None:
        """Close the file."""
        self._log.close()

    def _enter(self, call_id: str, recorded: PaidReply, stage: Stage, role: str) -> None:
        self._by_id[call_id] = recorded
        answered = recorded.fault is None or not recorded.fault.unanswered
        self.ledger.add(stage, role, recorded.completion, answered=answered)
