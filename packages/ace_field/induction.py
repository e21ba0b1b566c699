"""The inducer: it turns solved tasks into workflows (arXiv 2409.07429)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec

from ace_bench.core.arena import Arena
from ace_bench.core.errors import RolloutFault
from ace_bench.core.method import ContextUpdate
from ace_bench.core.prompt_limit import send_within_limit
from ace_bench.core.replies import ask
from ace_bench.core.transcript import Transcript
from ace_bench.core.types import Rollout, Sample
from ace_field.attempts import attempt_fields, dropped_event, fault_event
from ace_field.replied_items import valid_items
from ace_field.workflows import Workflow, Workflows

ROLE = "inducer"
EXPERIENCE = "experience"
"""Template that words a solved task for the inducer."""

_MOST = 30
"""The most workflows taken from one reply."""
_TEXT = {"type": "string"}
_WORKFLOW = {
    "type": "object",
    "properties": {"title": _TEXT, "description": _TEXT, "steps": {"type": "array", "items": _TEXT}},
    "required": ["title", "description", "steps"],
    "additionalProperties": False,
}


class InducerReply(msgspec.Struct, frozen=True, kw_only=True):
    """Workflows as the model wrote them; each is checked by itself."""

    reasoning: str = ""
    workflows: Annotated[list[Any], msgspec.Meta(extra_json_schema={"items": _WORKFLOW})]


@dataclass(frozen=True, kw_only=True)
class Solved:
    """A solved task: an attempt with as many of its outputs as fit, or a sample with its reference answer."""

    sample: Sample
    steps: Transcript
    rollout: Rollout | None = None
    reference: str = ""

    @classmethod
    def attempt(cls, rollout: Rollout) -> Solved:
        """Return a successful attempt."""
        return cls(sample=rollout.sample, rollout=rollout, steps=Transcript(rollout.attempt.trajectory))

    @classmethod
    def example(cls, sample: Sample, reference: str) -> Solved:
        """Return a sample with its reference answer."""
        return cls(sample=sample, steps=Transcript(()), reference=reference)

    def text(self, arena: Arena) -> str:
        """Return the task and its solution in the words of the template."""
        if self.rollout is None:
            fields = {"trajectory": "", "reasoning": "", "answer": self.reference, "observed": ""}
            return arena.prompts.render(EXPERIENCE, {**self.sample.inputs, **fields})[-1].content
        return arena.prompts.render(EXPERIENCE, attempt_fields(self.rollout, self.steps))[-1].content


@dataclass(frozen=True)
class _Shown:
    """The solved tasks in a prompt; outputs of the longest attempt give way first, then the last tasks."""

    solved: tuple[Solved, ...]

    @property
    def size(self) -> int:
        return sum(1 + one.steps.size for one in self.solved)

    def shrink(self) -> _Shown | None:
        place = max(range(len(self.solved)), key=lambda number: self.solved[number].steps.size)
        steps = self.solved[place].steps.shrink()
        if steps is not None:
            shorter = replace(self.solved[place], steps=steps)
            return _Shown((*self.solved[:place], shorter, *self.solved[place + 1 :]))
        return _Shown(self.solved[:-1]) if len(self.solved) > 1 else None


def induce(memory: Workflows, solved: Sequence[Solved], *, arena: Arena, session: str) -> ContextUpdate[Workflows]:
    """Ask for the workflows of solved tasks and add those that are new; one that cannot be used is an event."""

    def send(shown: _Shown) -> InducerReply:
        texts = [one.text(arena) for one in shown.solved]
        fields = {"background": solved[0].sample.inputs["background"], "experiences": texts}
        return ask(arena.lm(ROLE, session), arena.prompts.render(ROLE, fields), InducerReply)

    try:
        reply, dropped = send_within_limit(_Shown(tuple(solved)), send)
    except RolloutFault as error:
        return ContextUpdate(context=memory, events=(fault_event(ROLE, error.fault),))
    count = arena.counter("generator")
    found, refused = valid_items(
        reply.workflows, Workflow, clean=lambda one: one.measured(count), most=_MOST, role=ROLE
    )
    grown = memory.with_new(found)
    added = [one.title for one in grown.items[len(memory.items) :]]
    induced = {"event": "induced", "from": len(solved), "workflows": added, "known": len(found) - len(added)}
    return ContextUpdate(context=grown, events=(*dropped_event(ROLE, dropped), *refused, induced))
