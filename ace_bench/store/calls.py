"""The calls of a run folder as they were made, with their exact messages: all that a report or a notebook needs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ace_bench.core.encoding import decoder_of
from ace_bench.core.errors import StoreError
from ace_bench.core.types import Completion, Fault, Message, Record, Stage
from ace_bench.store.call_log import FILE
from ace_bench.store.lines import Lines, read_lines
from ace_bench.store.requests import Spans, digest_of_request, join_schema, join_spans


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a call asks: ``settings`` name the backbone and say how it samples, ``schema`` describes the reply."""

    messages: tuple[Message, ...]
    schema: Record | None
    settings: Record


class StoredRequest(msgspec.Struct, frozen=True):
    """A request in ``calls.jsonl``."""

    base: str | None
    first: str | None
    head: dict[str, Any] | None
    messages: list[tuple[str, Spans]]


class CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded call: what was sent, what came back, and what it cost.

    ``at`` is the Unix time at which the reply was recorded. ``request`` is ``None`` if it cannot be restored.
    """

    id: str
    stage: Stage
    role: str
    session: str
    at: float
    request: Request | None
    completion: Completion
    fault: Fault | None


class StoredCall(msgspec.Struct, frozen=True, kw_only=True):
    """A line of ``calls.jsonl``, with the request as it is stored."""

    record: CallRecord
    stored: StoredRequest

    @property
    def digest(self) -> str:
        """The digest of the request, by which later ones refer to it."""
        return self.record.id.rpartition("/")[0].rpartition("/")[2]


class _Line(msgspec.Struct):
    id: str
    stage: Stage
    role: str
    session: str
    at: float
    request: StoredRequest
    fault: Fault | None = None


def read_calls(folder: str | Path) -> Iterator[CallRecord]:
    """Yield every call of a run folder, running or finished, in the order in which they were recorded.

    Needs neither templates nor code nor settings of the run, and keeps few prompts in memory at once. Raises
    ``StoreError`` where a line is damaged or missing, or the messages of a call are not kept.
    """
    path = Path(folder) / FILE
    for record in restore_calls(stored_calls(Path(folder)).check().entries):
        if record.request is None:
            raise StoreError(
                f"{path} does not hold the messages of {record.id}: it was changed; repeat the run in a new "
                "folder with resume=false"
            )
        yield record


def first_settings(folder: Path, role: str) -> Record | None:
    """Return the settings of a role's first recorded call; ``None`` if none can be read."""
    try:
        with (folder / FILE).open("rb") as lines:
            for line in lines:
                call = parse_call(line)
                settings: Record | None = (call.stored.head or {}).get("settings")
                if call.record.role == role and settings is not None:
                    return settings
    except (OSError, ValueError, KeyError):
        return None
    return None


def stored_calls(folder: Path) -> Lines[StoredCall]:
    """Read the lines of a run folder's calls, whatever their state; raises ``StoreError`` for an unreadable file."""
    return read_lines(folder / FILE, parse_call)


def restore_calls(calls: Sequence[StoredCall]) -> Iterator[CallRecord]:
    """Yield calls with their requests, as far as they can be restored; each is kept while a later one refers to it."""
    places: dict[str, list[int]] = {}
    for index, call in enumerate(calls):
        places.setdefault(call.digest, []).append(index)
    sources = [
        (_place_of(call.stored.base, index, places), _place_of(call.stored.first, index, places))
        for index, call in enumerate(calls)
    ]
    last_use = {source: index for index, indices in enumerate(sources) for source in indices}
    restored: dict[int, Request | None] = {}
    for index, call in enumerate(calls):
        pending: dict[int, None] = {index: None}
        while pending:
            current = next(reversed(pending))
            missing = {source for source in sources[current] if source is not None} - restored.keys() - pending.keys()
            if missing:
                pending[missing.pop()] = None
            else:
                del pending[current]
                base, first = (None if source is None else restored.get(source) for source in sources[current])
                restored[current] = restore_request(calls[current].stored, base, first, calls[current].digest)
        yield replace(call.record, request=restored[index])
        for used in (index, *sources[index]):
            if used is not None and last_use.get(used, -1) <= index:
                restored.pop(used, None)


def parse_call(line: bytes) -> StoredCall:
    """Read a line of ``calls.jsonl``; raises ``ValueError``."""
    record: _Line = decoder_of(_Line).decode(line)
    fields = msgspec.structs.asdict(record) | {"request": None, "completion": decoder_of(Completion).decode(line)}
    return StoredCall(record=CallRecord(**fields), stored=record.request)


def _place_of(digest: str | None, index: int, places: dict[str, list[int]]) -> int | None:
    """Return where a request stands: before ``index``, or behind it where the line was damaged and made again."""
    candidates = places.get(digest, []) if digest is not None else []
    before = bisect_left(candidates, index)
    if before:
        return candidates[before - 1]
    return next((candidate for candidate in candidates[before:] if candidate != index), None)


def _restore_head(stored: Record, base: Request | None) -> Record:
    """Return settings and schema; raises ``ValueError`` or ``KeyError`` if they were not stored against this base."""
    before: Record = {} if base is None else {"settings": base.settings, "schema": base.schema}
    if "schema_spans" not in stored:
        return {**before, **stored}
    spans = msgspec.convert(stored["schema_spans"], Spans)
    return {**before, **stored, "schema": join_schema(spans, before["schema"])}


def restore_request(stored: StoredRequest, base: Request | None, first: Request | None, digest: str) -> Request | None:
    """Return a request, given those that it refers to; ``None`` if it was not stored against these."""
    base_messages = base.messages if base is not None else ()
    first_text = first.messages[-1].content if first is not None and first.messages else ""
    messages = tuple(
        Message(
            role=role,
            content=join_spans(
                spans, (base_messages[index].content if index < len(base_messages) else "") + first_text
            ),
        )
        for index, (role, spans) in enumerate(stored.messages)
    )
    try:
        head = _restore_head(stored.head or {}, base)
        if digest_of_request(messages, head) != digest:
            return None
    except (KeyError, ValueError):
        return None
    return Request(messages=messages, schema=head["schema"], settings=head["settings"])
