"""Typed operations on a playbook, applied without a model (paper, section 3.1).

ADD, UPDATE, TAG and REMOVE come from richer descriptions of ACE, MERGE from the paper's merging of bullets (section
3.2); the official code applies ADD only and ignores the others silently.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec

from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import Record
from ace_bench.playbook.bullets import (
    COUNTERS,
    OTHERS,
    Bullet,
    BulletIndex,
    age,
    clean,
    comparable,
    join_bullets,
    measure,
    section_name,
    slug,
    tidy,
)
from ace_bench.playbook.playbook import Playbook

Kind = Literal["ADD", "UPDATE", "MERGE", "REMOVE", "TAG"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""All operation types, in the order prompts list them."""
UnknownSection = Literal["reject", "others", "create"]

MAX_VOTES = 100
"""Most votes that one operation may add to a counter, so that one reply cannot decide over a bullet for good."""
_LONGEST_ECHO = 200
_CHARS_PER_TOKEN = 64
"""More than any tokenizer packs: a text longer than this many times the limit is too long without counting."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_VOTES)]


class Votes(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation adds to a bullet's counters: never new totals."""

    helpful: _Count = 0
    harmful: _Count = 0
    neutral: _Count = 0

    def record(self) -> Record:
        """The votes that are not zero."""
        return {name: votes for name in COUNTERS if (votes := getattr(self, name))}


class _Operation(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=str.upper):
    @property
    def kind(self) -> str:
        """The operation's type as a reply names it."""
        return str(self.__struct_config__.tag)


class Add(_Operation, frozen=True, kw_only=True):
    """Add a bullet; its id is assigned."""

    section: str
    content: str
    votes: Votes = Votes()


class Update(_Operation, frozen=True, kw_only=True):
    """Replace a bullet's content, or add to its counters, or both; section and id stay."""

    id: str
    content: str | None = None
    votes: Votes = Votes()


class Merge(_Operation, frozen=True, kw_only=True):
    """Join bullets into the oldest of them; without ``content`` the oldest one's is kept."""

    ids: tuple[str, ...]
    content: str | None = None


class Remove(_Operation, frozen=True, kw_only=True):
    """Drop a bullet."""

    id: str


class Tag(_Operation, frozen=True, kw_only=True):
    """Add votes to a bullet's counters (paper, figure 13: the reflector's bullet tags)."""

    id: str
    votes: Votes


Operation = Add | Update | Merge | Remove | Tag


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a delta may do.

    ``kinds`` are the enabled operation types and ``bullet_tokens`` the most tokens of one bullet. ``unknown_section``
    says whether an ADD to an unknown section is rejected, goes to ``others`` with a note (the official code does so
    without a note), or creates the section. ``repeats`` lets a content repeat another bullet's word for word.
    """

    kinds: Sequence[Kind] = KINDS
    bullet_tokens: int = 1_000
    unknown_section: UnknownSection = "reject"
    repeats: bool = False


class Applied(NamedTuple):
    """The result of a delta.

    ``touched`` are the ids of the remaining bullets with new or changed content, for refinement. ``events`` say of
    every operation that it was accepted or rejected, the accepted ones first, without contents: those are in the patch.
    """

    playbook: Playbook
    touched: tuple[str, ...]
    events: tuple[Record, ...]


def reject(operation: Any, reason: str) -> Record:
    """Return an event about an operation that is not applied: a flat JSON object with long texts cut."""
    fields = msgspec.to_builtins(operation) if isinstance(operation, msgspec.Struct) else operation
    if not isinstance(fields, Mapping):
        fields = {"type": fields}
    echo = {cut(str(name)): cut(value) for name, value in fields.items()}
    return {"event": "rejected", "operation": echo, "reason": reason}


def cut(value: Any) -> Any:
    """Return a value of JSON as a plain one, long texts cut."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = tidy(value if isinstance(value, str) else repr(value))
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}..."


def apply(  # noqa: PLR0913 - all but the two operands are keyword-only
    playbook: Playbook,
    operations: Sequence[Operation],
    *,
    step: int,
    sources: Sequence[str],
    limits: Limits,
    count: TokenCounter,
) -> Applied:
    """Apply a delta in order and return the new playbook, which is the old one if nothing was accepted.

    An operation that cannot be applied changes nothing and is rejected with a reason. ``step`` becomes the bullets'
    ``created`` or ``changed``, and ``sources`` (ids of samples) are added to theirs; ``count`` counts the tokens of new
    contents. The same arguments always give the same result.
    """
    draft = _Draft(playbook.index, playbook.sections, playbook.next_number, step, tuple(sources), limits, count)
    accepted: list[Record] = []
    rejected: list[Record] = []
    worded: dict[str, None] = {}
    for operation in operations:
        try:
            bullet, new_events = draft.apply_operation(operation)
        except _Refused as refusal:
            rejected.append(reject(operation, str(refusal)))
            continue
        accepted.append({"event": "accepted", "type": operation.kind, "bullet": bullet, **new_events})
        if isinstance(operation, Add | Update | Merge):
            worded[bullet] = None
    if accepted:
        playbook = playbook.with_index(draft.bullets, sections=draft.sections, next_number=draft.next_number)
    touched = tuple(bullet for bullet in worded if bullet in playbook.index)
    return Applied(playbook, touched, (*accepted, *rejected))


class _Refused(Exception):
    """An operation cannot be applied; raised before it changes anything."""


_Done = tuple[str, Record]


class _Draft(msgspec.Struct):
    """A playbook between operations. Each operation returns the bullet's id and the other fields of its event."""

    bullets: BulletIndex
    sections: tuple[str, ...]
    next_number: int
    step: int
    sources: tuple[str, ...]
    limits: Limits
    count: TokenCounter

    def apply_operation(self, operation: Operation) -> _Done:
        if operation.kind not in self.limits.kinds:
            raise _Refused(f"{operation.kind} is not enabled")
        match operation:
            case Add():
                return self._add(operation)
            case Update():
                return self._update(operation)
            case Merge():
                return self._merge(operation)
            case Remove():
                self.bullets = self.bullets.changed(gone=[self._find(operation.id).id])
                return operation.id, {}
            case Tag():
                tagged = _count_votes(self._find(operation.id), operation.votes)
                return self._put_bullet(tagged, votes=operation.votes.record())

    def _add(self, operation: Add) -> _Done:
        section, section_events = self._section(operation.section)
        bullet = Bullet(
            id=f"{slug(section)}-{self.next_number:05d}",
            section=section,
            content=self._content(operation.content),
            created=self.step,
            changed=self.step,
        )
        done = self._put_bullet(
            self._measure(self._add_sources(_count_votes(bullet, operation.votes))), **section_events
        )
        self.next_number += 1
        if section not in self.sections:
            self.sections = (*self.sections, section)
        return done

    def _update(self, operation: Update) -> _Done:
        bullet = self._find(operation.id)
        changed = _count_votes(bullet, operation.votes)
        if operation.content is not None:
            content = self._content(operation.content, replacing=(bullet.id,))
            if content != bullet.content:
                changed = self._measure(self._add_sources(replace(changed, content=content)))
        if changed == bullet:
            raise _Refused("the UPDATE changes nothing")
        return self._put_bullet(changed)

    def _merge(self, operation: Merge) -> _Done:
        merged_ids = dict.fromkeys(operation.ids)
        members = sorted(map(self._find, merged_ids), key=age)
        if len(members) < 2:
            raise _Refused("a MERGE needs at least two different bullets")
        merged = self._add_sources(join_bullets(members, step=self.step))
        if operation.content is not None:
            content = self._content(operation.content, replacing=merged_ids)
            merged = self._measure(replace(merged, content=content))
        self.bullets = self.bullets.changed(gone=[member.id for member in members[1:]])
        return self._put_bullet(merged, merged=[bullet_id for bullet_id in merged_ids if bullet_id != merged.id])

    def _put_bullet(self, bullet: Bullet, **more: object) -> _Done:
        self.bullets = self.bullets.changed(put=[replace(bullet, changed=self.step)])
        return bullet.id, more

    def _find(self, bullet_id: str) -> Bullet:
        bullet = self.bullets.get(bullet_id)
        if bullet is None:
            raise _Refused(f"there is no bullet {bullet_id[:80]!r}")
        return bullet

    def _section(self, name: str) -> tuple[str, Record]:
        section = section_name(name)
        if section in self.sections or (section and self.limits.unknown_section == "create"):
            return section, {}
        problem = f"there is no section {name[:80]!r}"
        if self.limits.unknown_section == "others":
            return OTHERS, {"note": f"{problem}; put under {OTHERS}"}
        raise _Refused(f"{problem}; there are {', '.join(self.sections)}")

    def _content(self, text: str, replacing: Collection[str] = ()) -> str:
        """Check a new content; ``replacing`` are the bullets whose contents it may repeat."""
        if len(text) > self.limits.bullet_tokens * _CHARS_PER_TOKEN:
            raise _Refused(f"the content is longer than {self.limits.bullet_tokens} tokens")
        content = clean(text)
        if not content:
            raise _Refused("the content is empty")
        twin = None if self.limits.repeats else self.bullets.find_by_content(comparable(content), besides=replacing)
        if twin is not None:
            raise _Refused(f"bullet {twin} already says exactly this")
        return content

    def _measure(self, bullet: Bullet) -> Bullet:
        bullet = measure(bullet, self.count)
        if bullet.tokens > self.limits.bullet_tokens:
            raise _Refused(f"the bullet takes {bullet.tokens} tokens, more than {self.limits.bullet_tokens}")
        return bullet

    def _add_sources(self, bullet: Bullet) -> Bullet:
        return replace(bullet, sources=tuple(dict.fromkeys((*bullet.sources, *self.sources))))


def _count_votes(bullet: Bullet, votes: Votes) -> Bullet:
    cast: Any = {name: getattr(bullet, name) + number for name, number in votes.record().items()}
    return replace(bullet, **cast) if cast else bullet
