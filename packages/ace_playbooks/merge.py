"""Merges playbooks (founding document 000, "Cross-session learning"), and tells what differs between two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ace_bench.contexts.playbook.bullets import BEFORE_FIRST_STEP, Bullet, comparable, join_bullets, measure, slug
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.refine import Refiner
from ace_bench.core.backbones import TokenCounter


@dataclass(frozen=True, kw_only=True)
class NamedPlaybook:
    """A playbook and the name that provenance gives it, such as its file."""

    name: str
    playbook: Playbook


def merge_playbooks(named: Sequence[NamedPlaybook], *, count: TokenCounter, refiner: Refiner | None = None) -> Playbook:
    """Merge playbooks; one alone comes back unchanged, and one that is given twice counts once.

    Bullets with equal contents (but for case and white space) become one with the sum of the counters; then
    ``refiner`` joins similar ones, if given. The first playbook comes first: its ids, sections and wordings stay, and
    an id whose number is in use gets the next free number. So the order of the inputs decides ids, order and
    wordings; without ``refiner`` it changes neither the contents nor their counters. ``sources`` of a bullet start with
    the playbooks that it comes from, as ``NAME#ID``, before the samples. Steps of the runs do not count.
    """
    by_digest: dict[str, NamedPlaybook] = {}
    for one in named:
        by_digest.setdefault(one.playbook.digest, one)
    different = list(by_digest.values())
    if len(different) == 1:
        return different[0].playbook
    renumbered = _renumber(list(chain.from_iterable(map(_add_provenance, different))), count)
    book = Playbook.build_from(
        _join_equal(renumbered), sections=chain.from_iterable(one.playbook.sections for one in different)
    )
    if refiner is None:
        return book
    touched = [bullet.id for bullet in book.bullets]
    return refiner.refine(book, touched, step=BEFORE_FIRST_STEP, count=count).playbook


def _add_provenance(named: NamedPlaybook) -> Iterator[Bullet]:
    """Yield the bullets with their provenance; bullets of a merge keep theirs."""
    for bullet in named.playbook.bullets:
        sources = (f"{named.name}#{bullet.id}", *bullet.sources)
        yield replace(bullet, sources=sources, created=BEFORE_FIRST_STEP, changed=BEFORE_FIRST_STEP)


def _renumber(bullets: Sequence[Bullet], count: TokenCounter) -> list[Bullet]:
    """Give a bullet a new id where its number would not follow the one before, so that the order is kept."""
    last, found = 0, []
    for bullet in bullets:
        if bullet.number <= last:
            found.append(measure(replace(bullet, id=f"{slug(bullet.section)}-{last + 1:05d}"), count))
        else:
            found.append(bullet)
        last = found[-1].number
    return found


def _join_equal(bullets: Sequence[Bullet]) -> list[Bullet]:
    alike: dict[str, list[Bullet]] = {}
    for bullet in bullets:
        alike.setdefault(comparable(bullet.content), []).append(bullet)
    return [join_bullets(group, step=BEFORE_FIRST_STEP) if len(group) > 1 else group[0] for group in alike.values()]


@dataclass(frozen=True, kw_only=True)
class PlaybookDiff:
    """Bullets of one playbook alone, and pairs (before, after) with other contents, or with other counters only.

    Bullets belong together by equal contents, whatever their ids, and else by equal ids: a bullet that was reworded.
    """

    removed: tuple[Bullet, ...]
    added: tuple[Bullet, ...]
    reworded: tuple[tuple[Bullet, Bullet], ...]
    recounted: tuple[tuple[Bullet, Bullet], ...]
    unchanged: int


def playbook_diff(before: Playbook, after: Playbook) -> PlaybookDiff:
    """Compare two playbooks; all bullets are in the order of their playbook."""
    by_content = {comparable(bullet.content): bullet for bullet in after.bullets}
    same = [(one, by_content[key]) for one in before.bullets if (key := comparable(one.content)) in by_content]
    paired = {one.id for one, _ in same}, {other.id for _, other in same}
    left = {bullet.id: bullet for bullet in after.bullets if bullet.id not in paired[1]}
    reworded = tuple((one, left.pop(one.id)) for one in before.bullets if one.id not in paired[0] and one.id in left)
    known = paired[0] | {one.id for one, _ in reworded}
    recounted = tuple(pair for pair in same if _votes(pair[0]) != _votes(pair[1]))
    return PlaybookDiff(
        removed=tuple(bullet for bullet in before.bullets if bullet.id not in known),
        added=tuple(left.values()),
        reworded=reworded,
        recounted=recounted,
        unchanged=len(same) - len(recounted),
    )


def _votes(bullet: Bullet) -> tuple[int, int, int]:
    return bullet.helpful, bullet.harmful, bullet.neutral
