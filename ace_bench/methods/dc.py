"""Dynamic Cheatsheet: a text that is rewritten as a whole, sample by sample (paper, sections 4.2 and C.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from ace_bench.contexts.cheatsheet import Cheatsheet, PastRollout
from ace_bench.contexts.loading import load_kind
from ace_bench.contexts.selection import NearestTexts
from ace_bench.core.errors import SettingError
from ace_bench.core.method import Arena, ContextUpdate, Learning, Workload, exactly
from ace_bench.core.prompts import Sized, Transcript
from ace_bench.core.replies import ask_as_written
from ace_bench.core.settings import Count, Protocol, Text, Whole
from ace_bench.core.types import GeneratorSpec, Record, Rollout, Sample, Step
from ace_bench.methods.base import CURATOR, BaseMethod, ask_role
from ace_bench.playbook.embeddings import Embedder

_PAIRS = "cheatsheet_pairs"
"""Template of the attempts that are a cheatsheet by themselves."""
_OPEN, _CLOSE = "<cheatsheet>", "</cheatsheet>"

Shown = TypeVar("Shown", bound=Sized)


def between_tags(reply: str) -> str | None:
    """Return what stands between the last pair of tags; ``None`` if a tag is missing or nothing is between them.

    A reply that was cut off lacks its closing tag, and would lose the end of the cheatsheet for good.
    """
    before, closed, _ = reply.rpartition(_CLOSE)
    _, opened, text = before.rpartition(_OPEN)
    return text.strip() or None if closed and opened else None


def behind_first_tag(reply: str) -> str | None:
    """Return the text between the first opening tag and the next closing tag, as the authors read it."""
    _, opened, text = reply.partition(_OPEN)
    return text.partition(_CLOSE)[0].strip() if opened else None


_READERS = {"ours": between_tags, "authors": behind_first_tag}
_ATTEMPT = frozenset(("trajectory", "reasoning", "reply", "answer", "feedback", "gold"))
"""Fields that an attempt fills, beside its sample's."""


class DynamicCheatsheet(BaseMethod[Cheatsheet]):
    """What both modes share. ``code_runs`` is how often an attempt may have code run (official: 4; 0: never).

    ``initial`` is a saved cheatsheet to start from. Agents that act in an environment of their own, as on AppWorld,
    ignore ``code_runs``. With ``protocol=authors`` a cut-off reply is also a cheatsheet.
    """

    draws_from_seed = False
    follows = "suzgunmirac/dynamic-cheatsheet@1cf258c"

    def __init__(self, *, code_runs: Whole, initial: Text | None, protocol: Protocol):
        if initial is not None and not Path(initial).is_file():
            raise SettingError(f"initial={initial} is not a file: give a saved cheatsheet, or null")
        self.generator = GeneratorSpec(template="cheatsheet", answer_format="xml", code_runs=code_runs)
        self._initial = initial
        self._authors = protocol == "authors"
        self._read = _READERS[protocol]

    def start(self, arena: Arena) -> Cheatsheet:
        """Return the empty cheatsheet, or the one to start from."""
        if self._initial is None:
            return Cheatsheet()
        loaded = load_kind(Cheatsheet, self._initial, arena=arena, required_by="Dynamic Cheatsheet")
        return loaded.rewritten(loaded.text, count=arena.counter("generator"))

    def rewrite(
        self,
        cheatsheet: Cheatsheet,
        shown: Shown,
        fields: Callable[[Shown], Mapping[str, Any]],
        *,
        session: str,
        arena: Arena,
    ) -> ContextUpdate[Cheatsheet]:
        """Ask for a whole new cheatsheet; if the reply holds none, the old one stays with an event.

        ``fields`` are the prompt's other fields. If a prompt is too long, they show less of ``shown``.
        """

        def send(part: Shown) -> tuple[str | None]:
            prompt_values = {"cheatsheet": cheatsheet.text, "labels": arena.labels.value, **fields(part)}
            lm, messages = arena.lm(CURATOR, session), arena.prompts.render(self.roles[CURATOR][0], prompt_values)
            reply = ask_as_written(lm, messages) if self._authors else lm(messages).text
            text = self._read(reply)
            return (self.make_unwritten(fields(part), arena) if text is None else text,)

        written, events = ask_role(CURATOR, shown, send)
        if written is None:
            return ContextUpdate(context=cheatsheet, events=events)
        (text,) = written
        if text is None:
            event: Record = {"event": "kept", "reason": "no cheatsheet in the reply"}
        else:
            cheatsheet = cheatsheet.rewritten(text, count=arena.counter("generator"))
            event = {"event": "rewritten", "tokens": cheatsheet.tokens}
        return ContextUpdate(context=cheatsheet, events=(*events, event))

    def make_unwritten(self, fields: Mapping[str, Any], arena: Arena) -> str | None:
        """Return the cheatsheet where the reply holds none; ``None``: the old one stays."""
        return None


class Cumulative(DynamicCheatsheet):
    """DC-CU, the mode of the paper: the curator rewrites the cheatsheet after each sample."""

    roles: Mapping[str, tuple[str, ...]] = MappingProxyType({CURATOR: ("cheatsheet_curator",)})

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the curator's template."""
        return {"cheatsheet_curator": inputs | context_fields | _ATTEMPT | {"labels"}}

    def update(
        self, context: Cheatsheet, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[Cheatsheet]:
        """Rewrite once for each sample of a batch, one after the other; a rollout that failed teaches nothing."""
        cheatsheet = context
        events: list[Record] = []
        for rollout in rollouts:
            if rollout.fault is None:
                steps = Transcript(rollout.attempt.trajectory)
                fields = partial(_attempt_fields, rollout)
                update = self.rewrite(cheatsheet, steps, fields, session=rollout.key, arena=arena)
            else:
                update = ContextUpdate(context=cheatsheet, events=({"event": "skipped"},))
            cheatsheet = update.context
            events += [{"sample": rollout.sample.id, **event} for event in update.events]
        return ContextUpdate(context=cheatsheet, events=tuple(events))

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return one rollout and one rewriting a sample; code that the generator has run takes more of its calls."""
        del arena
        samples = exactly(learning.samples)
        return Workload(rollouts=samples, roles={CURATOR: samples}, writers=(CURATOR,))


class Retrieval(DynamicCheatsheet):
    """DC-RS: before each sample the curator writes a cheatsheet from the last one and the most similar attempts so far.

    ``retrieved`` is how many it is shown, by the likeness of their questions. It is made for ``mode=online``. Offline
    it tests the cheatsheet that was written before the last training sample. With ``protocol=authors`` the curator is
    asked before the first sample, too, and where its reply has no tag the attempts are the cheatsheet.
    """

    roles: Mapping[str, tuple[str, ...]] = MappingProxyType({CURATOR: ("cheatsheet_synthesis", "cheatsheet_episode")})

    def __init__(
        self, *, code_runs: Whole, initial: Text | None, protocol: Protocol, retrieved: Count, embedder: Embedder
    ):
        super().__init__(code_runs=code_runs, initial=initial, protocol=protocol)
        if self._authors:
            self.roles = MappingProxyType({CURATOR: (*self.roles[CURATOR], _PAIRS)})
        self._retrieved = retrieved
        self._embedder = embedder
        self._questions = NearestTexts(embedder)

    @property
    def embedders(self) -> Sequence[Embedder]:
        """What tells how similar two questions are."""
        return (self._embedder,)

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the curator's template, and of the one that words an attempt for it."""
        return {
            "cheatsheet_synthesis": inputs | context_fields | {"labels", "episodes", "retrieved"},
            "cheatsheet_episode": inputs | _ATTEMPT,
            _PAIRS: inputs | {"episodes", "retrieved"},
        }

    def prepare(
        self, context: Cheatsheet, samples: Sequence[Sample], step: Step, arena: Arena
    ) -> ContextUpdate[Cheatsheet]:
        """Write the cheatsheet for these samples; without earlier attempts there is nothing to write it from."""
        cheatsheet = context
        if not cheatsheet.episodes and not self._authors:
            return ContextUpdate(context=cheatsheet)
        inputs = {**samples[0].inputs, "question": "\n\n".join(sample.inputs["question"] for sample in samples)}

        def fields(retrieved: _Retrieved) -> Mapping[str, Any]:
            return {
                **inputs,
                "episodes": [similar.episode.text for similar in retrieved.similar],
                "retrieved": retrieved.similar,
            }

        update = self.rewrite(
            cheatsheet,
            _Retrieved(self._find_nearest(cheatsheet.episodes, [sample.asked for sample in samples])),
            fields,
            session=f"prepare/{samples[0].id}/{cheatsheet.digest[:12]}/{step.index}",
            arena=arena,
        )
        return ContextUpdate(
            context=update.context, events=tuple({"sample": samples[0].id, **event} for event in update.events)
        )

    def update(
        self, context: Cheatsheet, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[Cheatsheet]:
        """Remember the attempts, with what ``labels`` shows of the truth; no call is made."""
        cheatsheet = context
        events: list[Record] = []
        for rollout in rollouts:
            done = rollout.fault is None
            if done:
                cheatsheet = cheatsheet.with_rollout(_past_rollout(rollout, arena))
            events.append({"sample": rollout.sample.id, "event": "remembered" if done else "skipped"})
        return ContextUpdate(context=cheatsheet, events=tuple(events))

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return one rollout a sample, and one rewriting before each step, the authors' also before the first."""
        del arena
        prepared = exactly(learning.steps if self._authors else max(0, learning.steps - 1))
        return Workload(rollouts=exactly(learning.samples), roles={CURATOR: prepared}, writers=(CURATOR,))

    def make_unwritten(self, fields: Mapping[str, Any], arena: Arena) -> str | None:
        """Return what the authors' curator was shown; ``None`` without ``protocol=authors``."""
        return arena.prompts.render(_PAIRS, fields)[-1].content if self._authors else None

    def _find_nearest(self, episodes: Sequence[PastRollout], questions: Sequence[str]) -> tuple[_Similar, ...]:
        """Return the attempts most like any of the questions, the most similar last."""
        earlier_questions = [episode.question for episode in episodes]
        neighbors = self._questions.find(earlier_questions, near=questions, top_k=self._retrieved)
        return tuple(_Similar(episodes[index], similarity) for index, similarity in neighbors)


class _Similar(NamedTuple):
    """An earlier attempt, with the cosine similarity of its question to the next question, as templates show them."""

    episode: PastRollout
    similarity: float


@dataclass(frozen=True)
class _Retrieved:
    """Earlier attempts, the most similar last; the least similar gives way first."""

    similar: tuple[_Similar, ...]

    @property
    def size(self) -> int:
        return len(self.similar)

    def shrink(self) -> _Retrieved | None:
        return _Retrieved(self.similar[1:]) if self.size > 1 else None


def _attempt_fields(rollout: Rollout, steps: Transcript) -> dict[str, Any]:
    return {
        **rollout.sample.inputs,
        "trajectory": steps.text if steps.turns else "",
        "reasoning": rollout.attempt.reasoning,
        "reply": rollout.attempt.reply,
        "answer": rollout.attempt.answer,
        "feedback": rollout.feedback.message,
        "gold": rollout.feedback.gold,
    }


def _past_rollout(rollout: Rollout, arena: Arena) -> PastRollout:
    fields = _attempt_fields(rollout, Transcript(rollout.attempt.trajectory))
    return PastRollout(
        question=rollout.sample.asked,
        output=arena.prompts.render("cheatsheet_episode", fields)[-1].content,
        feedback=rollout.feedback.message,
        reference=rollout.feedback.gold or "",
    )
