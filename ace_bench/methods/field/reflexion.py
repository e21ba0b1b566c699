"""Reflexion: verbal memory over the trials of one sample (arXiv 2303.11366)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import msgspec

from ace_bench.contexts.base import NoContext
from ace_bench.core.errors import RolloutFault
from ace_bench.core.method import FINAL_TRIAL, Arena, ContextUpdate, Learning, Span, Workload, exactly
from ace_bench.core.prompts import Transcript, send_within_limit
from ace_bench.core.replies import ask, ask_as_written, describe_unreadable
from ace_bench.core.settings import Count, Protocol
from ace_bench.core.types import GeneratorSpec, Labels, Record, Rollout, Step
from ace_bench.methods.base import BaseMethod, dropped_event, fault_event
from ace_bench.methods.field.attempts import ATTEMPT_FIELDS, SELF_JUDGE, about_sample, attempt_fields, judge

ROLE = "reflector"
TEMPLATE = "self_reflection"
_SEPARATOR = "\n\n"


class SelfReflection(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of a role that reflects on a failed trial."""

    reflection: str


def keep_note(reply: str, *, authors: bool, acts: bool) -> str:
    """Return a note as it is kept."""
    return reply.strip().replace("\n", "") if authors and not acts else reply


def show_notes(notes: Sequence[str], *, authors: bool, acts: bool) -> str:
    """Return notes as a trial is shown them; the authors' as on AlfWorld where attempts act, else as on HotPotQA."""
    if not authors:
        return _SEPARATOR.join(notes)
    if acts:
        return "\n".join(f"Trial {number}:\n{note.strip()}" for number, note in enumerate(notes))
    return "\n".join(f"- {note}" for note in notes)


def show_reflector(notes: Sequence[str], *, authors: bool, acts: bool) -> str:
    """Return notes as the reflector is shown them."""
    if not authors:
        return _SEPARATOR.join(notes)
    return "\n".join(f"Trial #{number}: {note}" for number, note in enumerate(notes)) if acts else ""


@dataclass(kw_only=True, eq=False)
class TrialMethod(BaseMethod[NoContext]):
    """Tries a sample several times and chooses the trial that counts; nothing passes from sample to sample."""

    generator = GeneratorSpec(template="reflexion", answer_format="json")
    scores_last_trial = True

    trials: Count

    def start(self, arena: Arena) -> NoContext:
        """Return an empty context."""
        return NoContext()


def chosen_event(first: Rollout, chosen: Rollout, trials: int) -> Record:
    """Describe which of the trials of a sample counts."""
    event = {"first": first.key, "last": chosen.key, "trials": trials}
    return {"sample": first.sample.id, "event": FINAL_TRIAL, **event}


@dataclass(kw_only=True, eq=False)
class Reflexion(TrialMethod):
    """Tries a sample up to ``trials`` times: after each failure the model reflects, and the next trial sees that.

    A trial is shown the last ``memory`` reflections on its sample. Nothing passes from sample to sample, so the method
    is for ``mode=online``. What a failure is, the verdict says that ``labels`` reveals, and where it is hidden the role
    ``self_judge``. Reference answers are never shown. The last trial counts, unless it could not be finished. With
    ``protocol=authors`` notes are text, and for answers the reflector is not shown the earlier ones.
    """

    roles = MappingProxyType({ROLE: (TEMPLATE,), SELF_JUDGE: (SELF_JUDGE,)})
    follows = "noahshinn/reflexion@218cf0e"

    memory: Count
    protocol: Protocol

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the reflector's and the judge's templates."""
        attempt = inputs | ATTEMPT_FIELDS
        return {TEMPLATE: attempt | {"reflections", "as_text"}, SELF_JUDGE: attempt}

    def update(
        self, context: NoContext, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[NoContext]:
        """Try the samples of a batch again where they failed, side by side."""
        tried = arena.map(lambda first: self._try_again(first, context, arena), rollouts)
        return ContextUpdate(context=context, events=tuple(event for events in tried for event in events))

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return from no retry to all trials."""
        retries = self.trials - 1
        samples = exactly(learning.samples)
        judged = {SELF_JUDGE: samples.times(Span(1, self.trials))} if arena.labels is Labels.NONE and retries else {}
        roles = {ROLE: samples.times(Span(0, retries)), **judged}
        return Workload(rollouts=samples.times(Span(1, self.trials)), roles=roles)

    def _try_again(self, first: Rollout, context: NoContext, arena: Arena) -> list[Record]:
        """Reflect and try again until a trial succeeds; returns the events, with the trial that counts."""
        events: list[Record] = []
        reflections: list[str] = []
        latest = counts = first
        for trial in range(1, self.trials):
            (judged,) = judge([latest], arena)
            events += judged.events
            if judged.success is not False:
                break
            reflection, reflection_events = self._reflect(latest, reflections, arena)
            events += reflection_events
            if reflection is None:
                break
            reflections.append(reflection)
            acts = latest.attempt.ended is not None
            notes = show_notes(reflections[-self.memory :], authors=self.protocol == "authors", acts=acts)
            latest = arena.rollout(first.sample, context, trial=trial, reflection=notes)
            counts = latest if latest.fault is None else counts
        return [*about_sample(first.sample, events), chosen_event(first, counts, latest.trial + 1)]

    def _reflect(self, rollout: Rollout, earlier: Sequence[str], arena: Arena) -> tuple[str | None, tuple[Record, ...]]:
        """Return a reflection on a failed trial, ``None`` if the call failed, and events."""
        acts, authors = rollout.attempt.ended is not None, self.protocol == "authors"
        notes = show_reflector(earlier[-self.memory :], authors=authors, acts=acts)

        def send(steps: Transcript) -> str:
            fields = {**attempt_fields(rollout, steps), "reflections": notes, "as_text": authors}
            lm, messages = arena.lm(ROLE, rollout.key), arena.prompts.render(TEMPLATE, fields)
            reply = ask_as_written(lm, messages) if authors else ask(lm, messages, SelfReflection).reflection
            return keep_note(reply, authors=authors, acts=acts)

        try:
            reflection, dropped = send_within_limit(Transcript(rollout.attempt.trajectory), send)
        except RolloutFault as error:
            failed = fault_event(ROLE, error.fault)
            if not (error.unreadable and arena.learns_unreadable):
                return None, (failed,)
            return describe_unreadable(error), (failed, {"event": "reflected"})
        return reflection, (*dropped_event(ROLE, dropped), {"event": "reflected"})
