"""A run's context after each step, rebuilt from its journal, and the history of each bullet of its playbook.

Times stand beside the steps in the journal, so playbooks and their digests do not depend on them (founding document
000, "Playbook").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from ace_bench.contexts.loading import restore
from ace_bench.core.context import Context, HasBullets
from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.types import Record, Stage
from ace_bench.playbook.bullets import BEFORE_FIRST_STEP
from ace_bench.report.evidence import read_steps, sharpest_fall
from ace_bench.store.files import write_files
from ace_bench.store.journal import RolloutRecord, StepRecord, parse_journal
from ace_bench.store.lines import read_lines
from ace_bench.store.results import read_object


def history(folder: Path) -> Iterator[Context]:
    """Yield the context before the first step and after each one. Raises ``StoreError``."""
    try:
        context = restore(read_object(folder, "contexts/initial.json"))
        yield context
        for step in read_steps(folder):
            context = context.patched(step.patch)
            if context.digest != step.digest:
                raise StoreError(f"step {step.index} in {folder} does not lead to its context; repeat the run")
            yield context
    except DataError as error:
        raise StoreError(f"{folder}: {error}; repeat the run") from error


def last_context(folder: Path) -> tuple[Context, int]:
    """Return the last recorded context of a run that has not finished, and the steps that led to it.

    Raises ``StoreError``.
    """
    ((steps, context),) = deque(enumerate(history(folder)), maxlen=1)
    return context, steps


def write_around_fall(folder: Path) -> bool:
    """Write the contexts before and after the step that removed most tokens (paper, figure 2).

    Returns false if no step removed any. The files are ``contexts/before_fall.json`` and ``after_fall.json``. Raises
    ``StoreError`` and ``FileUnwritable``.
    """
    step = sharpest_fall([step.context_tokens for step in read_steps(folder)])
    if step is None:
        return False
    contexts = islice(history(folder), step, step + 2)
    names = (folder / "contexts" / f"{name}.json" for name in ("before_fall", "after_fall"))
    contents = {path: msgspec.json.encode(context.dump()) for path, context in zip(names, contexts, strict=True)}
    write_files(contents)
    return True


@dataclass(frozen=True, kw_only=True)
class BulletHistory:
    """A bullet of a run's last playbook. Steps count from 0. A time is when the journal recorded the step, in UTC.

    ``created`` and ``changed`` are the bullet's steps: -1, without a time, for what the run started from. ``last_used``
    is the last step in which the Generator cited the bullet or a vote was cast on it (or on a bullet that was merged
    into it). It is ``None`` without such a step. Times are ``None`` in folders of versions that recorded none.
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


class Changes(NamedTuple):
    """A run's contexts from the first one on, its steps, the first bullets, what each step changed, and rollouts."""

    contexts: Sequence[Context]
    steps: Sequence[StepRecord]
    first: Sequence[Record]
    changes: Sequence[Record]
    rollouts: Sequence[RolloutRecord]


def read_changes(folder: Path) -> Changes:
    """Read how a run changed its bullets. Raises ``StoreError``, and ``DataError`` for other contexts."""
    contexts = list(history(folder))
    records = [line.record for line in read_lines(folder / "journal.jsonl", parse_journal).check().entries]
    steps = [record for record in records if isinstance(record, StepRecord)]
    versions = [context for context in contexts if isinstance(context, HasBullets)]
    if not versions:
        raise DataError(f"{folder} has contexts of the kind {contexts[0].kind}; only playbooks have bullets")
    first, changes = versions[0].bullet_changes(versions[1:], [step.samples for step in steps])
    return Changes(contexts, steps, first, changes, [record for record in records if isinstance(record, RolloutRecord)])


def bullet_history(folder: str | Path) -> list[BulletHistory]:
    """Return the bullets of a run's last playbook, of either kind, with their steps and times.

    The run may be unfinished. Raises ``StoreError`` for a damaged folder, ``DataError`` for other contexts.
    """
    _, steps, first, changes, rollouts = read_changes(Path(folder))
    bullets = {bullet["id"]: bullet for bullet in first}
    for change in changes:
        bullets.update({bullet["id"]: bullet for bullet in change.get("set", ())})
        for removed in change.get("removed", ()):
            del bullets[removed]
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
    """Return the last step in which each bullet was used, removed bullets included. Unused ones are missing.

    ``first`` are the bullets before the first step, ``changes`` the bullets that each step ``set`` and ``removed``.
    Citations count in the step that learnt from the sample. Evaluations do not count. A merged bullet takes over the
    use of its parts. The votes that a bullet is created with are not a use.
    """
    cited = _citations(steps, rollouts)
    votes = {bullet["id"]: _votes(bullet) for bullet in first}
    used: dict[str, int] = {}
    for index, (step, change) in enumerate(zip(steps, changes, strict=False)):
        used.update(dict.fromkeys(cited[index] & votes.keys(), index))
        merged = merged_bullets(step.events)
        now = {bullet["id"]: _votes(bullet) for bullet in change.get("set", ())}
        for key, total in now.items():
            group = merged.get(key, {key})
            if key in votes and total > sum(votes.get(part, 0) for part in group):
                used[key] = index
            elif uses := [used[part] for part in group if part in used]:
                used[key] = max(uses)
        votes.update(now)
        for removed in change.get("removed", ()):
            votes.pop(removed, None)
    return used


def _citations(steps: Sequence[StepRecord], rollouts: Iterable[RolloutRecord]) -> list[set[str]]:
    """Return the ids that the rollouts of each step cited."""
    places = {
        f"{Stage.ADAPT}/{scope}{sample}": index
        for index, step in enumerate(steps)
        for sample in step.samples
        for scope in (f"epoch{step.epoch}/", "")  # the keys of an online run name no epoch
    }
    cited: list[set[str]] = [set() for _ in steps]
    for rollout in rollouts:
        index = places.get(rollout.key.rsplit("/", 2)[0])  # without context and trial
        if index is not None:
            cited[index].update(rollout.attempt.cited)
    return cited


def _votes(bullet: Record) -> int:
    return sum(bullet[name] for name in ("helpful", "harmful", "neutral"))


def merged_bullets(events: Iterable[Record]) -> Mapping[str, Set[str]]:
    """Return for each bullet of a merge the ids of all that became one with it."""
    groups: dict[str, Set[str]] = {}
    for event in events:
        if merged_ids := event.get("merged"):
            group = frozenset[str]().union(*(groups.get(bullet, {bullet}) for bullet in (event["bullet"], *merged_ids)))
            groups.update(dict.fromkeys(group, group))
    return groups
