"""Unlearning: removes from a playbook what came from a sample, a user or a bullet.

The journal of a run says which samples wrote and reworded each bullet, which bullets were merged, and who cast each
vote. A file alone names the sources of a bullet: all words of a bullet with a forgotten source go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ace_bench.core.encoding import convert
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.core.types import Record
from ace_bench.playbook.bullets import BEFORE_FIRST_STEP, COUNTERS, Bullet, number_of
from ace_bench.playbook.feedback import read_vote
from ace_bench.playbook.playbook import Playbook
from ace_bench.report.histories import merged_bullets, read_changes
from ace_bench.store.journal import StepRecord


class _Wording(NamedTuple):
    bullet: Bullet
    origins: Set[str]
    """The samples, sources and bullets that the words may come from."""


class _Votes(NamedTuple):
    wordings: int
    """How many there were: the last of them was voted on."""
    origins: Set[str]
    votes: Mapping[str, int]


@dataclass
class _Part:
    """A bullet that others may have been merged with."""

    id: str
    wordings: list[_Wording] = field(default_factory=list)
    cast: list[_Votes] = field(default_factory=list)

    def count(self, votes: Mapping[str, int], *origins: str) -> None:
        self.cast.append(_Votes(len(self.wordings), {*origins}, votes))


class Lineage(NamedTuple):
    """The parts of each bullet, the one that gave its words first, and the steps of the run."""

    parts: Mapping[str, Sequence[_Part]]
    steps: Sequence[StepRecord] = ()


class Forgotten(NamedTuple):
    """The remaining playbook, the reason of each changed bullet by id, and notes as sentences."""

    playbook: Playbook
    reasons: Mapping[str, str]
    notes: Sequence[str]


def file_lineage(playbook: Playbook) -> Lineage:
    """Return what the sources of a playbook's bullets say."""
    return Lineage({bullet.id: [_first_part(bullet)] for bullet in playbook.bullets})


def run_lineage(folder: Path, tested: Playbook) -> Lineage:
    """Follow a run's bullets up to the step that made ``tested``. Raises ``StoreError`` and ``DataError``."""
    history = read_changes(folder)
    last = next((index for index, context in enumerate(history.contexts) if context.digest == tested.digest), None)
    if last is None:
        raise DataError(f"no step of {folder} leads to its playbook; a playbook_text cannot be followed")
    parts: dict[str, list[_Part]] = {record["id"]: [_first_part(convert(record, Bullet))] for record in history.first}
    for step, change in zip(history.steps[:last], history.changes, strict=False):
        before = dict(parts)
        for removed in change.get("removed", ()):
            del parts[removed]
        anew = [] if parts else [group[0] for group in before.values()]  # the whole playbook was written anew
        for record in change.get("set", ()):
            parts[record["id"]] = _follow(convert(record, Bullet), before, step, anew)
    return Lineage(parts, history.steps[:last])


def _first_part(bullet: Bullet) -> _Part:
    """Return a bullet of a file."""
    part, origins = _Part(bullet.id), {bullet.id}
    part.wordings.append(_Wording(bullet, origins))
    part.count({name: getattr(bullet, name) for name in COUNTERS})
    for source in bullet.sources:
        if cast := read_vote(source):
            voter, vote = cast
            part.count({vote: -1})
            part.count({vote: 1}, voter)
        else:
            origins.add(source)
    return part


def _follow(
    bullet: Bullet, before: Mapping[str, Sequence[_Part]], step: StepRecord, anew: Iterable[_Part]
) -> list[_Part]:
    """Return the parts of a bullet after a step that changed it."""
    group = merged_bullets(step.events).get(bullet.id, {bullet.id})
    members = [bullet.id, *sorted(group - {bullet.id}, key=lambda member: number_of(member) or 0)]
    parts = [part for member in members for part in before.get(member, ())] or [_Part(bullet.id)]
    main_part = parts[0]
    events = [event for event in step.events if event.get("bullet") in group]
    wrote = [event for event in events if event.get("type") in ("ADD", "UPDATE", "MERGE")]
    for event in events:
        if votes := event.get("votes"):
            main_part.count(votes, *_samples(event))
    uncounted = Counter({name: getattr(bullet, name) for name in COUNTERS})
    for votes in (cast.votes for part in parts for cast in part.cast):
        uncounted.subtract(votes)
    main_part.count(uncounted, *([sample for event in wrote for sample in _samples(event)] or step.samples))
    if not main_part.wordings or main_part.wordings[-1].bullet.content != bullet.content:
        joint = any(event.get("event") == "worded" or event.get("type") == "MERGE" for event in events)
        rewriting = [event for event in wrote if joint or event["bullet"] == bullet.id]
        writers = [sample for event in rewriting for sample in _samples(event)] or step.samples
        sources = [part for part in (*(parts if joint else [main_part]), *anew) if part.wordings]
        origins = {bullet.id}.union(writers, *(part.wordings[-1].origins for part in sources))
        main_part.wordings.append(_Wording(bullet, origins))
    return parts


def _samples(event: Record) -> Sequence[str]:
    """Return the samples of an operation: one, a batch whose lessons were merged, or none for a refinement."""
    samples: Sequence[str] = event.get("samples") or ([event["sample"]] if "sample" in event else [])
    return samples


def forget(playbook: Playbook, lineage: Lineage, name: str) -> Forgotten:
    """Return the playbook without the words and votes of a sample, source, user or bullet.

    A bullet goes back to its newest words that do not come from ``name``, with the votes on them, and so do bullets
    that were merged into it; without such words it is removed. Raises ``ConfigError`` if nothing comes from ``name``.
    """
    remaining: list[Bullet] = []
    reasons: dict[str, str] = {}
    for bullet in playbook.bullets:
        after = list(_without(bullet, lineage.parts[bullet.id], name))
        if not after:
            reasons[bullet.id] = f"all its words come from {name}"
        elif after[0].content != bullet.content:
            back = " and ".join(f"{restored.id} in step {restored.changed}" for restored in after)
            reasons[bullet.id] = f"its words come from {name}, too: back to the words of {back}"
        elif after != [bullet]:
            reasons[bullet.id] = f"without the votes of {name}, and as a source"
        remaining += after
    if not reasons:
        raise ConfigError(f"nothing in the playbook is known to come from {name}")
    bullets = tuple(sorted(remaining, key=lambda bullet: bullet.number))
    layout = playbook.layout and playbook.layout.limited({restored.id for restored in remaining})
    recent = ["The latest reflections, which name no sample, are removed."] if playbook.recent else []
    remains = replace(playbook, bullets=bullets, recent=(), layout=layout)
    return Forgotten(remains, reasons, [*recent, *_unknown(remaining, lineage, name)])


def _without(bullet: Bullet, parts: Sequence[_Part], name: str) -> Iterator[Bullet]:
    """Yield what remains of a bullet: itself, or each part with its newest words from elsewhere."""
    if name not in parts[0].wordings[-1].origins:
        yield _count(bullet, [cast for part in parts if part.id != name for cast in part.cast], name)
        return
    for part in parts:
        places = [number for number, wording in enumerate(part.wordings, 1) if name not in wording.origins]
        if places:
            cast = [cast for cast in part.cast if cast.wordings <= places[-1]]
            yield _count(part.wordings[places[-1] - 1].bullet, cast, name)


def _count(bullet: Bullet, cast: Iterable[_Votes], name: str) -> Bullet:
    """Return a bullet with the votes of others, and without a name among its sources."""
    votes = Counter[str]()
    for votes_cast in cast:
        votes.update({} if name in votes_cast.origins else votes_cast.votes)
    sources = [source for source in bullet.sources if name not in (source, *(read_vote(source) or ())[:1])]
    counts = votes["helpful"], votes["harmful"], votes["neutral"]
    return replace(bullet, sources=tuple(sources), helpful=counts[0], harmful=counts[1], neutral=counts[2])


def _unknown(remaining: Sequence[Bullet], lineage: Lineage, name: str) -> Iterator[str]:
    """Say what the records do not show."""
    if not lineage.steps:
        yield "A file does not say whose votes its counters hold, nor what a bullet said before: a run's folder does."
        return
    wordings = [wording for parts in lineage.parts.values() for part in parts for wording in part.wordings]
    written = {wording.bullet.content: wording.bullet.changed for wording in wordings}
    influenced = [wording.bullet.changed for wording in wordings if name in wording.origins]
    samples = (step.index for step in lineage.steps if name in step.samples)
    first = min([*influenced, *samples], default=BEFORE_FIRST_STEP)
    later = [bullet.id for bullet in remaining if written[bullet.content] > first]
    since = "the start of the run" if first == BEFORE_FIRST_STEP else f"step {first}"
    yield f"Written after {since}, when prompts may have shown it: {', '.join(later) or 'no bullet'}."
    events = [event for step in lineage.steps for event in step.events]
    removed = [event["bullet"] for event in events if event.get("type") == "REMOVE" and name in _samples(event)]
    yield from [f"It removed {', '.join(removed)}, which stay removed."] if removed else []
    yield "The run's folder still holds it: journal, calls and contexts."
