"""Bullets (paper, section 3.1: metadata and content), the rules for contents and section names, and an index by id."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import Annotated, Any, Generic, Self, TypeVar

import msgspec

from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import Record

T = TypeVar("T")

BEFORE_FIRST_STEP = -1
"""Value of ``created`` and ``changed`` for bullets that come from a file and not from a step of this run."""

COUNTERS = ("helpful", "harmful", "neutral")
OTHERS = "others"
"""The section for bullets that fit no other (official code: OTHERS)."""

_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_UNPRINTABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff]")
_NOT_WORD = re.compile(r"[\W_]+")
_LONGEST_WORD_SLUG = 6
_SPAN = 256
"""Numbers of a block."""


def tidy(text: str) -> str:
    """Make every line break a newline and drop control characters, byte order marks and lone surrogates."""
    return _UNPRINTABLE.sub("", _BREAKS.sub("\n", text))


def clean(text: str) -> str:
    """Return ``text`` as a valid bullet content: tidied and stripped. Idempotent."""
    return tidy(text).strip()


def comparable(text: str) -> str:
    """Fold case and white space; contents with equal results are exact duplicates."""
    return " ".join(text.casefold().split())


def section_name(name: str) -> str:
    """Normalise a section's name: ``STRATEGIES & INSIGHTS:`` -> ``strategies_and_insights``. It may become empty."""
    return _NOT_WORD.sub("_", name.casefold().replace("&", " and ")).strip("_")


def slug(section: str) -> str:
    """Return the prefix of the ids of a section's bullets: initials, or the word itself if there is only one."""
    ascii_name = unicodedata.normalize("NFKD", section).encode("ascii", "ignore").decode()
    name_parts = [word for word in ascii_name.split("_") if word]
    letters = name_parts[0][:_LONGEST_WORD_SLUG] if len(name_parts) == 1 else "".join(word[0] for word in name_parts)
    return letters if letters[:1].isalpha() else f"s{letters}"


_Count = Annotated[int, msgspec.Meta(ge=0)]
_ID = re.compile(r"[^\s\[\]]*[^\s\[\]0-9]([0-9]{1,18})")


class _Once(Generic[T]):
    """A property that a bullet computes once, into a slot: a large playbook has no room for a dict in each bullet."""

    def __init__(self, compute: Callable[[Any], T]):
        self._compute, self._slot = compute, f"_{compute.__name__}"

    def __get__(self, bullet: Any, owner: type) -> T:
        try:
            value: T = getattr(bullet, self._slot)
        except AttributeError:
            value = self._compute(bullet)
            object.__setattr__(bullet, self._slot, value)
        return value


class _Slots:
    __slots__ = ("_content_hash", "_fingerprint", "_number")


@dataclass(frozen=True, kw_only=True, slots=True)
class Bullet(_Slots):
    """One lesson. ``content`` is clean text (see ``clean``) and may have several lines.

    ``created`` is the step that added the bullet and ``changed`` the last step that changed content or counters;
    ``sources`` are the samples that led to the content. ``tokens`` is the size of ``line`` with its line break, counted
    when the content is set (``measure``).
    """

    id: str
    section: str
    content: str
    helpful: _Count = 0
    harmful: _Count = 0
    neutral: _Count = 0
    created: int = BEFORE_FIRST_STEP
    changed: int = BEFORE_FIRST_STEP
    sources: tuple[str, ...] = ()
    tokens: _Count = 0

    @_Once
    def number(self) -> int:
        """The number in the id, which orders bullets from old to new."""
        number = number_of(self.id)
        if number is None:
            raise ValueError(f"bullet id {self.id!r} does not end in a number")
        return number

    @property
    def line(self) -> str:
        """The bullet as prompts show it, without counters: ``[id] (section) content``.

        Further lines are indented, so that a content cannot imitate a bullet or the tag that closes the playbook.
        """
        return f"[{self.id}] ({self.section}) {indent(self.content)}"

    @property
    def counter_line(self) -> str:
        """Counters as ``id: helpful 2, neutral 1``, without those that are 0. It is short, as votes change often."""
        cast = ", ".join(f"{name} {votes}" for name in COUNTERS if (votes := getattr(self, name)))
        return f"{self.id}: {cast}" if cast else ""

    @property
    def counters(self) -> str:
        """The three counters in words."""
        return ", ".join(f"{name} {getattr(self, name)}" for name in COUNTERS)

    @property
    def utility(self) -> int:
        """Helpful minus harmful votes; pruning removes the lowest first."""
        return self.helpful - self.harmful

    @_Once
    def content_hash(self) -> int:
        """A hash of the comparable content. It is only valid in this process, and takes less memory than the text."""
        return hash(comparable(self.content))

    @_Once
    def fingerprint(self) -> bytes:
        """SHA-256 of all fields; cached, because versions of a playbook share most bullets."""
        return hashlib.sha256(msgspec.json.encode(list(self.record().values()))).digest()

    def record(self) -> Record:
        """All fields as a JSON object."""
        return {**msgspec.to_builtins(self), "sources": list(self.sources)}


def number_of(bullet_id: str) -> int | None:
    """Return the number at the end of an id; ``None`` if there is none."""
    match = _ID.fullmatch(bullet_id)
    return int(match[1]) if match else None


def indent(content: str) -> str:
    """Indent all lines of a content but the first."""
    return content.replace("\n", "\n  ")


def measure(bullet: Bullet, count: TokenCounter) -> Bullet:
    """Return the bullet with its tokens counted; call it whenever a content is set."""
    return replace(bullet, tokens=count(f"{bullet.line}\n"))


def age(bullet: Bullet) -> tuple[int, str]:
    """Sort key for the order of creation."""
    return bullet.number, bullet.id


def join_bullets(bullets: Sequence[Bullet], *, step: int) -> Bullet:
    """Merge bullets, oldest first, into the oldest: its id, section and content, all counters and all sources."""
    sources = dict.fromkeys(chain.from_iterable(bullet.sources for bullet in bullets))
    votes: Any = {name: sum(getattr(bullet, name) for bullet in bullets) for name in COUNTERS}
    return replace(bullets[0], changed=step, sources=tuple(sources), **votes)


class Block:
    """Bullets whose numbers are in one range, in order of creation. Two blocks are never equal."""

    def __init__(self, by_id: Mapping[str, Bullet]):
        self.by_id = by_id

    @cached_property
    def contents(self) -> tuple[str, ...]:
        """The content of each bullet."""
        return tuple([bullet.content for bullet in self.by_id.values()])

    @cached_property
    def content_hashes(self) -> frozenset[int]:
        """The hash of each content (``Bullet.content_hash``)."""
        return frozenset([bullet.content_hash for bullet in self.by_id.values()])

    @cached_property
    def text(self) -> str:
        """The bullets' lines."""
        return "\n".join([bullet.line for bullet in self.by_id.values()])

    @cached_property
    def counters(self) -> str:
        """The bullets' lines of votes."""
        return "\n".join(filter(None, [bullet.counter_line for bullet in self.by_id.values()]))

    @cached_property
    def fingerprints(self) -> bytes:
        """The bullets' fingerprints, one after the other."""
        return b"".join([bullet.fingerprint for bullet in self.by_id.values()])

    @cached_property
    def tokens(self) -> int:
        """Sum over the bullets."""
        return sum([bullet.tokens for bullet in self.by_id.values()])

    @cached_property
    def harmful(self) -> tuple[Bullet, ...]:
        """The bullets with more harmful than helpful votes."""
        return tuple([bullet for bullet in self.by_id.values() if bullet.harmful > bullet.helpful])


class BulletIndex(Mapping[str, Bullet]):
    """Bullets by id, in order of creation. The number in an id gives this order. An index is never changed.

    Versions share unchanged blocks, so a new version costs only its changes.
    """

    def __init__(self, blocks: Mapping[int, Block] = MappingProxyType({})):
        self._blocks = blocks

    @property
    def blocks(self) -> Collection[Block]:
        """The blocks in order of creation. No block is empty."""
        return self._blocks.values()

    @property
    def tokens(self) -> int:
        """Sum over all bullets."""
        return sum([block.tokens for block in self.blocks])

    @cached_property
    def bullets(self) -> tuple[Bullet, ...]:
        """All bullets in order of creation."""
        return tuple(chain.from_iterable([block.by_id.values() for block in self.blocks]))

    def __getitem__(self, bullet_id: str) -> Bullet:
        number = number_of(bullet_id)
        return (_NO_BLOCK if number is None else self._blocks.get(number // _SPAN, _NO_BLOCK)).by_id[bullet_id]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable([block.by_id for block in self.blocks])

    def __len__(self) -> int:
        return sum([len(block.by_id) for block in self.blocks])

    def find_by_content(self, content: str, besides: Collection[str] = ()) -> str | None:
        """Return the id of a bullet with a ``comparable`` content that is not among ``besides``."""
        wanted = hash(content)
        near = chain.from_iterable([block.by_id.values() for block in self.blocks if wanted in block.content_hashes])
        ids = (bullet.id for bullet in near if bullet.content_hash == wanted and comparable(bullet.content) == content)
        return next((bullet_id for bullet_id in ids if bullet_id not in besides), None)

    def changed(self, *, put: Iterable[Bullet] = (), gone: Iterable[str] = ()) -> Self:
        """Return a version without some ids, and with bullets added or in the place of those with the same id.

        Raises ``KeyError`` for an id that is to go and is not there.
        """
        groups: dict[int, dict[str, Bullet]] = {}

        def group(key: int) -> dict[str, Bullet]:
            if key not in groups:
                groups[key] = dict(self._blocks.get(key, _NO_BLOCK).by_id)
            return groups[key]

        for bullet_id in gone:
            del group(self[bullet_id].number // _SPAN)[bullet_id]
        for bullet in put:
            group(bullet.number // _SPAN)[bullet.id] = bullet
        for key, bullets in groups.items():
            if bullets.keys() != self._blocks.get(key, _NO_BLOCK).by_id.keys():
                groups[key] = {bullet.id: bullet for bullet in sorted(bullets.values(), key=age)}
        blocks = {**self._blocks, **{key: Block(bullets) for key, bullets in groups.items()}}
        return type(self)({key: blocks[key] for key in sorted(blocks) if blocks[key].by_id})

    def since(self, earlier: BulletIndex) -> tuple[Sequence[Bullet], Sequence[str]]:
        """Return the bullets that are new or other than in another version, and the ids of those that are gone."""
        keys = sorted(self._blocks.keys() | earlier._blocks.keys())
        pairs = [(earlier._blocks.get(key, _NO_BLOCK), self._blocks.get(key, _NO_BLOCK)) for key in keys]
        changed = [(before.by_id, now.by_id) for before, now in pairs if before is not now]
        put = [bullet for old, new in changed for bullet in new.values() if old.get(bullet.id) != bullet]
        return put, [bullet_id for old, new in changed for bullet_id in old if bullet_id not in new]


_NO_BLOCK = Block({})
