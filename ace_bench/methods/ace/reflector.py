"""The Reflector with iterative refinement: reflect, tag, make a new rollout (paper, sections 3 and 4.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from ace_bench.contexts.playbook.apply import Limits
from ace_bench.contexts.playbook.deltas import Operation, parse_operations
from ace_bench.core.arena import Arena
from ace_bench.core.errors import RolloutFault
from ace_bench.core.prompt_limit import PromptParts, send_within_limit
from ace_bench.core.prompts import RAW_REFLECTION
from ace_bench.core.replies import ask_and_read, ask_once, parse, shown_unreadable
from ace_bench.core.transcript import Transcript
from ace_bench.core.types import Attempt, Fault, Record, Rollout
from ace_bench.methods.ace.execution import ExecutionReflector, Strategy
from ace_bench.methods.ace.official_replies import official_tags
from ace_bench.methods.ace.playbooks import AnyPlaybook, shown_to_reflector
from ace_bench.methods.ace.replies import BulletTag, ReflectorReply

ROLE = "reflector"
HARMFUL = "reflector_harmful"
"""The template of a Reflector that is asked to mislead."""

NOTHING = "(none)"
FIELDS = frozenset(
    (
        "labels",
        "reasoning",
        "reply",
        "answer",
        "trajectory",
        "conversation",
        "gold",
        "correct",
        "feedback",
        "report",
        "cited",
        "bullets",
    )
)
"""Fields of a Reflector's prompt beside the sample's and the playbook's."""
_VOTES = ("helpful", "harmful")
_LEARNT = ("train", "val")
"""Splits whose environments may be tried again: every method may learn from them as often as it likes."""
TAGS_ONLY = Limits(kinds=("TAG",))
"""What the Reflector may do to a playbook, whatever the Curator may."""


@dataclass(frozen=True, kw_only=True)
class SampleReflection:
    """What was learnt from one sample, before curation.

    ``tags`` are the Reflector's verdicts on bullets, ``verdicts`` the same by round as the replies hold them,
    for a playbook as text; ``reflections`` its reflections as text (none where there is
    nothing to curate from) and ``studied`` the attempt that the last of them is about; ``rollout`` is the first one.
    ``strategies`` are what rules learnt in place of a model.
    """

    rollout: Rollout
    studied: Attempt
    tags: tuple[Operation, ...] = ()
    verdicts: tuple[Sequence[Any], ...] = ()
    reflections: tuple[str, ...] = ()
    strategies: tuple[Strategy, ...] = ()
    events: tuple[Record, ...] = ()

    def followed_by(self, later: SampleReflection) -> SampleReflection:
        """Return both as one."""
        return SampleReflection(
            rollout=self.rollout,
            studied=later.studied,
            tags=(*self.tags, *later.tags),
            verdicts=(*self.verdicts, *later.verdicts),
            reflections=(*self.reflections, *later.reflections),
            strategies=(*self.strategies, *later.strategies),
            events=(*self.events, *later.events),
        )


@dataclass(frozen=True, kw_only=True)
class ReflectionPlan:
    """How to reflect: how many rounds, by which template, and how many reflections a new rollout is shown.

    ``retries`` is the number of new attempts at the environment of an agent; see ``AceSettings``.
    ``tagged`` says which of the Reflector's tags count: on bullets that the rollout used (the first tag on each), or on
    any (the last tag on each, as in the official code). With ``replies=official`` a reply is asked for once and read by
    the authors' rules; the reflection is its whole text. ``rules`` reflect in place of the model.
    """

    rounds: int
    retries: int | Literal["auto"]
    window: int
    template: str
    tagged: Literal["used", "any"]
    replies: Literal["repaired", "official"]
    rules: ExecutionReflector | None = None

    def most(self, rollout: Rollout) -> tuple[int, int]:
        """Return the most reflections on a sample and the most new rollouts of it.

        A question is answered again after every reflection. Of an agent, every attempt is reflected on: the last
        one, too.
        """
        if rollout.attempt.ended is None:
            return self.rounds, self.rounds
        retries = self.retries if isinstance(self.retries, int) else self._fair_retries(rollout)
        return retries + 1, retries

    def _fair_retries(self, rollout: Rollout) -> int:
        return self.rounds - 1 if rollout.feedback.correct is not None and rollout.sample.split in _LEARNT else 0


Learn = Callable[[SampleReflection], AnyPlaybook]
"""Learns from one round of reflection; returns the playbook of the next rollout."""


def joint(reflections: Sequence[str], window: int) -> str:
    """Return the last reflections as one text, the oldest first."""
    return "\n\n".join(reflections[-window:])


def without_reflector(rollout: Rollout) -> SampleReflection:
    """Give the Curator the attempt and its feedback themselves (paper, table 3: "w/o Reflector").

    The steps of an agent are not repeated: the Curator's prompt shows them in any case.
    """
    untouched = SampleReflection(rollout=rollout, studied=rollout.attempt)
    if rollout.fault is not None:
        return untouched
    attempt = (("Reasoning", rollout.attempt.reasoning), ("Answer", rollout.attempt.answer))
    parts = (
        *(() if rollout.attempt.trajectory else attempt),
        ("Feedback", rollout.feedback.message),
        ("Reference answer", rollout.feedback.gold),
    )
    return replace(untouched, reflections=("\n".join(f"{label}: {text}" for label, text in parts if text),))


def reflect(
    playbook: AnyPlaybook,
    rollout: Rollout,
    *,
    plan: ReflectionPlan,
    arena: Arena,
    learn: Learn | None = None,
) -> SampleReflection:
    """Reflect on a rollout as often as ``plan`` says, with a new rollout after each reflection.

    A right first answer gets one reflection, for its tags. Otherwise the loop ends when a rollout is right or, where
    ``labels`` hides that, when neither the answer nor, of an agent, the actions change any more. A fault of a role
    ends it too and is an event. An agent's last attempt is reflected on unless one of these has ended the loop.
    ``learn`` is called with each round, by itself, and returns the playbook of the next rollout and reflection (as in
    the official code). Without it all rollouts run under ``playbook`` and share a prompt prefix.
    """
    result = SampleReflection(rollout=rollout, studied=rollout.attempt)
    latest = rollout
    reflections, rollouts = plan.most(rollout)
    for trial in range(1, reflections + 1):
        if latest.fault is not None:
            break
        this = _one_round(playbook, result, latest, plan=plan, arena=arena)
        result = result.followed_by(this)
        playbook = playbook if learn is None else learn(this)
        if not this.reflections or latest.feedback.correct or trial > rollouts:
            break
        previous = latest
        advice = joint(result.reflections, plan.window)
        latest = arena.rollout(rollout.sample, playbook, trial=trial, reflection=advice)
        if is_settled(previous, latest):
            break
    return result


def is_settled(previous: Rollout, latest: Rollout) -> bool:
    """Whether a new rollout is right or, where ``labels`` hides that, repeats the one before."""
    if latest.feedback.correct is None:
        return _answer_and_actions(latest.attempt) == _answer_and_actions(previous.attempt)
    return latest.feedback.correct


def _answer_and_actions(attempt: Attempt) -> tuple[str | None, ...]:
    return (attempt.answer, *(turn.action for turn in attempt.trajectory))


def _one_round(
    playbook: AnyPlaybook, so_far: SampleReflection, latest: Rollout, *, plan: ReflectionPlan, arena: Arena
) -> SampleReflection:
    """Reflect on the latest rollout; where the Reflector fails, the round has an event and no reflection."""
    this = SampleReflection(rollout=so_far.rollout, studied=so_far.studied)
    if plan.rules is not None:
        return _by_rules(this, latest, plan.rules)
    try:
        reply, dropped = _reflect(playbook, latest, so_far, plan=plan, arena=arena)
    except RolloutFault as error:
        return replace(this, events=(fault_event(ROLE, error.fault),))
    used = latest.attempt.cited if plan.tagged == "used" else None
    tags, events = _tags(reply.tags, used)
    unread = () if reply.unreadable is None else (fault_event(ROLE, reply.unreadable),)
    return replace(
        this,
        tags=tags,
        verdicts=([verdict for verdict in reply.verdicts if used is None or _id_of(verdict) in used],),
        reflections=(reply.text if arena.prompts.uses("generator", RAW_REFLECTION) else reply.advice,),
        studied=latest.attempt,
        events=(*events, *unread, *dropped_event(ROLE, dropped)),
    )


def _by_rules(this: SampleReflection, latest: Rollout, rules: ExecutionReflector) -> SampleReflection:
    lesson = rules.reflect(latest)
    if lesson is None:
        return this
    used = latest.attempt.cited
    tags, events = _tags([BulletTag(id=bullet, tag=lesson.tag) for bullet in used], used)
    learnt = replace(this, tags=tags, strategies=lesson.strategies, events=events)
    return replace(learnt, reflections=(lesson.text,), studied=latest.attempt)


def fault_event(role: str, fault: Fault) -> Record:
    """Describe a failed role call for the journal."""
    return {"event": "fault", "role": role, "owner": fault.owner, "kind": fault.kind, "message": fault.message}


def dropped_event(role: str, items: int) -> tuple[Record, ...]:
    """Return an event with the number of items left out of a role's prompt; none if nothing was left out."""
    return ({"event": "dropped_from_prompt", "role": role, "items": items},) if items else ()


def _reflect(
    playbook: AnyPlaybook, rollout: Rollout, so_far: SampleReflection, *, plan: ReflectionPlan, arena: Arena
) -> tuple[_Reply, int]:
    """Ask once, showing less of the steps and then of the playbook where the prompt is too long.

    Returns the reply and how many items the prompt leaves out.
    """
    advice = joint(so_far.reflections, plan.window)

    def send(shown: PromptParts[Transcript, AnyPlaybook]) -> _Reply:
        seen = replace(rollout, attempt=replace(rollout.attempt, trajectory=shown.first.shown))
        fields = {
            **rollout.sample.inputs,
            **shown.second.render(rollout.sample),
            "labels": arena.labels.value,
            "reasoning": rollout.attempt.reasoning or NOTHING,
            "reply": rollout.attempt.reply,
            "answer": rollout.attempt.answer,
            "trajectory": shown.first.text,
            "conversation": partial(arena.conversation, seen, shown.second, reflection=advice),
            "gold": rollout.feedback.gold,
            "correct": rollout.feedback.correct,
            "feedback": rollout.feedback.message or NOTHING,
            "report": rollout.feedback.report,
            "cited": rollout.attempt.cited,
            "bullets": shown.second.excerpt(rollout.attempt.cited).text,
        }
        messages = arena.prompts.render(plan.template, fields)
        lm = arena.lm(ROLE, so_far.rollout.key)
        if plan.replies == "official":
            return _official(ask_once(lm, messages))
        try:
            return ask_and_read(lm, messages, ReflectorReply, _repaired)
        except RolloutFault as error:
            if not (error.unreadable and arena.learns_unreadable):
                raise
            return _unreadable(error)

    parts = PromptParts(Transcript(rollout.attempt.trajectory), shown_to_reflector(playbook, rollout.attempt))
    return send_within_limit(parts, send)


@dataclass(frozen=True, kw_only=True)
class _Reply:
    """The Reflector's reply: the tags that could be read, all of its list of them, the advice, and the whole text.

    ``unreadable`` says why there is no more than the text.
    """

    tags: Sequence[BulletTag]
    verdicts: Sequence[Any]
    advice: str
    text: str
    unreadable: Fault | None = None


def _repaired(text: str) -> _Reply:
    reply = parse(text, ReflectorReply)
    verdicts = [{"id": tag.id, "tag": tag.tag} for tag in reply.bullet_tags]
    return _Reply(tags=reply.bullet_tags, verdicts=verdicts, advice=reply.advice(), text=text)


def _unreadable(error: RolloutFault) -> _Reply:
    """Take the text as it is for the advice, as the authors' code does; it holds no tags that could be read."""
    shown = shown_unreadable(error)
    return _Reply(tags=(), verdicts=(), advice=shown, text=shown, unreadable=error.fault)


def _official(text: str) -> _Reply:
    """Read a reply by the authors' rules; only their words in their letters are votes."""
    verdicts = official_tags(text)
    words = ((_id_of(verdict), verdict.get("tag")) for verdict in verdicts if isinstance(verdict, dict))
    tags = [BulletTag(id=name, tag=tag) for name, tag in words if isinstance(name, str) and tag in _VOTES]
    return _Reply(tags=tags, verdicts=verdicts, advice=text, text=text)


def _id_of(verdict: Any) -> Any:
    return (verdict.get("id") or verdict.get("bullet")) if isinstance(verdict, dict) else None


def _tags(tags: Sequence[BulletTag], used: Sequence[str] | None) -> tuple[tuple[Operation, ...], tuple[Record, ...]]:
    """Return the operations of the tags that count, and events about the others; ``used=None`` lets all bullets count.

    Of several tags on a used bullet the first counts, otherwise the last.
    """
    if used is None:
        counted, stray = {tag.id: tag for tag in tags}, []
    else:
        first = {tag.id: tag for tag in reversed(tags) if tag.id in used}
        counted = dict(reversed(first.items()))
        stray = [tag for tag in tags if tag.id not in used]
    operations, malformed = parse_operations([_as_operation(tag) for tag in counted.values()])
    events = (
        *(rejection.record() for rejection in malformed),
        *({"event": "rejected", "operation": _as_operation(tag), "reason": "not a bullet used"} for tag in stray),
    )
    return operations, events


def _as_operation(tag: BulletTag) -> Record:
    return {"type": "TAG", "id": tag.id, "tag": tag.tag}
