"""ReasoningBank (arXiv 2509.25140): titled items by the experience that taught them, and what learns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from ace_bench.contexts.loading import load_kind
from ace_bench.contexts.selection import NearestTexts
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.method import Arena, ContextUpdate, Learning, Span, Workload, exactly
from ace_bench.core.prompts import Transcript
from ace_bench.core.replies import ask, ask_as_written
from ace_bench.core.settings import Count, Protocol, Text
from ace_bench.core.types import GeneratorSpec, Labels, Record, Rollout, Sample, Step
from ace_bench.methods.base import ask_role
from ace_bench.methods.field.attempts import (
    ATTEMPT_FIELDS,
    SELF_JUDGE,
    Judged,
    NearestMethod,
    NearestValue,
    about_sample,
    attempt_fields,
    check_saved,
    judge,
    judge_calls,
    valid_items,
)
from ace_bench.playbook.bullets import clean

NO_ITEMS = "(none)"
_SEPARATOR = "\n\n"


class MemoryItem(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy, or a lesson of a failure. The bounds keep a reply that runs on from filling later prompts."""

    title: Annotated[str, Meta(min_length=1, max_length=200)]
    description: Annotated[str, Meta(max_length=1_000)] = ""
    content: Annotated[str, Meta(min_length=1, max_length=8_000)]

    @property
    def text(self) -> str:
        """The item as a prompt shows it."""
        return "\n".join(filter(None, (f"## {self.title}", self.description, self.content)))

    def cleaned(self) -> MemoryItem:
        """Return the item without control characters and white space around its texts, which may leave nothing."""
        return MemoryItem(title=clean(self.title), description=clean(self.description), content=clean(self.content))


class Experience(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one attempt taught: its question, whether it succeeded, its items and their length in tokens.

    ``written`` are the items as the model wrote them, where they are kept so; ``items`` is then empty.
    """

    question: str
    success: bool
    items: tuple[MemoryItem, ...]
    written: str = ""
    tokens: int = 0

    @property
    def text(self) -> str:
        """The items as a prompt shows them."""
        return self.written or _SEPARATOR.join(item.text for item in self.items)

    def measured(self, count: TokenCounter) -> Experience:
        """Return the experience with its length, including the blank line after it."""
        return msgspec.structs.replace(self, tokens=count(self.text + _SEPARATOR))


@dataclass(frozen=True, kw_only=True)
class ReasoningItems(NearestValue):
    """All experiences in order; a sample is shown the items of the ``top_k`` whose questions are most like its own."""

    experiences: tuple[Experience, ...] = ()
    top_k: int = 1

    kind: ClassVar[str] = "reasoning_items"
    generator = GeneratorSpec(template="reasoning_bank", answer_format="json")
    uses = MappingProxyType(
        {
            "memory_items": "Strategies and warnings from earlier work on similar tasks follow. Use those that "
            "apply and leave the others aside."
        }
    )
    grows = "experiences"

    @property
    def tokens(self) -> int:
        """The most that a prompt can show: the sum over the ``top_k`` longest experiences."""
        return sum(nlargest(self.top_k, (experience.tokens for experience in self.experiences)))

    @property
    def size(self) -> int:
        """Number of items; a reply kept as written counts as one."""
        return sum(len(experience.items) or 1 for experience in self.experiences)

    def with_experience(self, experience: Experience) -> ReasoningItems:
        """Return the memory with one more experience, the last."""
        return self.changed(experiences=(*self.experiences, experience))

    def select(self, sample: Sample, nearest: NearestTexts) -> ReasoningItems:
        """Return the experiences that the sample is shown, the most similar first."""
        return replace(self, experiences=tuple(self.find_nearest(sample, nearest, self.top_k)[::-1]))

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return the field ``memory_items``."""
        return {"memory_items": _SEPARATOR.join(experience.text for experience in self.experiences).strip() or NO_ITEMS}

    def shrink(self) -> ReasoningItems | None:
        """Return a version without the last experience, of a sample's the least similar; ``None`` without any."""
        return replace(self, experiences=self.experiences[:-1]) if self.experiences else None


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
    memory_items: Annotated[list[Any], Meta(extra_json_schema={"items": _ITEM})]


@dataclass(kw_only=True, eq=False)
class ReasoningBank(NearestMethod[ReasoningItems]):
    """Learns from every attempt, the failed ones too; nothing is ever removed.

    A sample is shown the items of ``top_k`` experiences; an attempt gives at most ``most_items`` items.
    With ``reference`` the extractor is shown the reference answer of a failed attempt, as ACE's Reflector is with
    ``labels=gold``; the paper shows it none. ``initial`` is a saved memory to start from. With ``protocol=authors``
    items are Markdown, kept as written, and ``most_items`` is named in the prompt alone.
    """

    generator = GeneratorSpec(template="reasoning_bank", answer_format="json")
    roles = MappingProxyType({ROLE: (ROLE,), SELF_JUDGE: (SELF_JUDGE,)})
    follows = "google-research/reasoning-bank@ed80611"

    most_items: Count
    reference: bool
    initial: Text | None
    protocol: Protocol

    def __post_init__(self) -> None:
        """Raise ``SettingError`` for settings that exclude each other."""
        super().__post_init__()
        if self.reference and self.protocol == "authors":
            raise SettingError("protocol=authors shows the extractor no reference answers: use reference=false")
        check_saved(self.initial, "memory items")

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` if ``reference`` asks for what ``labels`` hides."""
        if self.reference and arena.labels is not Labels.GOLD:
            raise ConfigError(
                f"method.reference=true shows reference answers; labels={arena.labels.value} forbids that: use "
                "labels=gold"
            )

    def start(self, arena: Arena) -> ReasoningItems:
        """Return the empty memory, or the one to start from."""
        if self.initial is None:
            return ReasoningItems(top_k=self.top_k)
        loaded = load_kind(ReasoningItems, self.initial, arena=arena, required_by="ReasoningBank")
        measured = tuple(experience.measured(arena.counter("generator")) for experience in loaded.experiences)
        return replace(loaded, experiences=measured, top_k=self.top_k)

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the extractor's and of the judge's template."""
        return {ROLE: inputs | FIELDS, SELF_JUDGE: inputs | ATTEMPT_FIELDS}

    def update(
        self, context: ReasoningItems, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[ReasoningItems]:
        """Append what the attempts at each sample of a batch teach."""
        memory, events = context, list[Record]()
        judged = judge(rollouts, arena)
        learnt = arena.map(lambda attempt: self._extract(attempt, arena), judged)
        for attempt, (experience, attempt_events) in zip(judged, learnt, strict=True):
            memory = memory if experience is None else memory.with_experience(experience)
            events += about_sample(attempt.rollout.sample, (*attempt.events, *attempt_events))
        return ContextUpdate(context=memory, events=tuple(events))

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return one rollout and one extraction a sample, none where the judge gives no verdict."""
        samples = exactly(learning.samples)
        judged = judge_calls(arena, learning.samples)
        roles = {ROLE: Span(0, samples.high) if judged else samples, **judged}
        return Workload(rollouts=samples, roles=roles, shown_samples=self.top_k)

    def _extract(self, judged: Judged, arena: Arena) -> tuple[Experience | None, tuple[Record, ...]]:
        """Return what an attempt teaches, ``None`` for nothing, and events; one without a verdict teaches nothing.

        That is the checked items of the reply, or with ``protocol=authors`` whatever is replied; events also say what
        was refused. The reference answer is shown where ``reference`` allows it and the attempt failed.
        """
        if judged.success is None:
            return None, ({"event": "skipped"},)
        rollout, as_written = judged.rollout, self.protocol == "authors"
        gold = rollout.feedback.gold if self.reference and not judged.success else None
        outcome = {"success": judged.success, "reasons": judged.reasons, "gold": gold}
        form = {"most": self.most_items, "markdown": as_written}
        lm = arena.lm(ROLE, rollout.key)

        def send(steps: Transcript) -> ExtractorReply | str:
            messages = arena.prompts.render(ROLE, {**attempt_fields(rollout, steps), **outcome, **form})
            return ask_as_written(lm, messages) if as_written else ask(lm, messages, ExtractorReply)

        reply, events = ask_role(ROLE, Transcript(rollout.attempt.trajectory), send)
        if reply is None:
            return None, events
        items, refused, written = list[MemoryItem](), list[Record](), ""
        if isinstance(reply, str):
            written = reply
        else:
            clean, most = MemoryItem.cleaned, self.most_items
            items, refused = valid_items(reply.memory_items, MemoryItem, clean=clean, most=most, role=ROLE)
        learnt = "extracted_success" if judged.success else "extracted_failure"
        events = (*events, *refused, {"event": learnt, "items": [item.title for item in items]})
        experience = Experience(
            question=rollout.sample.asked, success=judged.success, items=tuple(items), written=written
        )
        return (experience.measured(arena.counter("generator")) if experience.text else None), events
