"""Evo-Memory's baselines (arXiv 2511.20857): whole attempts as experiences, all, the nearest, or refined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import msgspec

from ace_bench.contexts.selection import NearestTexts
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.method import Arena, ContextUpdate, Learning, Span, Workload, exactly
from ace_bench.core.replies import ask
from ace_bench.core.settings import Count, Share
from ace_bench.core.types import GeneratorSpec, Record, Rollout, Sample, Step
from ace_bench.methods.base import ask_role
from ace_field.attempts import NearestMethod, NearestValue, about_sample, own_answer, steps_text
from ace_field.long_context import SEPARATOR, History, HistoryMethod, Pair, as_text, room_in

ROLE = "refiner"
TEMPLATE = "refine"

_MOST_NOTE = 500
_SPEC = GeneratorSpec(template="experienced", answer_format="json")


class Thoughts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was thought of a sample before its attempt."""

    sample: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Experiences(History, NearestValue):
    """Attempts, the oldest first. A prompt shows the ``top_k`` nearest by question, the most similar last.

    ``None`` shows the newest that fit into ``room``. ``thoughts`` are those on the samples to be attempted.
    """

    top_k: int | None = None
    thoughts: tuple[Thoughts, ...] = ()

    kind: ClassVar[str] = "experiences"
    generator = _SPEC
    optional = "thoughts"

    @property
    def tokens(self) -> int:
        """The most that a prompt can show, in tokens."""
        return super().tokens if self.top_k is None else sum(nlargest(self.top_k, (one.tokens for one in self.pairs)))

    def select(self, sample: Sample, nearest: NearestTexts) -> Self:
        """Return the attempts and thoughts that the sample is shown."""
        thoughts = tuple(one for one in self.thoughts if one.sample == sample.id)
        if self.top_k is None:
            return replace(self.visible(), thoughts=thoughts)
        return replace(self, pairs=tuple(self.find_nearest(sample, nearest, self.top_k)), thoughts=thoughts)

    def render(self, sample: Sample) -> Mapping[str, Any]:
        """Return the fields ``past_answers`` and ``thoughts``, "" without any."""
        thoughts = SEPARATOR.join(one.text for one in self.thoughts)
        return {"past_answers": SEPARATOR.join(pair.text for pair in self.pairs), "thoughts": thoughts}


class ExperienceMethod(HistoryMethod[Experiences]):
    """Keeps attempts with their reasoning, or an agent's steps, and with what ``labels`` reveals.

    That is the verdict and what the environment showed, never a reference answer.
    """

    generator = _SPEC

    def text(self, rollout: Rollout, context: Experiences) -> str | None:
        """Return an attempt as text; ``None`` for one that failed or has no answer."""
        attempt, feedback = rollout.attempt, rollout.feedback
        answer = own_answer(attempt)
        if answer is None or rollout.fault is not None:
            return None
        return as_text(
            rollout.sample,
            answer if attempt.ended is None else f"\n{steps_text(attempt)}",
            reasoning=attempt.reasoning.strip(),
            feedback=feedback.message.removesuffix(feedback.report or "").strip(),
        )


@dataclass(kw_only=True, eq=False)
class FullHistory(ExperienceMethod):
    """Shows the newest attempts that take at most the share ``fill`` of a known context length."""

    fill: Share

    def start(self, arena: Arena) -> Experiences:
        """Return no attempts."""
        return Experiences(room=room_in(arena, self.fill))


@dataclass(kw_only=True, eq=False)
class ExpRag(NearestMethod[Experiences], ExperienceMethod):
    """Shows each sample the ``top_k`` attempts whose questions are most like its own."""

    def start(self, arena: Arena) -> Experiences:
        """Return no attempts."""
        return Experiences(top_k=self.top_k)

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return one rollout a sample."""
        return replace(super().workload(arena, learning), shown_samples=self.top_k)


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What to take from the attempt with this number."""

    number: int
    note: str


class RefinerReply(msgspec.Struct, frozen=True, kw_only=True):
    """One operation: a thought, attempts to ``drop`` and ``notes`` on others, or nothing more before the attempt."""

    operation: Literal["think", "refine", "act"]
    thought: str = ""
    drop: list[int] = []
    notes: list[Note] = []


@dataclass(frozen=True)
class _Refined:
    """What a sample is shown, after some operations; ``shown`` has ``None`` if an attempt was dropped.

    A prompt leaves out the first ``hidden``, which are the least similar.
    """

    shown: tuple[Pair | None, ...]
    thoughts: tuple[str, ...] = ()
    events: tuple[Record, ...] = ()
    hidden: int = 0

    @property
    def size(self) -> int:
        """Number of attempts that a prompt does not leave out."""
        return len(self.shown) - self.hidden

    def shrink(self) -> _Refined | None:
        """Return a version that leaves out one more attempt."""
        return replace(self, hidden=self.hidden + 1) if self.size > 1 else None

    @property
    def text(self) -> str:
        """The attempts with their numbers."""
        numbered = list(enumerate(self.shown, start=1))[self.hidden :]
        return SEPARATOR.join(f"[{number}]\n{pair.text}" for number, pair in numbered if pair is not None)

    def after(self, reply: RefinerReply, count: TokenCounter) -> _Refined:
        """Return it after an operation; numbers that are not shown are left out of account, with an event."""
        if reply.operation == "think":
            thought = {"event": "thought"}
            return replace(self, thoughts=(*self.thoughts, reply.thought.strip()), events=(*self.events, thought))
        known = {number for number, pair in enumerate(self.shown, start=1) if pair is not None}
        notes = {one.number: " ".join(one.note.split())[:_MOST_NOTE] for one in reply.notes}
        unknown = sorted({*reply.drop, *notes} - known)
        found = list(self.shown)
        for number in known:
            pair = found[number - 1]
            if number in reply.drop:
                found[number - 1] = None
            elif pair is not None and notes.get(number):
                before, _, last = pair.text.rpartition("\n")
                text = f"{before if last.startswith('Note: ') else pair.text}\nNote: {notes[number]}"
                found[number - 1] = Pair(pair.question, text, count(text + SEPARATOR))
        refined: Record = {"event": "refined", "dropped": len(known & {*reply.drop}), "unknown": unknown}
        return replace(self, shown=tuple(found), events=(*self.events, refined))


@dataclass(kw_only=True, eq=False)
class ReMem(ExpRag):
    """Thinks of a sample and refines the experiences found for it, in at most ``rounds`` operations, before it acts.

    The role ``refiner`` chooses each operation. What it drops leaves the memory, and its notes stay.
    """

    roles = MappingProxyType({ROLE: (TEMPLATE,)})

    rounds: Count

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the refiner's template."""
        return {TEMPLATE: inputs | {"past_answers", "thoughts", "left"}}

    def prepare(
        self, context: Experiences, samples: Sequence[Sample], step: Step, arena: Arena
    ) -> ContextUpdate[Experiences]:
        """Think and refine for each sample, side by side, and change the memory accordingly."""
        chosen = [context.select(sample, self._nearest).pairs for sample in samples]

        def refine(place: int) -> _Refined:
            return self._refine(samples[place], chosen[place], f"{ROLE}/{samples[place].id}/{step.index}", arena)

        refined = arena.map(refine, range(len(samples)))
        changes = {
            before.question: after
            for pairs, one in zip(chosen, refined, strict=True)
            for before, after in zip(pairs, one.shown, strict=True)
            if before is not after
        }
        pairs = (changes.get(pair.question, pair) for pair in context.pairs)
        thoughts, events = list[Thoughts](), list[Record]()
        for sample, one in zip(samples, refined, strict=True):
            thoughts += [Thoughts(sample=sample.id, text=SEPARATOR.join(one.thoughts))] if one.thoughts else []
            events += about_sample(sample, one.events)
        kept = context.changed(pairs=tuple(pair for pair in pairs if pair is not None), thoughts=tuple(thoughts))
        return ContextUpdate(context=kept, events=tuple(events))

    def update(
        self, context: Experiences, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[Experiences]:
        """Append the attempts of a batch; thoughts are for these alone."""
        return super().update(context.changed(thoughts=()), rollouts, step, arena)

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return also one to all operations a sample."""
        calls = exactly(learning.samples).times(Span(1, self.rounds))
        return replace(super().workload(arena, learning), roles={ROLE: calls})

    def _refine(self, sample: Sample, pairs: Sequence[Pair], session: str, arena: Arena) -> _Refined:
        lm, count = arena.lm(ROLE, session), arena.counter("generator")
        state = _Refined(tuple(pairs))
        for left in range(self.rounds, 0, -1):

            def send(shown: _Refined, left: int = left) -> RefinerReply:
                thoughts = SEPARATOR.join(shown.thoughts)
                fields = {**sample.inputs, "past_answers": shown.text, "thoughts": thoughts, "left": left}
                return ask(lm, arena.prompts.render(TEMPLATE, fields), RefinerReply)

            reply, events = ask_role(ROLE, state, send)
            state = replace(state, events=(*state.events, *events))
            if reply is None or reply.operation == "act":
                break
            state = state.after(reply, count)
        return state
