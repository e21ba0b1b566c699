"""ACE's own Reflector and Curator for the runs of a LangChain agent: the roles and prompts of ``method=ace``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import msgspec

from ace_bench.ace.ace import Curator, Reflector
from ace_bench.ace.editing import Insight, PlaybookEditor
from ace_bench.contrib.langchain.entries import Refine
from ace_bench.core.backbones import Backbone, Lm, TokenCounter
from ace_bench.core.encoding import convert
from ace_bench.core.errors import RolloutFault
from ace_bench.core.method import Arena
from ace_bench.core.prompts import Prompts, estimate_tokens
from ace_bench.core.replies import takes_tools
from ace_bench.core.resources import prompts_folder
from ace_bench.core.thoughts import cut_thoughts, require_answer
from ace_bench.core.types import Completion, Feedback, Labels, Message, Record, Rollout, Stage, Step
from ace_bench.playbook.apply import Kind, Limits
from ace_bench.playbook.playbook import Playbook
from ace_bench.store.call_log import Ledger
from ace_bench.store.prompts import PromptSet

_log = logging.getLogger(__name__)
_ONLY_STEP = Step(index=0, total=1, epoch=0)
NO_FEEDBACK = Feedback(correct=None, message="", gold=None)


class Models(Protocol):
    """Gives a role's backbone: ``CountedModels``, or a run's arena."""

    def lm(self, role: str, session: str) -> Lm:
        """Return the role's backbone, bound to one session."""
        ...


def as_json(value: Any) -> dict[str, Any]:
    """Return a value as the JSON object that a checkpoint keeps."""
    record: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return record


def agent_prompts() -> Prompts:
    """Return the shipped prompts for agents."""
    return PromptSet(prompts_folder() / "default", task="langchain", prompt_group="agent")


@dataclass(frozen=True, kw_only=True)
class AceRoles:
    """Reflects on each finished run by one call of the Reflector, and asks the Curator for operations.

    ``feedback`` sees the agent's state at the end of a run and says what is known of its outcome, as ``labels`` does in
    a benchmark: right or wrong, or the right answer or calls, too. Without it the roles see what the tools returned.
    A model's reply that cannot be used teaches nothing, and the log says why.
    """

    models: Models
    feedback: Callable[[Mapping[str, Any]], Feedback] | None = None
    prompts: Prompts = field(default_factory=agent_prompts)
    operations: Sequence[Kind] = ("ADD",)
    token_budget: int = 80_000

    def reflect(self, run: Rollout, playbook: Playbook, state: Mapping[str, Any]) -> Record:
        """Return the reflection on a run, which is over and cannot be tried again, as JSON."""
        feedback = NO_FEEDBACK if self.feedback is None else self.feedback(state)
        rollout, arena = replace(run, feedback=feedback), self._arena(feedback, playbook)
        insight = Reflector().reflect(playbook, rollout, Insight.begin(rollout, 1), _ONLY_STEP, arena)
        _report(insight.events)
        return as_json(insight)

    def curate(self, playbook: Playbook, pending: Record, *, step: int, refine: Refine) -> Playbook:
        """Return the playbook with a reflection's tags and the Curator's operations, refined."""
        insight: Insight = convert(pending, Insight)
        feedback = insight.rollouts[-1].feedback if insight.rollouts else NO_FEEDBACK
        now = Step(index=step, total=step + 1, epoch=0)
        editor = PlaybookEditor(playbook, step=now, count=estimate_tokens)
        editor.count_votes(insight)
        limits = Limits(kinds=tuple(self.operations))
        curator = Curator(limits=limits, token_budget=self.token_budget, window=1, refuses_echoes=True)
        delta = curator.propose(editor.playbook, insight, now, self._arena(feedback, playbook))
        _report(delta.events)
        editor.apply_delta([insight], delta, limits)
        return refine(editor.playbook, editor.touched, step)

    def _arena(self, feedback: Feedback, playbook: Playbook) -> Arena:
        if feedback.gold is not None:
            labels = Labels.GOLD
        else:
            labels = Labels.NONE if feedback.correct is None else Labels.CORRECTNESS
        view = _RoleView(models=self.models, labels=labels, prompts=self.prompts, sections=playbook.sections)
        # The roles use no more of an arena where no attempt is made again.
        return cast(Arena, view)


@dataclass(frozen=True, kw_only=True)
class _RoleView:
    """The part of an arena that Reflector and Curator use."""

    models: Models
    labels: Labels
    prompts: Prompts
    sections: tuple[str, ...]
    learns_unreadable: bool = False

    def lm(self, role: str, session: str) -> Lm:
        return self.models.lm(role, session)

    def counter(self, role: str) -> TokenCounter:
        return estimate_tokens

    def conversation(self, *_: Any, **__: Any) -> tuple[Message, ...]:
        return ()


def _report(events: Sequence[Record]) -> None:
    for event in events:
        if event["event"] == "fault":
            _log.warning("nothing was learnt: the %s failed: %s", event["role"], event["message"])


@dataclass(frozen=True, kw_only=True)
class CountedModels:
    """Backbones by role, ``backbone`` for those not in ``roles``; ``ledger`` counts every call by its role.

    It counts and does nothing else: a run's gateway also limits, records and replays calls.
    """

    backbone: Backbone
    roles: Mapping[str, Backbone] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)

    def lm(self, role: str, session: str) -> CountedLm:
        """Return a role's backbone, bound to a session, which groups the calls of one attempt."""
        return CountedLm(backbone=self.roles.get(role, self.backbone), role=role, session=session, ledger=self.ledger)


@dataclass(frozen=True, kw_only=True)
class CountedLm:
    """A backbone bound to a role and a session."""

    backbone: Backbone
    role: str
    session: str
    ledger: Ledger

    @property
    def takes_tools(self) -> bool:
        """Whether the backbone can be offered tools."""
        return takes_tools(self.backbone)

    def __call__(self, messages: Sequence[Message], schema: Record | None = None) -> Completion:
        """Complete once. The cost of a failed call also counts."""
        try:
            reply = self.backbone.complete(messages, role=self.role, session=self.session, schema=schema)
            completion = cut_thoughts(reply, schema)
            require_answer(completion, schema)
        except RolloutFault as error:
            if error.paid is not None:
                self.ledger.add(Stage.ADAPT, self.role, error.paid, answered=not error.fault.unanswered)
            raise
        self.ledger.add(Stage.ADAPT, self.role, completion)
        return completion
