"""Counts how well each role did from the calls, rollouts and steps of a run, finished or not: see ``roles``."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ace_bench.core.backbones import EMBEDDER, GENERATOR, JUDGE
from ace_bench.core.context import Citable, Context
from ace_bench.core.errors import UNREADABLE
from ace_bench.core.lenient_json import find_objects
from ace_bench.core.replies import RETRY_START
from ace_bench.core.types import Fault, Message, Record, Stage
from ace_bench.store.calls import CallRecord, Request
from ace_bench.store.journal import RolloutRecord, StepRecord
from ace_bench.store.roles import (
    BULLETS,
    CHEATSHEETS,
    CURATOR,
    OPERATIONS,
    REFLECTOR,
    VOTES,
    Citations,
    Curations,
    Proposals,
    Replies,
    RoleQuality,
    Roles,
    SecondTries,
    Sentences,
)

_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")
_SHORTEST = 5
"""Words of the shortest sentence that counts: shorter ones are names, labels and answers."""
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\S*\d\S*")
"""What a reason says of one refusal alone: quoted texts, ids and numbers."""
_FURTHER_CLAUSE = re.compile(r"[;:].*", re.DOTALL)


class _Copies:
    """Counts sentences of replies, and keeps those that stand in their own prompt, each with its session."""

    def __init__(self) -> None:
        self._total = 0
        self._copied: list[tuple[str, str]] = []

    def add(self, session: str, sentences: Sequence[str], prompt: Sequence[str]) -> int:
        """Add the sentences of a reply, and return how many are copied."""
        copied = [(session, sentence) for sentence in sentences if _stands_in(prompt, sentence)]
        self._total += len(sentences)
        self._copied += copied
        return len(copied)

    def sums(self, reference: _Prompt) -> Sentences | None:
        """Return the numbers, given the prompt that shows what all share; ``None`` without sentences."""
        shared = sum(
            session != reference.session and _stands_in(reference.texts, sentence) for session, sentence in self._copied
        )
        return Sentences(total=self._total, copied=len(self._copied), shared=shared) if self._total else None


class _Prompt(NamedTuple):
    """A prompt. The shortest one shows the fewest bullets, and is the same in whatever order the calls ended."""

    size: float = math.inf
    call: str = ""
    session: str = ""
    texts: Sequence[str] = ()


class _RoleCounts:
    """Sums over the calls of one role."""

    def __init__(self) -> None:
        self.asked = self.asked_twice = self.cut = self.all_reasoning = self.failed_once = 0
        self.curations: list[tuple[str, bool]] = []
        """Sessions of the replies that hold a list of operations, and whether it is empty."""
        self.sessions: set[str] = set()
        """Sessions with a call."""
        self.repeated: set[str] = set()
        """Sessions in which something was asked a second time."""
        self.half_copied: set[str] = set()
        """Sessions in whose last reply at least half of the sentences are copied."""
        self._sentences, self._bullets = _Copies(), _Copies()
        self._shortest = _Prompt()

    def add(self, call: CallRecord) -> None:
        """Add an answered call."""
        messages: Sequence[Message] = () if call.request is None else call.request.messages
        repeats = _asks_again(messages)
        twice = repeats or call.completion.asked_again > 0
        self.asked += not repeats
        self.asked_twice += twice
        self.cut += call.completion.cut
        self.all_reasoning += call.completion.all_reasoning
        self.sessions.add(call.session)
        if twice:
            self.repeated.add(call.session)
        elif call.fault is not None:
            self.failed_once += 1
        if call.request is not None:
            self._add_text(call, call.request)

    def _add_text(self, call: CallRecord, request: Request) -> None:
        # Who is asked a second time is shown the first reply, which may well be repeated.
        messages = request.messages[:-2] if _asks_again(request.messages) else request.messages
        prompt = [message.content for message in messages]
        self._shortest = min(self._shortest, _Prompt(sum(map(len, prompt)), call.id, call.session, prompt))
        value = None if request.schema is None else _read_object(call.completion.text)
        sentences = [*_sentences(call.completion.text if value is None else value)]
        copied = self._sentences.add(call.session, sentences, prompt)
        if 0 < len(sentences) <= 2 * copied:
            self.half_copied.add(call.session)
        else:
            self.half_copied.discard(call.session)
        operations = None if value is None else value.get("operations")
        if isinstance(operations, list):
            self.curations.append((call.session, not operations))
            self._bullets.add(call.session, [*_sentences(operations)], prompt)

    def quality(
        self, *, unreadable: int, failed_once: int, proposals: Mapping[str, Proposals], wrong: Collection[str]
    ) -> RoleQuality:
        """Return how well the role did.

        ``failed_once`` of its ``unreadable`` questions were asked only once. ``wrong`` are the sessions of wrong
        attempts.
        """
        second_ask = max(0, self.asked_twice - max(0, unreadable - failed_once))
        replies = Replies(
            asked=self.asked,
            at_once=max(0, self.asked - second_ask - unreadable),
            second_ask=second_ask,
            unreadable=unreadable,
            cut=self.cut,
            all_reasoning=self.all_reasoning,
        )
        return RoleQuality(
            replies=replies,
            sentences=self._sentences.sums(self._shortest),
            proposals=proposals,
            bullets=self._bullets.sums(self._shortest),
            curations=_count_curations(self.curations, wrong) if self.curations else None,
        )


def count_roles(
    calls: Iterable[CallRecord],
    rollouts: Sequence[RolloutRecord],
    steps: Sequence[StepRecord],
    contexts: Iterable[Context],
) -> Roles:
    """Return how well each role did, by name.

    ``contexts`` are those that the rollouts were made under, in any order. Where one is missing, an id counts as valid
    if another context holds it.
    """
    counts: defaultdict[str, _RoleCounts] = defaultdict(_RoleCounts)
    for call in calls:
        if call.role != EMBEDDER and (call.fault is None or not call.fault.unanswered):
            counts[call.role].add(call)
    events = [event for step in steps for event in step.events]
    proposals, unreadable = _count_proposals(events), _count_unreadable(rollouts, events)
    failed_once = Counter({role: count.failed_once for role, count in counts.items()})
    generator, unread = counts[GENERATOR], [rollout.key for rollout in rollouts if _is_unreadable(rollout)]
    failed_once[GENERATOR] = sum(key not in generator.repeated for key in unread)
    # A backbone may fail without a reply to record.
    generator.asked += sum(key not in generator.sessions for key in unread)
    wrong = {rollout.key for rollout in rollouts if not rollout.grade.correct}
    roles = {
        role: counts[role].quality(
            unreadable=unreadable[role],
            failed_once=failed_once[role],
            proposals=proposals.get(role, {}),
            wrong=wrong,
        )
        for role in sorted({*counts, *proposals})
    }
    roles[GENERATOR] = replace(
        roles[GENERATOR],
        second_tries=_count_second_tries(rollouts, counts[GENERATOR].half_copied),
        citations=_count_citations(rollouts, contexts),
    )
    return roles


def _count_curations(curations: Sequence[tuple[str, bool]], wrong: Collection[str]) -> Curations:
    after_wrong = [empty for session, empty in curations if session in wrong]
    return Curations(
        total=len(curations),
        empty=sum(empty for _, empty in curations),
        wrong=len(after_wrong),
        empty_wrong=sum(after_wrong),
    )


def _is_unreadable(rollout: RolloutRecord) -> bool:
    return bool(rollout.attempt.unreadable) or _has_unreadable(rollout.fault)


def _has_unreadable(fault: Fault | None) -> bool:
    return fault is not None and fault.owner == "model" and fault.kind in UNREADABLE


def _count_unreadable(rollouts: Sequence[RolloutRecord], events: Sequence[Record]) -> Counter[str]:
    """Return by role how many questions got no reply that could be read."""
    unreadable = Counter(str(event["role"]) for event in events if _is_unread(event))
    unreadable[GENERATOR] += sum(map(_is_unreadable, rollouts))
    unreadable[JUDGE] += sum(_has_unreadable(rollout.judge_fault) for rollout in rollouts)
    return unreadable


def _is_unread(event: Record) -> bool:
    return event["event"] == "fault" and event["owner"] == "model" and event["kind"] in UNREADABLE


def _count_proposals(events: Sequence[Record]) -> Mapping[str, Mapping[str, Proposals]]:
    """Return what became of proposals, by role and kind. A Curator's TAGs, where it may make any, are votes, too."""
    accepted: Counter[tuple[str, str]] = Counter()
    refused: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for event in events:
        match event:
            case {"event": "accepted", "type": kind}:
                accepted[_proposal(kind)] += 1
            case {"event": "rejected", "operation": operation, "reason": reason}:
                refused[_proposal(operation.get("type"))][_general(reason)] += 1
            case {"event": "rewritten"}:
                accepted[CURATOR, CHEATSHEETS] += 1
            case {"event": "kept", "reason": reason}:
                refused[CURATOR, CHEATSHEETS][_general(reason)] += 1
    proposals: defaultdict[str, dict[str, Proposals]] = defaultdict(dict)
    for role, what in sorted({*accepted, *refused}):
        proposals[role][what] = Proposals(accepted=accepted[role, what], refused=dict(refused[role, what]))
    return proposals


def _proposal(kind: object) -> tuple[str, str]:
    return {"TAG": (REFLECTOR, VOTES), "ADD": (CURATOR, BULLETS)}.get(str(kind).upper(), (CURATOR, OPERATIONS))


def _general(reason: str) -> str:
    """Return a reason without what it says of one proposal alone."""
    return _FURTHER_CLAUSE.sub("", _PARTICULAR.sub("…", reason)).removesuffix(" …")


def _count_second_tries(rollouts: Sequence[RolloutRecord], half_copied: Collection[str]) -> SecondTries | None:
    right_keys = {rollout.key for rollout in rollouts if rollout.grade.correct}
    again = [rollout for rollout in rollouts if rollout.trial and rollout.stage is Stage.ADAPT]
    before = [f"{rollout.key.rpartition('/')[0]}/{rollout.trial - 1}" for rollout in again]
    turned = sum(
        rollout.key in right_keys and earlier not in right_keys for rollout, earlier in zip(again, before, strict=True)
    )
    copied = sum(rollout.key in half_copied for rollout in again)
    return SecondTries(total=len(again), right=turned, copied=copied) if again else None


def _count_citations(rollouts: Sequence[RolloutRecord], contexts: Iterable[Context]) -> Citations | None:
    """Return what attempts cited; ``None`` if no context has bullets that could be cited."""
    attempts: defaultdict[str, list[RolloutRecord]] = defaultdict(list)
    for rollout in rollouts:
        attempts[rollout.context].append(rollout)
    numbers, every_id, citable = Counter[str](), set[str](), False
    for context in contexts:
        if isinstance(context, Citable):
            citable = True
            every_id.update(context.bullet_ids)
            _add_citations(numbers, attempts.pop(context.digest, ()), context.bullet_ids)
    for others in attempts.values():
        _add_citations(numbers, others, every_id)
    return Citations(**numbers) if citable else None


def _add_citations(numbers: Counter[str], attempts: Iterable[RolloutRecord], ids: Collection[str]) -> None:
    for attempt in attempts:
        cited = {*attempt.attempt.cited}
        valid = sum(bullet in ids for bullet in cited)
        invented = len(cited) - valid
        numbers.update(attempts=1, valid=valid, invented=invented, inventing=int(invented > 0))
        if ids and not attempt.trial:
            which = "with_bullets" if valid else "without_bullets"
            numbers.update({which: 1, f"right_{which}": attempt.grade.correct})


def _asks_again(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[-1].content.startswith(RETRY_START)


def _read_object(text: str) -> Record | None:
    """Return the object that a structured reply is, or the last one in it; ``None`` if it holds none."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        objects = [found.value for found in find_objects(text)]
        return objects[-1] if objects else None
    return value if isinstance(value, dict) else None


def _sentences(value: Any) -> Iterator[str]:
    """Yield the sentences in all texts of a reply."""
    if isinstance(value, str):
        parts = map(str.strip, _SENTENCE_ENDS.split(value))
        yield from (part for part in parts if len(part.split()) >= _SHORTEST)
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _sentences(item)


def _stands_in(prompt: Sequence[str], sentence: str) -> bool:
    return any(sentence in text for text in prompt)
