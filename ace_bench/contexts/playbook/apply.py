"""Applies operations to a playbook: deterministic, without a model (paper, section 3.1).

Operations are applied in order. One that cannot be applied changes nothing and is rejected with a reason; the others
are still applied. Every operation is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ace_bench.contexts.playbook.bullets import (
    OTHERS,
    Bullet,
    clean,
    comparable,
    join_bullets,
    measure,
    section_name,
    slug,
)
from ace_bench.contexts.playbook.deltas import (
    KINDS,
    Add,
    Kind,
    Merge,
    Operation,
    Rejection,
    Remove,
    Tag,
    Update,
    Votes,
    echo,
)
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import Record

UnknownSection = Literal["reject", "others", "create"]

_CHARS_PER_TOKEN = 64
"""More than any tokenizer packs: a text longer than this many times the limit is too long without counting."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a delta may do.

    ``kinds`` are the enabled operation types and ``bullet_tokens`` the most tokens of one bullet. ``unknown_section``
    says whether an ADD to an unknown section is rejected, goes to ``others`` with a note (the official code does so
    without a note), or creates the section.
    """

    kinds: Sequence[Kind] = KINDS
    bullet_tokens: int = 1_000
    unknown_section: UnknownSection = "reject"


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """An applied operation, and the bullet that it added, changed or removed."""

    operation: Operation
    bullet: str
    note: str = ""

    def record(self) -> Record:
        """Return an event for the journal, without contents: those are in the patch."""
        event: dict[str, object] = {"event": "accepted", "type": self.operation.kind, "bullet": self.bullet}
        if isinstance(self.operation, Merge):
            event["merged"] = [other for other in dict.fromkeys(self.operation.ids) if other != self.bullet]
        elif isinstance(self.operation, Tag):
            event["votes"] = self.operation.votes.record()
        if self.note:
            event["note"] = self.note
        return event


@dataclass(frozen=True, kw_only=True)
class Applied:
    """The result of a delta: every operation is either accepted or rejected."""

    playbook: Playbook
    accepted: tuple[Accepted, ...]
    rejected: tuple[Rejection, ...]

    @property
    def touched(self) -> tuple[str, ...]:
        """Ids of the remaining bullets with new or changed content, for refinement."""
        worded = (done.bullet for done in self.accepted if isinstance(done.operation, Add | Update | Merge))
        return tuple(bullet_id for bullet_id in dict.fromkeys(worded) if bullet_id in self.playbook.index)

    def events(self) -> tuple[Record, ...]:
        """All operations as events, the accepted ones first."""
        return (*(done.record() for done in self.accepted), *(refused.record() for refused in self.rejected))


def apply(  # noqa: PLR0913 - all but the two operands are keyword-only
    playbook: Playbook,
    operations: Sequence[Operation],
    *,
    step: int,
    sources: Sequence[str],
    limits: Limits,
    count: TokenCounter,
) -> Applied:
    """Apply a delta and return the new playbook, which is the old one if nothing was accepted.

    ``step`` becomes the bullets' ``created`` or ``changed``, and ``sources`` (ids of samples) are added to theirs;
    ``count`` counts the tokens of new contents. The same arguments always give the same result.
    """
    draft = _DeltaApplier(playbook, step=step, sources=sources, limits=limits, count=count)
    accepted: list[Accepted] = []
    rejected: list[Rejection] = []
    for operation in operations:
        try:
            accepted.append(draft.apply_operation(operation))
        except _Refused as refusal:
            rejected.append(Rejection(operation=echo(operation), reason=str(refusal)))
    result = draft.playbook() if accepted else playbook
    return Applied(playbook=result, accepted=tuple(accepted), rejected=tuple(rejected))


class _Refused(Exception):
    """An operation cannot be applied; raised before it changes anything."""


class _DeltaApplier:
    """The state of a playbook between operations, used only by ``apply``."""

    def __init__(self, playbook: Playbook, *, step: int, sources: Sequence[str], limits: Limits, count: TokenCounter):
        self._origin = playbook
        self._bullets = playbook.index
        self._sections = playbook.sections
        self._next_number = playbook.next_number
        self._step = step
        self._sources = sources
        self._limits = limits
        self._count = count

    def playbook(self) -> Playbook:
        """Return the result."""
        made = replace(self._origin, sections=self._sections, next_number=self._next_number)
        return made.with_index(self._bullets)

    def apply_operation(self, operation: Operation) -> Accepted:
        if operation.kind not in self._limits.kinds:
            raise _Refused(f"{operation.kind} is not enabled")
        match operation:
            case Add():
                return self._add(operation)
            case Update():
                return self._update(operation)
            case Merge():
                return self._merge(operation)
            case Remove():
                return self._remove(operation)
            case Tag():
                return self._tag(operation)

    def _add(self, operation: Add) -> Accepted:
        section, note = self._section(operation.section)
        bullet = Bullet(
            id=f"{slug(section)}-{self._next_number:05d}",
            section=section,
            content=self._content(operation.content),
            created=self._step,
            changed=self._step,
            sources=self._add_sources(()),
            tokens=0,
        )
        self._put(self._measure(self._count_votes(bullet, operation.votes)))
        self._next_number += 1
        if section not in self._sections:
            self._sections = (*self._sections, section)
        return Accepted(operation=operation, bullet=bullet.id, note=note)

    def _update(self, operation: Update) -> Accepted:
        bullet = self._find(operation.id)
        changed = self._count_votes(bullet, operation.votes)
        if operation.content is not None:
            content = self._content(operation.content, replacing=(bullet.id,))
            if content != bullet.content:
                changed = replace(changed, content=content, sources=self._add_sources(bullet.sources))
                changed = self._measure(changed)
        if changed == bullet:
            raise _Refused("the UPDATE changes nothing")
        self._put(replace(changed, changed=self._step))
        return Accepted(operation=operation, bullet=bullet.id)

    def _merge(self, operation: Merge) -> Accepted:
        members = sorted(
            (self._find(bullet_id) for bullet_id in dict.fromkeys(operation.ids)),
            key=lambda bullet: (bullet.number, bullet.id),
        )
        if len(members) < 2:
            raise _Refused("a MERGE needs at least two different bullets")
        merged = join_bullets(members, step=self._step)
        merged = replace(merged, sources=self._add_sources(merged.sources))
        if operation.content is not None:
            content = self._content(operation.content, replacing=[member.id for member in members])
            merged = self._measure(replace(merged, content=content))
        self._bullets = self._bullets.changed(put=[merged], gone=[member.id for member in members[1:]])
        return Accepted(operation=operation, bullet=merged.id)

    def _remove(self, operation: Remove) -> Accepted:
        self._bullets = self._bullets.changed(gone=[self._find(operation.id).id])
        return Accepted(operation=operation, bullet=operation.id)

    def _tag(self, operation: Tag) -> Accepted:
        bullet = self._find(operation.id)
        self._put(replace(self._count_votes(bullet, operation.votes), changed=self._step))
        return Accepted(operation=operation, bullet=bullet.id)

    def _find(self, bullet_id: str) -> Bullet:
        bullet = self._bullets.get(bullet_id)
        if bullet is None:
            raise _Refused(f"there is no bullet {bullet_id[:80]!r}")
        return bullet

    def _section(self, name: str) -> tuple[str, str]:
        section = section_name(name)
        if section in self._sections:
            return section, ""
        if section and self._limits.unknown_section == "create":
            return section, ""
        problem = f"there is no section {name[:80]!r}"
        if self._limits.unknown_section == "others":
            return OTHERS, f"{problem}; put under {OTHERS}"
        raise _Refused(f"{problem}; there are {', '.join(self._sections)}")

    def _content(self, text: str, replacing: Collection[str] = ()) -> str:
        """Check a new content; ``replacing`` are the bullets whose contents it may repeat."""
        if len(text) > self._limits.bullet_tokens * _CHARS_PER_TOKEN:
            raise _Refused(f"the content is longer than {self._limits.bullet_tokens} tokens")
        content = clean(text)
        if not content:
            raise _Refused("the content is empty")
        twin = self._bullets.find_by_content(comparable(content), besides=replacing)
        if twin is not None:
            raise _Refused(f"bullet {twin} already says exactly this")
        return content

    def _measure(self, bullet: Bullet) -> Bullet:
        bullet = measure(bullet, self._count)
        if bullet.tokens > self._limits.bullet_tokens:
            raise _Refused(f"the bullet takes {bullet.tokens} tokens, more than {self._limits.bullet_tokens}")
        return bullet

    def _count_votes(self, bullet: Bullet, votes: Votes) -> Bullet:
        if not votes:
            return bullet
        return replace(
            bullet,
            helpful=bullet.helpful + votes.helpful,
            harmful=bullet.harmful + votes.harmful,
            neutral=bullet.neutral + votes.neutral,
        )

    def _add_sources(self, sources: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*sources, *self._sources)))

    def _put(self, bullet: Bullet) -> None:
        self._bullets = self._bullets.changed(put=[bullet])
