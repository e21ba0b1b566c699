"""Base class of contexts, frozen values of ours because a run names, stores and compares each version by its content.

A new kind of context is a frozen dataclass: its ``kind``, its fields and ``render``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import SequenceMatcher
from functools import cache, cached_property
from itertools import compress, count
from operator import is_not
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, Self, get_args, get_origin, get_type_hints

import msgspec

from ace_bench.core.backbones import TokenCounter
from ace_bench.core.encoding import convert, digest_of
from ace_bench.core.errors import DataError
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.types import GeneratorSpec, Record, Sample

NO_SAMPLE = Sample(id="", split="", inputs={"background": "", "question": ""})

_Edit = tuple[int, int, list[Any]]
"""Start, end and new items: replaces items ``start`` to ``end`` (exclusive) of the earlier sequence."""


_SAVED = msgspec.json.Encoder(order="sorted")
"""Writes a value as its ``dump`` is hashed."""


class Texts(Protocol):
    """Texts that never change, in their order. Compared by identity, so that caches may use them as keys."""

    @property
    def contents(self) -> Sequence[str]:
        """The texts."""
        ...


class _Beginning(NamedTuple):
    """The first items of the field that grows, and the state of the digest after them."""

    items: tuple[Any, ...]
    state: Any


@dataclass(frozen=True, kw_only=True)
class ContextValue:
    """Base of all kinds of context.

    Fields hold what JSON can hold, tuples, and msgspec structs or dataclasses of such. A saved context is the JSON
    object of its fields with its ``kind``. A patch holds the fields that changed: for tuples and texts the items or
    lines that changed, for other fields the new value.
    """

    kind: ClassVar[str]
    """Name of the class in saved contexts; each kind has one class."""
    grows: ClassVar[str | None] = None
    """The tuple field to which items are appended, which comes first in the alphabet of all fields and ``kind``.

    With it the cost of a version made by ``changed`` grows with the new items, not with all items.
    """
    optional: ClassVar[str | None] = None
    """A tuple field that the saved form leaves out while it is empty, so that digests without it stay the same."""
    generator: ClassVar[GeneratorSpec | None] = None
    """How the method that makes this kind asks for answers, so that ``method=frozen`` asks in the same way."""
    uses: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "playbook": "Lessons from earlier work on similar tasks follow. Use the entries that fit the task; where "
            "an entry warns of a mistake, avoid it; leave the others aside.",
            "cheatsheet": "Notes from earlier work on similar tasks follow. Use what fits the task and leave the rest "
            "aside.",
            "instruction": "Follow this instruction.",
            "demonstrations": "Similar questions follow with their right answers. Learn from them.",
        }
    )
    """The fields of ``render`` that system prompts of other programs show, each with a sentence how to use it."""

    @classmethod
    def load(cls, record: Record) -> Self:
        """Restore a context from its ``dump``, exactly; raises ``DataError``."""
        names = {field.name for field in fields(cls)}
        try:
            if record.get("kind") != cls.kind:
                raise msgspec.ValidationError(f"its kind is {record.get('kind')!r}")
            if unknown := record.keys() - names - {"kind"}:
                raise msgspec.ValidationError(f"unknown fields {', '.join(sorted(unknown))}")
            value: Self = convert({name: record[name] for name in names & record.keys()}, cls)
        except msgspec.ValidationError as error:
            raise DataError(f"not a context of kind {cls.kind}: {error}") from error
        return value

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the saved form: equal contexts have equal digests."""
        if self.grows is None:
            return digest_of(self.dump())
        fields_that_stay = {name: value for name, value in self._saved_fields() if name != self.grows}
        state = self._hashed.state.copy()
        state.update(b"]," + _SAVED.encode({"kind": self.kind, **fields_that_stay})[1:])
        return str(state.hexdigest())

    @cached_property
    def _hashed(self) -> _Beginning:
        items = getattr(self, str(self.grows))
        begun = vars(self).pop("_begun", None)
        if begun is None or _count_shared(begun.items, items) < len(begun.items):
            begun = _Beginning((), hashlib.sha256(b'{"%b":[' % str(self.grows).encode()))
        state, new = begun.state.copy(), items[len(begun.items) :]
        if new:
            state.update((b"," if begun.items else b"") + _SAVED.encode(new)[1:-1])
        return _Beginning(items, state)

    def changed(self, **values: Any) -> Self:
        """Return a version with other values of some fields, which takes over what is known of the same first items."""
        version = replace(self, **values)
        if self.grows is not None:
            vars(version)["_begun"] = self._hashed
        return version

    @property
    def tokens(self) -> int:
        """Size in a prompt, in tokens; by default an estimate for what ``render`` returns for a sample without text."""
        return sum(estimate_tokens(text) for text in self.render(NO_SAMPLE).values())

    @property
    def size(self) -> int:
        """Number of items; by default in all fields that are tuples."""
        values = (getattr(self, field.name) for field in fields(self))
        return sum(len(value) for value in values if isinstance(value, tuple))

    def render(self, sample: Sample) -> Mapping[str, Any]:
        """Return the prompt fields that this context fills for a sample."""
        raise NotImplementedError

    def fitted(self, sections: Iterable[str], count: TokenCounter) -> Self:
        """Return a loaded value for a run: for the playbook ``sections`` of its task and the tokenizer of its model."""
        return self

    def dump(self) -> Record:
        """Return all fields and the kind as a JSON object."""
        return {"kind": self.kind, **{name: msgspec.to_builtins(value) for name, value in self._saved_fields()}}

    def encode(self) -> bytes:
        """Return what ``dump`` returns as JSON, without the many small objects of it."""
        return msgspec.json.encode({"kind": self.kind, **dict(self._saved_fields())})

    def _saved_fields(self) -> Iterator[tuple[str, Any]]:
        for field in fields(self):
            value = getattr(self, field.name)
            if value or field.name != self.optional:
                yield field.name, value

    def patch(self, earlier: Self) -> Record:
        """Return what changed since ``earlier``; raises ``TypeError`` for another kind of context."""
        if type(earlier) is not type(self):
            raise TypeError(f"a context of kind {self.kind} has no patch against {type(earlier).__name__}")
        names = [field.name for field in fields(self)]
        changes = ((name, _change(getattr(earlier, name), getattr(self, name))) for name in names)
        return {name: change for name, change in changes if change is not _SAME}

    def patched(self, patch: Record) -> Self:
        """Apply a patch made against this value; raises ``DataError`` for a patch made against another one."""
        owner: Any = type(self)
        kinds = _field_types(owner)
        try:
            patched_fields = {
                name: _patch(getattr(self, name), patch[name], kinds[name]) for name in patch if name != "kind"
            }
        except (KeyError, AttributeError, msgspec.ValidationError, DataError) as error:
            raise _not_a_patch(self.kind, error) from error
        return self.changed(**patched_fields)


def apply_patch(record: Record, patch: Record) -> Record:
    """Apply a patch of changed fields to a saved context; raises ``DataError`` if it was made against another."""
    try:
        changed = {name: _alter(record.get(name, ()), change) for name, change in patch.items() if name != "kind"}
    except (KeyError, msgspec.ValidationError, DataError) as error:
        raise _not_a_patch(record.get("kind"), error) from error
    return {**record, **changed}


@cache
def _field_types(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _not_a_patch(kind: object, error: Exception) -> DataError:
    return DataError(f"not a patch of this context of kind {kind}: {error}")


_SAME: Any = object()


def _change(before: Any, after: Any) -> Any:
    """Return what changed in a field, ``_SAME`` if nothing did."""
    if before is after:
        return _SAME
    shared = 0
    if isinstance(before, tuple) and isinstance(after, tuple):
        shared = _count_shared(before, after)
        before, after = before[shared:], after[shared:]
    before, after = msgspec.to_builtins(before), msgspec.to_builtins(after)
    if before == after:
        return _SAME
    if isinstance(before, str) and isinstance(after, str):
        return _edits(before.split("\n"), after.split("\n"))
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        return [(shared + start, shared + end, new) for start, end, new in _edits(before, after)]
    return after


def _patch(before: Any, change: Any, kind: Any) -> Any:
    """Return a field after a change; items of a tuple that stay are the same objects."""
    if isinstance(before, tuple) and get_origin(kind) is tuple and get_args(kind)[1:] == (...,):
        edits = convert(change, list[tuple[int, int, list[get_args(kind)[0]]]])  # type: ignore[misc]
        return tuple(_edit_items(before, edits))
    return convert(_alter(msgspec.to_builtins(before), change), kind)


def _count_shared(before: tuple[Any, ...], after: tuple[Any, ...]) -> int:
    """Return how many first items are the same objects."""
    return next(compress(count(), map(is_not, before, after)), min(len(before), len(after)))


def _alter(before: Any, change: Any) -> Any:
    if change is None:
        return None
    if isinstance(before, str):
        return "\n".join(_edit_items(before.split("\n"), convert(change, list[tuple[int, int, list[str]]])))
    if isinstance(before, list | tuple):
        return _edit_items(before, convert(change, list[_Edit]))
    return change


def _edits(before: Sequence[Any], after: Sequence[Any]) -> list[_Edit]:
    """Return the edits that lead from one sequence to the other, in order."""
    old, new = (list(map(msgspec.json.encode, items)) for items in (before, after))
    shared = min(len(old), len(new))
    start = next((index for index in range(shared) if old[index] != new[index]), shared)
    matcher = SequenceMatcher(a=old[start:], b=new[start:], autojunk=False)
    return [
        (start + i1, start + i2, list(after[start + j1 : start + j2]))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def _edit_items(before: Sequence[Any], edits: Sequence[_Edit]) -> list[Any]:
    items, limit = list(before), len(before)
    for start, end, new in reversed(edits):
        if not 0 <= start <= end <= limit:
            raise DataError(f"it changes items {start} to {end} of {limit}")
        items[start:end] = new
        limit = start
    return items


@dataclass(frozen=True, kw_only=True)
class NoContext(ContextValue):
    """A context that fills no prompt field; all its instances are equal."""

    kind = "none"
    generator = GeneratorSpec(template="base", answer_format="text")

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return no fields."""
        return {}
