"""What calls ask: each request is stored as what it shares with an earlier one of the run, and what is new in it.

A stored request looks like this::

    {"base": "5f0c...", "head": null, "messages": [["system", [[0, 940]]], ["user", [[0, 48213], "new", [48230, 17]]]]}

``base`` is the digest of an earlier request (the part of a call's id before the last slash), or null. ``head`` holds
settings and schema, or null where they are those of the base. A message is a role and a list of new texts and of
pieces of the base's message at the same place, ``[start, length]`` in characters.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ace_bench.core.digest import digest_of
from ace_bench.core.replies import without_surrogates
from ace_bench.core.types import Message, Record

_DIGEST_BYTES = 8
_BLOCK = 4096
"""Characters after which the state of the hash is kept: what a message shares with its base is not hashed again."""
_STRIDE = 65536
"""Characters that are compared at once."""
_SHORTEST = 20
"""Characters of a line that is looked up in the base: a reference to a shorter one saves nothing."""
_KEPT = 1 << 24
"""Characters of requests by session that are kept in memory to refer to."""

_Pieces = list[str | tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a call asks: ``settings`` name the backbone and say how it samples, ``schema`` is that of the reply."""

    messages: tuple[Message, ...]
    schema: Record | None
    settings: Record


class StoredRequest(msgspec.Struct, frozen=True):
    """A request in ``calls.jsonl``."""

    base: str | None
    head: dict[str, Any] | None
    messages: list[tuple[str, _Pieces]]


class _Text:
    """The content of a message, its digest, and the states of the hash after each block."""

    __slots__ = ("content", "digest", "states")

    def __init__(self, content: str, states: Sequence[Any]):
        """Hash a text, given the ``states`` of a beginning of it. Raises ``UnicodeEncodeError``."""
        self.content = content
        self.states = [*states]
        size = len(content)
        for start in range((len(states) - 1) * _BLOCK, size - _BLOCK + 1, _BLOCK):
            state = self.states[-1].copy()
            state.update(content[start : start + _BLOCK].encode())
            self.states.append(state)
        last = self.states[-1].copy()
        last.update(content[size - size % _BLOCK :].encode())
        self.digest: str = last.hexdigest()


_NO_TEXT = _Text("", [hashlib.blake2b(digest_size=_DIGEST_BYTES)])


@dataclass(frozen=True, kw_only=True)
class _Hashed:
    """A request with its digest."""

    digest: str
    head: tuple[Record | None, Record | None]
    head_digest: str
    texts: Sequence[_Text]


_NO_REQUEST = _Hashed(digest="", head=(None, None), head_digest="", texts=())


@dataclass(frozen=True, kw_only=True)
class PreparedRequest:
    """A request that is about to be sent. ``name`` holds a hash of all of it, settings and schema included."""

    session: str
    role: str
    messages: Sequence[Message]
    schema: Record | None
    hashed: _Hashed
    base: _Hashed
    shared: Sequence[int]

    @property
    def name(self) -> str:
        """Name of the call: who asks what in which session. A number behind it says how often it was asked before."""
        return f"{self.session}/{self.role}/{self.hashed.digest}"

    def record(self) -> Record:
        """Return the request as ``calls.jsonl`` stores it."""
        known = self.base.texts
        pieces = [
            _pieces(known[place].content if place < len(known) else "", message.content, self.shared[place])
            for place, message in enumerate(self.messages)
        ]
        settings, schema = self.hashed.head
        return {
            "base": self.base.digest or None,
            "head": None if self.hashed.head is self.base.head else {"settings": settings, "schema": schema},
            "messages": [(message.role, text) for message, text in zip(self.messages, pieces, strict=True)],
        }


class RequestHistory:
    """The latest requests on disk by session and by role: the next request probably begins like one of them.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._by_role: dict[str, _Hashed] = {}
        self._by_session: OrderedDict[tuple[str, str], _Hashed] = OrderedDict()
        self._kept = 0
        self._lock = threading.Lock()

    def prepare(
        self, session: str, role: str, messages: Sequence[Message], *, schema: Record | None, settings: Record
    ) -> PreparedRequest:
        """Hash a request. Half surrogate pairs in it, which no file can hold, are replaced before it is sent."""
        with self._lock:
            base = self._by_session.get((session, role)) or self._by_role.get(role, _NO_REQUEST)
        try:
            hashed, shared = _hashed(messages, (settings, schema), base)
        except UnicodeEncodeError:
            messages = [replace(message, content=without_surrogates(message.content)) for message in messages]
            hashed, shared = _hashed(messages, (settings, schema), base)
        return PreparedRequest(
            session=session, role=role, messages=messages, schema=schema, hashed=hashed, base=base, shared=shared
        )

    def add(self, request: PreparedRequest) -> None:
        """Let later requests refer to this one; only once it is on disk."""
        key, known = (request.session, request.role), request.hashed
        with self._lock:
            self._by_role[request.role] = known
            self._kept += _size(known) - _size(self._by_session.pop(key, _NO_REQUEST))
            self._by_session[key] = known
            while self._kept > _KEPT and len(self._by_session) > 1:
                self._kept -= _size(self._by_session.popitem(last=False)[1])


def restored_request(stored: StoredRequest, base: Request | None, digest: str) -> Request | None:
    """Return a request, given the one that it refers to; ``None`` where that was not the one it was stored against."""
    if base is None and stored.base is not None:
        return None
    known = base.messages if base is not None else ()
    head = stored.head
    if head is None and base is not None:
        head = {"settings": base.settings, "schema": base.schema}
    if head is None or not head.keys() >= {"settings", "schema"}:
        return None
    messages = tuple(
        Message(role=role, content=_joined(pieces, known[place].content if place < len(known) else ""))
        for place, (role, pieces) in enumerate(stored.messages)
    )
    try:
        hashed, _ = _hashed(messages, (head["settings"], head["schema"]), _NO_REQUEST)
    except UnicodeEncodeError:
        return None
    whole = Request(messages=messages, schema=head["schema"], settings=head["settings"])
    return whole if hashed.digest == digest else None


def _hashed(
    messages: Sequence[Message], head: tuple[Record | None, Record | None], base: _Hashed
) -> tuple[_Hashed, list[int]]:
    """Hash a request; also return how many characters each message shares with that of the base at its place."""
    if head == base.head:
        head, head_digest = base.head, base.head_digest
    else:
        head_digest = digest_of(head)
    whole = hashlib.blake2b(head_digest.encode(), digest_size=_DIGEST_BYTES)
    texts, shared = [], []
    for place, message in enumerate(messages):
        known = base.texts[place] if place < len(base.texts) else _NO_TEXT
        common = _common(known.content, 0, message.content, 0)
        same = common == len(known.content) == len(message.content)
        text = known if same else _Text(message.content, known.states[: common // _BLOCK + 1])
        whole.update(f"{message.role} {text.digest}\n".encode())
        texts.append(text)
        shared.append(common)
    return _Hashed(digest=whole.hexdigest(), head=head, head_digest=head_digest, texts=texts), shared


def _size(request: _Hashed) -> int:
    return sum(len(text.content) for text in request.texts)


def _joined(pieces: _Pieces, base: str) -> str:
    return "".join(part if isinstance(part, str) else base[part[0] : part[0] + part[1]] for part in pieces)


def _pieces(base: str, text: str, shared: int) -> _Pieces:
    """Return ``text`` as pieces of ``base``, which begins with the same ``shared`` characters, and new texts.

    After the shared beginning whole lines are looked up: counters and turns move, but mostly stay as they are.
    """
    pieces: _Pieces = [(0, shared)] if shared else []
    lines = _places(base, shared) if shared < len(text) else {}
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
