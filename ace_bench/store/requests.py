"""What calls ask: each request is stored as what it shares with an earlier one of the run, and what is new in it.

As text, a request is one line of JSON with its settings and schema, then the contents of its messages, with nothing
between them. A stored request looks like this::

    {"base": "5f0c...", "text": [[0, 48213], "new text", [48230, 117]], "sections": [["request", 512], ["system", 940]]}

``base`` is the digest of an earlier request (the part of a call's id before the last slash), or null. ``text`` is a
list of new texts and of pieces of the base, ``[start, length]``. ``sections`` are the lengths of the line of JSON and
of each message, by role. All of them count characters.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ace_bench.core.replies import without_surrogates
from ace_bench.core.types import Message, Record

HEAD = "request"
"""The name of the section that holds settings and schema."""

_DIGEST_BYTES = 8
_BLOCK = 4096
"""Characters after which the state of the hash is kept: what a request shares with its base is not hashed again."""
_STRIDE = 65536
"""Characters that are compared at once."""

_SHORTEST = 20
"""Characters of a line that is looked up in the base: a reference to a shorter one saves nothing."""
_KEPT = 1 << 24
"""Characters of requests by session that are kept in memory to refer to."""

_ENCODER = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a call asks: ``settings`` name the backbone and say how it samples, ``schema`` is that of the reply."""

    messages: tuple[Message, ...]
    schema: Record | None
    settings: Record


class StoredRequest(msgspec.Struct, frozen=True):
    """A request in ``calls.jsonl``."""

    base: str | None
    text: list[str | tuple[int, int]]
    sections: list[tuple[str, int]]


class _Known:
    """The text of a request on disk, and the states of its hash after each block."""

    def __init__(self, digest: str, text: str, states: list[Any]):
        self.digest = digest
        self.text = text
        self.states = states


_NOTHING = _Known("", "", [hashlib.blake2b(digest_size=_DIGEST_BYTES)])


@dataclass(frozen=True, kw_only=True)
class PreparedRequest:
    """A request that is about to be sent. ``digest`` is a hash of all of it, settings and schema included."""

    session: str
    role: str
    messages: Sequence[Message]
    schema: Record | None
    digest: str
    text: str
    sections: Sequence[tuple[str, int]]
    states: list[Any]
    base: _Known
    shared: int

    @property
    def name(self) -> str:
        """Name of the call: who asks what in which session. A number behind it says how often it was asked before."""
        return f"{self.session}/{self.role}/{self.digest}"

    def record(self) -> Record:
        """Return the request as ``calls.jsonl`` stores it."""
        base = self.base.digest or None
        return {"base": base, "text": _pieces(self.base.text, self.text, self.shared), "sections": self.sections}


class RequestHistory:
    """The latest requests on disk by session and by role: the ones that the next request probably begins like.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._by_role: dict[str, _Known] = {}
        self._by_session: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._kept = 0
        self._lock = threading.Lock()

    def prepare(
        self, session: str, role: str, messages: Sequence[Message], *, schema: Record | None, settings: Record
    ) -> PreparedRequest:
        """Hash a request. Half surrogate pairs in it, which no file can hold, are replaced before it is sent."""
        with self._lock:
            base = self._by_session.get((session, role)) or self._by_role.get(role, _NOTHING)
        head = _ENCODER.encode({"settings": settings, "schema": schema}).decode()
        text = "".join([head, *(message.content for message in messages)])
        shared = _common(base.text, 0, text, 0)
        sections = [(HEAD, len(head)), *((message.role, len(message.content)) for message in messages)]
        try:
            states, digest = _hashed(text, sections, base.states[: shared // _BLOCK + 1])
        except UnicodeEncodeError:
            clean = [replace(message, content=without_surrogates(message.content)) for message in messages]
            return self.prepare(session, role, clean, schema=schema, settings=settings)
        return PreparedRequest(
            session=session,
            role=role,
            messages=messages,
            schema=schema,
            digest=digest,
            text=text,
            sections=sections,
            states=states,
            base=base,
            shared=shared,
        )

    def add(self, request: PreparedRequest) -> None:
        """Let later requests refer to this one; only once it is on disk."""
        known = _Known(request.digest, request.text, request.states)
        key = request.session, request.role
        with self._lock:
            self._by_role[request.role] = known
            before = self._by_session.pop(key, _NOTHING)
            self._by_session[key] = known
            self._kept += len(known.text) - len(before.text)
            while self._kept > _KEPT and len(self._by_session) > 1:
                self._kept -= len(self._by_session.popitem(last=False)[1].text)


def text_of(stored: StoredRequest, base: str) -> str:
    """Return the text of a stored request, given that of its base."""
    parts = (part if isinstance(part, str) else base[part[0] : part[0] + part[1]] for part in stored.text)
    return "".join(parts)


def request_of(stored: StoredRequest, text: str, digest: str) -> Request | None:
    """Return a request from its text; ``None`` where the digest does not fit: the base was another one."""
    try:
        if _hashed(text, stored.sections, _NOTHING.states)[1] != digest:
            return None
    except UnicodeEncodeError:
        return None
    (_, size), *sections = stored.sections
    head = msgspec.json.decode(text[:size])
    messages, at = [], size
    for role, length in sections:
        messages.append(Message(role=role, content=text[at : at + length]))
        at += length
    return Request(messages=tuple(messages), schema=head["schema"], settings=head["settings"])


def _hashed(text: str, sections: Sequence[tuple[str, int]], states: list[Any]) -> tuple[list[Any], str]:
    """Return the states of the hash after each block and the digest, going on from the ``states`` of a prefix."""
    size = len(text)
    states = list(states)
    for start in range((len(states) - 1) * _BLOCK, size - _BLOCK + 1, _BLOCK):
        state = states[-1].copy()
        state.update(text[start : start + _BLOCK].encode())
        states.append(state)
    last = states[-1].copy()
    last.update(text[size - size % _BLOCK :].encode())
    last.update(repr(tuple(map(tuple, sections))).encode())
    return states, last.hexdigest()


def _pieces(base: str, text: str, shared: int) -> list[str | tuple[int, int]]:
    """Return ``text`` as pieces of ``base``, which begins with the same ``shared`` characters, and new texts.

    After the shared beginning whole lines are looked up: counters and turns move, but mostly stay as they are.
    """
    pieces: list[str | tuple[int, int]] = [(0, shared)] if shared else []
    lines = _places(base, shared)
    at = new = shared
    while lines and at < len(text):
        end = text.find("\n", at)
        line = text[at:] if end < 0 else text[at:end]
        place = lines.get(line)
        if place is None:
            at += len(line) + 1
            continue
        if new < at:
            pieces.append(text[new:at])
        count = _common(base, place, text, at)
        pieces.append((place, count))
        at = new = at + count
    if new < len(text):
        pieces.append(text[new:])
    return pieces


def _places(base: str, start: int) -> dict[str, int]:
    """Return where each line of ``base`` from ``start`` on first begins, short lines left out."""
    places: dict[str, int] = {}
    at = start
    for line in base[start:].split("\n"):
        if len(line) >= _SHORTEST:
            places.setdefault(line, at)
        at += len(line) + 1
    return places


def _common(a: str, a_at: int, b: str, b_at: int) -> int:
    """Return how many characters are the same in two texts from a place in each."""
    limit = min(len(a) - a_at, len(b) - b_at)
    count, step = 0, _STRIDE
    while count < limit:
        step = min(step, limit - count)
        if b.startswith(a[a_at + count : a_at + count + step], b_at + count):
            count += step
        elif step == 1:
            break
        else:
            step //= 2
    return count
