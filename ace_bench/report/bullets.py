"""When each bullet of a run's playbook was created, last changed and last used (founding document 000, "Playbook").

The journal is the source: times stand beside the steps there, so playbooks and their digests do not depend on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ace_bench.contexts.playbook.bullets import BEFORE_FIRST_STEP
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook_text.text_playbook import TextPlaybook
from ace_bench.core.errors import DataError
from ace_bench.core.types import Record, Stage
from ace_bench.report.histories import history
from ace_bench.report.text_playbooks import text_changes
from ace_bench.store.journal import RolloutRecord, StepRecord, parse_journal
from ace_bench.store.lines import read_lines


@dataclass(frozen=True, kw_only=True)
class BulletHistory:
    """A bullet of a run's last playbook. Steps count from 0; a time is when the journal recorded the step, in UTC.

    ``created`` and ``changed`` are those of the bullet: -1, without a time, for what the run started from.
    ``last_used`` is the last step in which the Generator cited the bullet or a vote was cast on it (or on a bullet that
    was merged into it), ``None`` if there is none. Times are ``None`` in folders of versions that recorded none.
    """

    id: str
    section: str
    content: str
    created: int
    changed: int
    last_used: int | None
    created_at: datetime | None
    changed_at: datetime | None
    last_used_at: datetime | None


def bullet_history(folder: str | Path) -> list[BulletHistory]:
    """Return the bullets of a run's last playbook, of either kind, with their steps and times.

    The run may be unfinished. Raises ``StoreError`` for a damaged folder, ``DataError`` for other contexts.
    """
    root = Path(folder)
    contexts = list(history(root))
    journal = read_lines(root / "journal.jsonl", parse_journal).check()
    records = [line.record for line in journal.entries]
    steps = [record for record in records if isinstance(record, StepRecord)]
    rollouts = [record for record in records if isinstance(record, RolloutRecord)]
    if isinstance(contexts[0], Playbook):
        first: Sequence[Record] = [bullet.record() for bullet in contexts[0].bullets]
        changes: Sequence[Record] = [step.patch for step in steps]
    elif isinstance(contexts[0], TextPlaybook):
        first, changes = text_changes([one for one in contexts if isinstance(one, TextPlaybook)], steps)
    else:
        raise DataError(f"{folder} has contexts of the kind {contexts[0].kind}; only playbooks have bullets")
    bullets = {bullet["id"]: bullet for bullet in first}
    for change in changes:
        bullets.update({bullet["id"]: bullet for bullet in change.get("set", ())})
        for gone in change.get("removed", ()):
            del bullets[gone]
    used = last_used(first, changes, steps, rollouts)
    times = dict(enumerate(step.at for step in steps))
    return [
        BulletHistory(
            **{name: bullet[name] for name in ("id", "section", "content", "created", "changed")},
            last_used=used.get(key),
            created_at=times.get(bullet["created"]),
            changed_at=times.get(bullet["changed"]),
            last_used_at=times.get(used.get(key, BEFORE_FIRST_STEP)),
        )
        for key, bullet in bullets.items()
    ]


def last_used(
    first: Iterable[Record], changes: Iterable[Record], steps: Sequence[StepRecord], rollouts: Iterable[RolloutRecord]
) -> Mapping[str, int]:
    """Return the last step in which each bullet was used, removed bullets included; unused ones are missing.

    ``first`` are the bullets before the first step, ``changes`` the bullets that each step ``set`` and ``removed``.
    Citations count in the step that learnt from the sample; evaluations do not count. A merged bullet takes over the
    use of its parts. The votes that a bullet is created with are not a use.
    """
    cited = _citations(steps, rollouts)
    votes = {bullet["id"]: _votes(bullet) for bullet in first}
    used: dict[str, int] = {}
    for place, (step, change) in enumerate(zip(steps, changes, strict=False)):
        used.update(dict.fromkeys(cited[place] & votes.keys(), place))
        merged = _merged(step.events)
        now = {bullet["id"]: _votes(bullet) for bullet in change.get("set", ())}
        for key, total in now.items():
            group = merged.get(key, {key})
            if key in votes and total > sum(votes.get(part, 0) for part in group):
                used[key] = place
            elif uses := [used[part] for part in group if part in used]:
                used[key] = max(uses)
        votes.update(now)
        for gone in change.get("removed", ()):
            votes.pop(gone, None)
    return used


def _citations(steps: Sequence[StepRecord], rollouts: Iterable[RolloutRecord]) -> list[set[str]]:
    """Return the ids that the rollouts of each step cited."""
    places = {
        f"{Stage.ADAPT}/{scope}{sample}": place
        for place, step in enumerate(steps)
        for sample in step.samples
        for scope in (f"epoch{step.epoch}/", "")  # the keys of an online run name no epoch
    }
    cited: list[set[str]] = [set() for _ in steps]
    for rollout in rollouts:
        place = places.get(rollout.key.rsplit("/", 2)[0])  # without context and trial
        if place is not None:
            cited[place].update(rollout.attempt.cited)
    return cited


def _votes(bullet: Record) -> int:
    return sum(bullet[name] for name in ("helpful", "harmful", "neutral"))


def _merged(events: Iterable[Record]) -> Mapping[str, Set[str]]:
    """Return for each bullet of a merge the ids of all that became one with it."""
    groups: dict[str, Set[str]] = {}
    for event in events:
        if others := event.get("merged"):
            group = frozenset[str]().union(*(groups.get(one, {one}) for one in (event["bullet"], *others)))
            groups.update(dict.fromkeys(group, group))
    return groups
