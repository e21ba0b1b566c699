"""Compares two playbooks."""

from __future__ import annotations

from dataclasses import dataclass

from ace_bench.playbook.bullets import Bullet, comparable
from ace_bench.playbook.playbook import Playbook


@dataclass(frozen=True, kw_only=True)
class PlaybookDiff:
    """Bullets of only one playbook, and pairs (before, after) whose contents or counters differ.

    Bullets are paired by equal contents, or else by equal ids, which shows that a bullet was reworded.
    """

    removed: tuple[Bullet, ...]
    added: tuple[Bullet, ...]
    reworded: tuple[tuple[Bullet, Bullet], ...]
    recounted: tuple[tuple[Bullet, Bullet], ...]
    unchanged: int


def playbook_diff(before: Playbook, after: Playbook) -> PlaybookDiff:
    """Compare two playbooks; all bullets are in the order of their playbook."""
    by_content = {comparable(bullet.content): bullet for bullet in after.bullets}
    unchanged = [(old, by_content[key]) for old in before.bullets if (key := comparable(old.content)) in by_content]
    paired = {old.id for old, _ in unchanged}, {new.id for _, new in unchanged}
    unpaired = {bullet.id: bullet for bullet in after.bullets if bullet.id not in paired[1]}
    reworded = tuple(
        (old, unpaired.pop(old.id)) for old in before.bullets if old.id not in paired[0] and old.id in unpaired
    )
    paired_ids = paired[0] | {old.id for old, _ in reworded}
    recounted = tuple(pair for pair in unchanged if _votes(pair[0]) != _votes(pair[1]))
    return PlaybookDiff(
        removed=tuple(bullet for bullet in before.bullets if bullet.id not in paired_ids),
        added=tuple(unpaired.values()),
        reworded=reworded,
        recounted=recounted,
        unchanged=len(unchanged) - len(recounted),
    )


def _votes(bullet: Bullet) -> tuple[int, int, int]:
    return bullet.helpful, bullet.harmful, bullet.neutral
