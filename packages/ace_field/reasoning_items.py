"""ReasoningBank's memory as a context: titled items by the experience that taught them (arXiv 2509.25140)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from heapq import nlargest
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Meta

from ace_bench.contexts.base import ContextValue
from ace_bench.contexts.playbook.bullets import clean
from ace_bench.contexts.selection import NearestTexts
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import GeneratorSpec, Sample

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
class ReasoningItems(ContextValue):
    """All experiences in order; a sample is shown the items of the ``top_k`` whose questions are most like its own."""

    experiences: tuple[Experience, ...] = ()
    top_k: int = 1

    kind = "reasoning_items"
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
        return sum(nlargest(self.top_k, (one.tokens for one in self.experiences)))

    @property
    def size(self) -> int:
        """Number of items; those of a reply kept as written count as one."""
        return sum(len(one.items) or 1 for one in self.experiences)

    def with_experience(self, experience: Experience) -> ReasoningItems:
        """Return the memory with one more experience, the last."""
        return self.changed(experiences=(*self.experiences, experience))

    def select(self, sample: Sample, nearest: NearestTexts) -> ReasoningItems:
        """Return the experiences that the sample is shown, the most similar first."""
        questions = [one.question for one in self.experiences]
        found = nearest.find(questions, near=[sample.asked], top_k=self.top_k)
        return replace(self, experiences=tuple(self.experiences[place] for place, _ in reversed(found)))

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return the field ``memory_items``."""
        return {"memory_items": _SEPARATOR.join(one.text for one in self.experiences).strip() or NO_ITEMS}

    def shrink(self) -> ReasoningItems | None:
        """Return a version without the last experience, of a sample's the least similar; ``None`` without any."""
        return replace(self, experiences=self.experiences[:-1]) if self.experiences else None
