"""ReasoningBank as a step learner: retrieve, attempt, judge, extract what the attempt teaches, append."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec

from ace_bench.contexts.loading import load_kind
from ace_bench.contexts.playbook.embed import Embedder
from ace_bench.contexts.selection import NearestTexts
from ace_bench.core.errors import ConfigError, RolloutFault, SettingError
from ace_bench.core.method import Arena, ContextUpdate, Learning, Span, Workload, exactly
from ace_bench.core.prompts import Transcript, send_within_limit
from ace_bench.core.replies import ask
from ace_bench.core.settings import Count, Protocol, Text
from ace_bench.core.types import GeneratorSpec, Labels, Record, Rollout, Sample, Step
from ace_bench.methods.base import BaseMethod, dropped_event, fault_event
from ace_field.attempts import (
    ATTEMPT_FIELDS,
    SELF_JUDGE,
    Judged,
    attempt_fields,
    judge,
    judge_calls,
    valid_items,
)
from ace_field.reasoning_items import Experience, MemoryItem, ReasoningItems

ROLE = "extractor"
FIELDS = ATTEMPT_FIELDS | {"success", "reasons", "gold", "most", "markdown"}
"""Fields of the extractor's prompt, beside the sample's."""

_TEXT = {"type": "string"}
_ITEM = {
    "type": "object",
    "properties": {"title": _TEXT, "description": _TEXT, "content": _TEXT},
    "required": ["title", "description", "content"],
    "additionalProperties": False,
}


class ExtractorReply(msgspec.Struct, frozen=True, kw_only=True):
    """Memory items as the model wrote them; each is checked by itself."""

    reasoning: str = ""
    memory_items: Annotated[list[Any], msgspec.Meta(extra_json_schema={"items": _ITEM})]


@dataclass(frozen=True, kw_only=True)
class Extractor:
    """Asks what an attempt teaches: at most ``most`` checked items, or with ``as_written`` whatever is replied."""

    most: int
    as_written: bool

    def extract(
        self, judged: Judged, *, gold: str | None, arena: Arena
    ) -> tuple[Experience | None, tuple[Record, ...]]:
        """Return an attempt's experience with events; ``None`` where it teaches nothing.

        ``gold`` is the reference answer if the extractor may see it.
        """
        rollout, success = judged.rollout, bool(judged.success)
        own = {"success": success, "reasons": judged.reasons, "gold": gold}

        def send(steps: Transcript) -> ExtractorReply | str:
            return self.ask(ROLE, {**attempt_fields(rollout, steps), **own}, rollout.key, arena)

        try:
            reply, dropped = send_within_limit(Transcript(rollout.attempt.trajectory), send)
        except RolloutFault as error:
            return None, (fault_event(ROLE, error.fault),)
        experience, refused = self.read(reply, rollout.sample.asked, success=success)
        learnt = {"event": "extracted_success" if success else "extracted_failure"}
        events = (*dropped_event(ROLE, dropped), *refused, {**learnt, "items": [one.title for one in experience.items]})
        if not experience.text:
            return None, events
        return experience.measured(arena.counter("generator")), events

    def ask(self, template: str, fields: Mapping[str, Any], session: str, arena: Arena) -> ExtractorReply | str:
        """Return the reply to a template about attempts."""
        form = {"most": self.most, "markdown": self.as_written}
        messages, lm = arena.prompts.render(template, {**fields, **form}), arena.lm(ROLE, session)
        return lm(messages).text if self.as_written else ask(lm, messages, ExtractorReply)

    def read(self, reply: ExtractorReply | str, question: str, *, success: bool) -> tuple[Experience, list[Record]]:
        """Return the items of a reply as an experience, and an event for each that cannot be used."""
        if isinstance(reply, str):
            return Experience(question=question, success=success, items=(), written=reply), []
        clean = MemoryItem.cleaned
        items, refused = valid_items(reply.memory_items, MemoryItem, clean=clean, most=self.most, role=ROLE)
        return Experience(question=question, success=success, items=tuple(items)), refused


class ReasoningBank(BaseMethod[ReasoningItems]):
    """Learns from every attempt, the failed ones too; nothing is ever removed.

    ``top_k`` is the number of experiences whose items a sample is shown, ``most_items`` that of items from one attempt.
    With ``reference`` the extractor is shown the reference answer of a failed attempt, as ACE's Reflector is with
    ``labels=gold``; the paper shows it none. ``initial`` is a saved memory to start from. With ``protocol=authors``
    items are Markdown, kept as written, and ``most_items`` is named in the prompt alone.
    """

    generator = GeneratorSpec(template="reasoning_bank", answer_format="json")
    roles: Mapping[str, tuple[str, ...]] = MappingProxyType({ROLE: (ROLE,), SELF_JUDGE: (SELF_JUDGE,)})

    follows = "google-research/reasoning-bank@ed80611"

    def __init__(  # noqa: PLR0913 - settings, all keyword-only
        self,
        *,
        top_k: Count,
        most_items: Count,
        reference: bool,
        initial: Text | None,
        embedder: Embedder,
        protocol: Protocol,
    ) -> None:
        if reference and protocol == "authors":
            raise SettingError("protocol=authors shows the extractor no reference answers: use reference=false")
        if initial is not None and not Path(initial).is_file():
            raise SettingError(f"initial={initial} is not a file: give saved memory items, or null")
        self.top_k = top_k
        self.extractor = Extractor(most=most_items, as_written=protocol == "authors")
        self.reference = reference
        self._initial = initial
        self._embedder = embedder
        self._nearest = NearestTexts(embedder)

    @property
    def embedders(self) -> Sequence[Embedder]:
        """What finds similar questions."""
        return (self._embedder,)

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` where ``reference`` asks for what ``labels`` hides."""
        if self.reference and arena.labels is not Labels.GOLD:
            raise ConfigError(
                f"method.reference=true shows reference answers; labels={arena.labels.value} forbids that: use "
                "labels=gold"
            )

    def start(self, arena: Arena) -> ReasoningItems:
        """Return the empty memory, or the one to start from."""
        if self._initial is None:
            return ReasoningItems(top_k=self.top_k)
        loaded = load_kind(ReasoningItems, self._initial, arena=arena, required_by="ReasoningBank")
        measured = tuple(one.measured(arena.counter("generator")) for one in loaded.experiences)
        return replace(loaded, experiences=measured, top_k=self.top_k)

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the extractor's and of the judge's template."""
        return {ROLE: inputs | FIELDS, SELF_JUDGE: inputs | ATTEMPT_FIELDS}

    def select(self, context: ReasoningItems, sample: Sample) -> ReasoningItems:
        """Return the experiences nearest to the sample."""
        return context.select(sample, self._nearest)

    def update(
        self, context: ReasoningItems, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[ReasoningItems]:
        """Append what each attempt of a batch teaches; an attempt without a verdict teaches nothing."""
        memory, events = context, list[Record]()
        judged = judge(rollouts, arena)
        for one, (experience, told) in zip(judged, arena.map(lambda one: self._learn(one, arena), judged), strict=True):
            memory = memory if experience is None else memory.with_experience(experience)
            events += [{"sample": one.rollout.sample.id, **event} for event in (*one.events, *told)]
        return ContextUpdate(context=memory, events=tuple(events))

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return one rollout and one extraction a sample, none where the judge gives no verdict."""
        samples = exactly(learning.samples)
        judged = judge_calls(arena, learning.samples)
        roles = {ROLE: Span(0, samples.high) if judged else samples, **judged}
        return Workload(rollouts=samples, roles=roles, shown_samples=self.top_k)

    def _learn(self, one: Judged, arena: Arena) -> tuple[Experience | None, tuple[Record, ...]]:
        if one.success is None:
            return None, ({"event": "skipped"},)
        gold = one.rollout.feedback.gold if self.reference and not one.success else None
        return self.extractor.extract(one, gold=gold, arena=arena)
