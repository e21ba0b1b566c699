"""A playbook's bullets by id. Versions share unchanged blocks, so a new version costs only its changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import NamedTuple, Self

from ace_bench.contexts.playbook.bullets import Bullet, number_of

_SPAN = 256


class Block:
    """The bullets whose numbers are in one range, in order of creation. Blocks are equal only to themselves.

    What is computed of a block is kept as long as a version of the playbook has it.
    """

    def __init__(self, by_id: Mapping[str, Bullet]):
        self.by_id = by_id

    @cached_property
    def bullets(self) -> tuple[Bullet, ...]:
        """The bullets."""
        return tuple(self.by_id.values())

    @cached_property
    def contents(self) -> tuple[str, ...]:
        """The content of each bullet."""
        return tuple([bullet.content for bullet in self.bullets])

    @cached_property
    def content_hashes(self) -> frozenset[int]:
        """Those of the bullets (``Bullet.content_hash``)."""
        return frozenset([bullet.content_hash for bullet in self.bullets])

    @cached_property
    def text(self) -> str:
        """The bullets' lines."""
        return "\n".join([bullet.line for bullet in self.bullets])

    @cached_property
    def counters(self) -> str:
        """The bullets' lines of votes; empty where there are none."""
        return "\n".join(filter(None, [bullet.counter_line for bullet in self.bullets]))

    @cached_property
    def fingerprints(self) -> bytes:
        """The bullets' fingerprints, one after the other."""
        return b"".join([bullet.fingerprint for bullet in self.bullets])

    @cached_property
    def tokens(self) -> int:
        """Sum over the bullets."""
        return sum([bullet.tokens for bullet in self.bullets])

    @cached_property
    def harm(self) -> int:
        """The most harmful votes of a bullet that has more harmful than helpful ones; 0 without such a bullet."""
        return max([bullet.harmful for bullet in self.bullets if bullet.harmful > bullet.helpful], default=0)


class Difference(NamedTuple):
    """New and changed bullets in order of creation, and the ids of those that are gone."""

    put: Sequence[Bullet]
    gone: Sequence[str]


class BulletIndex(Mapping[str, Bullet]):
    """Bullets by id, in order of creation: of their numbers, then of their ids. It is never changed."""

    def __init__(self, blocks: Mapping[int, Block]):
        self._blocks = blocks

    @classmethod
    def of(cls, bullets: Iterable[Bullet]) -> Self:
        """Index bullets with different ids, in order of creation."""
        groups: dict[int, dict[str, Bullet]] = {}
        for bullet in bullets:
            groups.setdefault(bullet.number // _SPAN, {})[bullet.id] = bullet
        return cls({key: Block(group) for key, group in groups.items()})

    @property
    def blocks(self) -> Collection[Block]:
        """The blocks in order of creation; none is empty."""
        return self._blocks.values()

    @property
    def tokens(self) -> int:
        """Sum over the bullets."""
        return sum([block.tokens for block in self.blocks])

    @cached_property
    def bullets(self) -> tuple[Bullet, ...]:
        """All bullets in order of creation."""
        return tuple(chain.from_iterable([block.bullets for block in self.blocks]))

    def __getitem__(self, bullet_id: str) -> Bullet:
        return self._group(bullet_id)[bullet_id]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable([block.by_id for block in self.blocks])

    def __len__(self) -> int:
        return sum([len(block.by_id) for block in self.blocks])

    def _group(self, bullet_id: str) -> Mapping[str, Bullet]:
        number = number_of(bullet_id) if isinstance(bullet_id, str) else None
        block = None if number is None else self._blocks.get(number // _SPAN)
        return {} if block is None else block.by_id

    def places(self, ids: Collection[str]) -> list[int]:
        """Return the places among ``bullets`` of those ids that are there, in order of creation."""
        wanted = {bullet_id: self[bullet_id].number // _SPAN for bullet_id in ids if bullet_id in self}
        sizes = accumulate([len(block.by_id) for block in self.blocks], initial=0)
        starts = dict(zip(self._blocks, sizes, strict=False))
        return sorted(
            starts[key] + place
            for key in {*wanted.values()}
            for place, bullet_id in enumerate(self._blocks[key].by_id)
            if bullet_id in wanted
        )

    def find_by_content(self, content: str, besides: Collection[str] = ()) -> str | None:
        """Return the id of a bullet with a content (``Bullet.comparable``) that is not among ``besides``."""
        wanted = hash(content)
        near = chain.from_iterable([block.bullets for block in self.blocks if wanted in block.content_hashes])
        same = (bullet.id for bullet in near if bullet.content_hash == wanted and bullet.comparable == content)
        return next((bullet_id for bullet_id in same if bullet_id not in besides), None)

    def changed(self, *, put: Iterable[Bullet] = (), gone: Iterable[str] = ()) -> Self:
        """Return a version without some ids, and with bullets added or in the place of those with the same id.

        Raises ``KeyError`` for an id that is to go and is not there.
        """
        groups: dict[int, dict[str, Bullet]] = {}
        longer: set[int] = set()

        def group(key: int) -> dict[str, Bullet]:
            if key not in groups:
                groups[key] = dict(self._blocks.get(key, _NONE).by_id)
            return groups[key]

        for bullet_id in gone:
            number = number_of(bullet_id)
            if number is None:
                raise KeyError(bullet_id)
            del group(number // _SPAN)[bullet_id]
        for bullet in put:
            key = bullet.number // _SPAN
            if bullet.id not in group(key):
                longer.add(key)
            group(key)[bullet.id] = bullet
        changed = {key: Block(_in_order(found) if key in longer else found) for key, found in groups.items()}
        blocks = {**self._blocks, **changed}
        keys = sorted(blocks) if longer else blocks
        return type(self)({key: blocks[key] for key in keys if blocks[key].by_id})

    def since(self, earlier: BulletIndex) -> Difference:
        """Return what differs from another version."""
        put: list[Bullet] = []
        gone: list[str] = []
        for key in sorted(self._blocks.keys() | earlier._blocks.keys()):
            before, now = earlier._blocks.get(key, _NONE), self._blocks.get(key, _NONE)
            if before is not now:
                old, new = before.by_id, now.by_id
                put += [one for one in now.bullets if (same := old.get(one.id)) is not one and same != one]
                gone += [bullet_id for bullet_id in old if bullet_id not in new]
        return Difference(put, gone)


_NONE = Block({})


def _in_order(group: Mapping[str, Bullet]) -> Mapping[str, Bullet]:
    return dict(sorted(group.items(), key=lambda item: (item[1].number, item[0])))
