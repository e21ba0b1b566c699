"""The extractor: it writes down what an attempt teaches, whether it succeeded or failed."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ace_bench.core.arena import Arena
from ace_bench.core.errors import RolloutFault
from ace_bench.core.prompt_limit import send_within_limit
from ace_bench.core.replies import ask
from ace_bench.core.transcript import Transcript
from ace_bench.core.types import Record, Rollout
from ace_field.attempts import ATTEMPT_FIELDS, attempt_fields, dropped_event, fault_event
from ace_field.reasoning_items import Experience, MemoryItem
from ace_field.replied_items import valid_items

ROLE = "extractor"
FIELDS = ATTEMPT_FIELDS | {"success", "gold", "most"}
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


def extract(
    rollout: Rollout, *, success: bool, gold: str | None, most: int, arena: Arena
) -> tuple[Experience | None, tuple[Record, ...]]:
    """Ask for at most ``most`` items of an attempt, and return them with events; ``None`` where there are none.

    ``gold`` is the reference answer if the extractor may see it.
    """

    def send(steps: Transcript) -> ExtractorReply:
        fields = {**attempt_fields(rollout, steps), "success": success, "gold": gold, "most": most}
        return ask(arena.lm(ROLE, rollout.key), arena.prompts.render(ROLE, fields), ExtractorReply)

    try:
        reply, dropped = send_within_limit(Transcript(rollout.attempt.trajectory), send)
    except RolloutFault as error:
        return None, (fault_event(ROLE, error.fault),)
    items, refused = valid_items(reply.memory_items, MemoryItem, clean=MemoryItem.cleaned, most=most, role=ROLE)
    titles = [item.title for item in items]
    learnt = {"event": "extracted_success" if success else "extracted_failure", "items": titles}
    events = (*dropped_event(ROLE, dropped), *refused, learnt)
    if not items:
        return None, events
    experience = Experience(question=rollout.sample.inputs["question"], success=success, items=tuple(items))
    return experience.measured(arena.counter("generator")), events
