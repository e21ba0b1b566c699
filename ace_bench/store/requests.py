"""What calls ask: each request is stored as what it shares with earlier ones of the run, and what is new in it.

A stored request looks like this::

    {"base": "5f0c...", "first": null, "head": null,
     "messages": [["system", [[0, 940]]], ["user", [[0, 48213], "new", [48230, 17]]]]}

``base`` and ``first`` are digests of earlier requests (the part of a call's id before the last slash), or null:
``base`` is the latest request of the same role, ``first`` the first one of the session, where the base is of another
session. ``head`` holds settings and schema, each only where it differs from the base's; null if both are equal. Of a
base with a schema, ``schema_spans`` holds the spans of the new one in the JSON of the base's. A message is a role and a
list of spans. A span is new text, or the ``[start, length]``, in characters, of a passage in the base's message at the
same place, followed by the last message of ``first``.

The comparison is ours: difflib takes about 70 ms a megabyte, and every prompt is compared.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from ace_bench.core.encoding import digest_of
from ace_bench.core.replies import without_surrogates
from ace_bench.core.types import Message, Record

_STRIDE = 16**4
"""Characters that are compared at once; where they differ, a sixteenth of them, and so on."""
_SHORTEST = 20
"""Characters of a line that is looked up in earlier texts: a reference to a shorter one saves nothing."""

Spans = list[str | tuple[int, int]]
"""New text, or the ``(start, length)`` of a passage, in characters."""

_DIGEST_BYTES = 8
_BLOCK = 4096
"""Characters after which the state of the hash is kept: what a message shares with its base is not hashed again."""
_KEPT = 1 << 24
"""Characters of requests by session that are kept in memory to refer to."""


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


class _Hashed(msgspec.Struct, frozen=True, kw_only=True):
    """A request with its digest."""

    digest: str
    head: tuple[Record | None, Record | None]
    head_digest: str
    texts: Sequence[_Text]

    def content(self, index: int) -> str:
        """Return the content of a message, empty if it does not exist."""
        return self.texts[index].content if index < len(self.texts) else ""

    @property
    def size(self) -> int:
        """Characters of all messages."""
        return sum(len(text.content) for text in self.texts)


_NO_REQUEST = _Hashed(digest="", head=(None, None), head_digest="", texts=())


@dataclass(frozen=True, kw_only=True)
class _Session:
    """The requests of a session that later ones may refer to: the latest of each role, and the first one.

    It keeps the request's ``digest`` and the ``content`` of its last message, which was new from ``start`` on.
    """

    digest: str = ""
    content: str = ""
    start: int = 0
    latest: dict[str, _Hashed] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Characters that are kept."""
        return len(self.content) + sum(request.size for request in self.latest.values())


_NO_SESSION = _Session()


class PreparedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is about to be sent. ``name`` holds a hash of all of it, settings and schema included."""

    session: str
    role: str
    messages: Sequence[Message]
    schema: Record | None
    hashed: _Hashed
    base: _Hashed
    first: _Session
    shared: Sequence[int]

    @property
    def name(self) -> str:
        """Name of the call: who asks what in which session. A number behind it says how often it was asked before."""
        return f"{self.session}/{self.role}/{self.hashed.digest}"

    def record(self) -> Record:
        """Return the request as ``calls.jsonl`` stores it."""
        first, messages = None, []
        for index, message in enumerate(self.messages):
            base_content = self.base.content(index)
            spans = split_spans(base_content, self.first.content, self.first.start, message.content, self.shared[index])
            messages.append((message.role, spans))
            if any(not isinstance(span, str) and span[0] >= len(base_content) for span in spans):
                first = self.first.digest
        return {
            "base": self.base.digest or None,
            "first": first,
            "head": self._head(),
            "messages": messages,
        }

    def _head(self) -> dict[str, Any] | None:
        """Return what of settings and schema differs from the base's."""
        (settings, schema), (base_settings, base_schema) = self.hashed.head, self.base.head
        if not self.base.digest:
            return {"settings": settings, "schema": schema}
        head: dict[str, Any] = {} if settings == base_settings else {"settings": settings}
        if schema is None or base_schema is None:
            head |= {} if schema is base_schema else {"schema": schema}
        elif schema != base_schema:
            head["schema_spans"] = split_schema(base_schema, schema)
        return head or None


class RequestHistory:
    """The latest requests on disk by session and by role: the next request probably begins like one of them.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._by_role: dict[str, _Hashed] = {}
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._kept = 0
        self._lock = threading.Lock()

    def prepare(
        self, session: str, role: str, messages: Sequence[Message], *, schema: Record | None, settings: Record
    ) -> PreparedRequest:
        """Hash a request. Half surrogate pairs in it, which no file can hold, are replaced before it is sent."""
        with self._lock:
            earlier = self._sessions.get(session, _NO_SESSION)
            latest = earlier.latest.get(role)
            base, first = (self._by_role.get(role, _NO_REQUEST), earlier) if latest is None else (latest, _NO_SESSION)
        try:
            hashed, shared = _hash_request(messages, (settings, schema), base)
        except UnicodeEncodeError:
            messages = [replace(message, content=without_surrogates(message.content)) for message in messages]
            hashed, shared = _hash_request(messages, (settings, schema), base)
        return PreparedRequest(
            session=session,
            role=role,
            messages=messages,
            schema=schema,
            hashed=hashed,
            base=base,
            first=first,
            shared=shared,
        )

    def add(self, request: PreparedRequest) -> None:
        """Let later requests refer to this one; only once it is on disk."""
        hashed = request.hashed
        with self._lock:
            self._by_role[request.role] = hashed
            session = self._sessions.pop(request.session, None)
            if session is None:
                content = request.messages[-1].content if request.messages else ""
                start = request.shared[-1] if request.shared else 0
                session = _Session(digest=hashed.digest, content=content, start=start)
            else:
                self._kept -= session.size
            session.latest[request.role] = hashed
            self._sessions[request.session] = session
            self._kept += session.size
            while self._kept > _KEPT and len(self._sessions) > 1:
                self._kept -= self._sessions.popitem(last=False)[1].size


def _hash_request(
    messages: Sequence[Message], head: tuple[Record | None, Record | None], base: _Hashed
) -> tuple[_Hashed, list[int]]:
    """Hash a request; also return how many characters each message shares with the base's message at its place."""
    if head == base.head:
        head, head_digest = base.head, base.head_digest
    else:
        head_digest = digest_of(head)
    digest = hashlib.blake2b(head_digest.encode(), digest_size=_DIGEST_BYTES)
    texts, shared = [], []
    for index, message in enumerate(messages):
        text = base.texts[index] if index < len(base.texts) else _NO_TEXT
        common = len(text.content)
        if message.content != text.content:
            common = common_length(text.content, 0, message.content, 0)
            text = _Text(message.content, text.states[: common // _BLOCK + 1])
        digest.update(f"{message.role} {text.digest}\n".encode())
        texts.append(text)
        shared.append(common)
    return _Hashed(digest=digest.hexdigest(), head=head, head_digest=head_digest, texts=texts), shared


def digest_of_request(messages: Sequence[Message], head: Record) -> str:
    """Return the digest of a request; raises ``UnicodeEncodeError`` for half surrogate pairs."""
    return _hash_request(messages, (head["settings"], head["schema"]), _NO_REQUEST)[0].digest


def join_spans(spans: Spans, base: str) -> str:
    """Return the text of spans whose references lead into ``base``."""
    return "".join(part if isinstance(part, str) else base[part[0] : part[0] + part[1]] for part in spans)


def split_schema(base: Record, schema: Record) -> Spans:
    """Return a schema in spans of the base's, both as JSON: mostly an enum of ids has grown."""
    old, new = _schema_text(base), _schema_text(schema)
    start = common_length(old, 0, new, 0)
    end = common_length(old[start:][::-1], 0, new[start:][::-1], 0)
    return [(0, start), new[start : len(new) - end], (len(old) - end, end)]


def join_schema(spans: Spans, base: Record) -> Record:
    """Return the schema that ``split_schema`` split; raises ``ValueError`` if the base is another one."""
    schema: Record = msgspec.json.decode(join_spans(spans, _schema_text(base)))
    return schema


def _schema_text(schema: Record) -> str:
    return msgspec.json.encode(schema).decode()


def split_spans(base: str, first: str, start: int, text: str, shared: int) -> Spans:
    """Return ``text``, which begins with the same ``shared`` characters as ``base``, in spans.

    References lead into ``base`` followed by ``first``; of ``first`` only what comes after ``start`` is looked up.
    After the shared beginning whole lines are looked up: counters and turns move, but mostly stay as they are.
    """
    if shared == len(text):
        return [(0, shared)] if shared else []
    places = _places(first, start, len(base)) | _places(base, shared, 0)
    line_start = text.rfind("\n", 0, shared) + 1
    if text[line_start:].partition("\n")[0] in places:  # better than the part of the line that the base shares
        shared = line_start
    spans: Spans = [(0, shared)] if shared else []
    position = new = shared
    while position < len(text):
        end = text.find("\n", position)
        line = text[position:] if end < 0 else text[position:end]
        span_index = places.get(line)
        if span_index is None:
            position += len(line) + 1
            continue
        if new < position:
            spans.append(text[new:position])
        in_first = span_index - len(base)
        count = (
            common_length(base, span_index, text, position)
            if in_first < 0
            else common_length(first, in_first, text, position)
        )
        spans.append((span_index, count))
        position = new = position + count
    if new < len(text):
        spans.append(text[new:])
    return spans


def _places(text: str, start: int, offset: int) -> dict[str, int]:
    """Return where each line of ``text`` from ``start`` on begins, plus ``offset``; short lines are left out."""
    places: dict[str, int] = {}
    position = start + offset
    for line in text[start:].split("\n"):
        if len(line) >= _SHORTEST:
            places[line] = position
        position += len(line) + 1
    return places


def common_length(a: str, a_at: int, b: str, b_at: int) -> int:
    """Return how many characters are the same in two texts from a place in each."""
    limit = min(len(a) - a_at, len(b) - b_at)
    count, step = 0, _STRIDE
    while step > limit:
        step //= 16
    while step:
        while count < limit and b.startswith(a[a_at + count : a_at + count + step], b_at + count):
            count += step
        step //= 16
    return min(count, limit)
