"""The settings of ACE: the paper's values and its ablation switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from ace_bench.contexts.playbook.apply import Limits, UnknownSection
from ace_bench.contexts.playbook.deltas import KINDS, Kind
from ace_bench.contexts.playbook.refine import Refiner
from ace_bench.contexts.playbook.retrieval import Retrieval
from ace_bench.core.errors import SettingError
from ace_bench.core.settings import Count, Text, Whole
from ace_bench.core.types import Step
from ace_bench.methods.ace import curator, reflector
from ace_bench.methods.ace.reflector import ReflectionPlan

_OPERATIONS = f"a list of some of {', '.join(KINDS)}, such as [ADD]"


@dataclass(frozen=True, kw_only=True)
class AceSettings:
    """What ``configs/method/ace.yaml`` sets.

    ``max_reflection_rounds`` and ``curator_every`` are the paper's 5 and 1: a question is reflected on and answered
    anew at most so often. An agent's attempt resets an environment, so its number has a setting of its own:
    ``retries`` new attempts, each after a reflection (0: one attempt and one reflection). ``auto`` gives no method more
    of the environment than others get: ``max_reflection_rounds - 1`` on training tasks whose outcome ``labels`` shows
    (five attempts, as the official code with ground truth), none without labels and none on test tasks.
    ``playbook=text`` adapts the authors' text with their rules, where ``bullets`` is this harness's own playbook. On an
    agent's task it goes with the authors' loop there (``AttemptLearner``).
    A new rollout is shown the last ``reflection_window`` reflections on its sample, the Curator the last ones on as
    many samples. Every first rollout of adaptation is shown the ``generator_reflections`` last reflections on earlier
    samples (an ACE engine for a coding assistant: 3); evaluation shows none. With ``reflector=off`` the Curator gets
    the rollout itself (table 3); with ``rules`` an ``ExecutionReflector`` takes the place of both models.
    ``harmful_every``: every so many steps a Reflector that is asked to mislead takes over (table 17; ``None``: never).
    With ``update=rewrite`` the Curator writes the whole playbook anew (table 18).
    ``operations`` are the types the Curator may use (the official code: ADD only) and ``bullet_tokens`` the most one
    bullet may take. ``initial`` is a playbook file to start from: a saved context or the official text.
    With ``merge_wording=curator`` the curator role words merged bullets; otherwise the older text stays.
    ``retrieval`` chooses the bullets that the Generator is shown for its question (section 3.1), and ``bullet_order``
    their order.

    How a step goes on: with ``tags=round`` the tags of a reflection are counted before the next rollout, so the samples
    of a batch are learnt from one after another; then ``curate=attempt`` can ask the Curator after every reflection,
    not once a step. ``step_number`` is the step that the Curator is shown and ``curator_every`` counts.
    ``tagged`` are the bullets whose tags count: those that the rollout used, or ``any``; then of several tags on a
    bullet the last counts, not the first. The Curator's prompt names ``token_budget``; ``refiner.max_tokens`` enforces
    one.
    ``after_curation`` makes one more rollout of each sample under the new playbook, for a metric alone. The official
    finance code does ``round``, ``step``, ``epoch``, ``any`` and ``true``.
    With ``replies=official`` the replies of Reflector and Curator are read as the authors' code reads them.
    """

    playbook: Literal["bullets", "text"]
    max_reflection_rounds: Count
    retries: Literal["auto"] | Whole
    reflection_window: Count
    generator_reflections: Whole
    bullet_order: Literal["created", "helpful"]
    reflector: Literal["on", "off", "rules"]
    harmful_every: Count | None
    curator_every: Count
    tags: Literal["step", "round"]
    curate: Literal["step", "attempt"]
    step_number: Literal["run", "epoch"]
    after_curation: bool
    tagged: Literal["used", "any"]
    token_budget: Count
    replies: Literal["repaired", "official"]
    update: Literal["delta", "rewrite"]
    operations: Annotated[Sequence[Kind], Meta(min_length=1, description=_OPERATIONS)]
    bullet_tokens: Count
    unknown_section: UnknownSection
    merge_wording: Literal["keep", "curator"]
    initial: Text | None
    refiner: Refiner
    retrieval: Retrieval

    def __post_init__(self) -> None:
        """Raise ``SettingError`` for settings that contradict each other and for a missing file."""
        if self.reflector == "rules" and self.update == "rewrite":
            raise SettingError("update=rewrite needs a Curator, and reflector=rules asks none: set update=delta")
        if self.harmful_every is not None and self.reflector != "on":
            raise SettingError(
                f"harmful_every={self.harmful_every} needs a Reflector: set reflector=on, or this to null"
            )
        if self.generator_reflections and self.reflector == "off":
            raise SettingError(
                f"generator_reflections={self.generator_reflections} needs a Reflector: set reflector=on, or this to 0"
            )
        if self.curate == "attempt" and self.tags != "round":
            raise SettingError("curate=attempt changes the playbook within a step: set tags=round, too")
        if self.playbook == "text":
            self._check_text()
        if self.initial is not None and not Path(self.initial).is_file():
            raise SettingError(f"initial={self.initial} is not a file: give a saved playbook, or null")

    def _check_text(self) -> None:
        """Raise ``SettingError`` for what the authors' text does not allow."""
        needed = {
            "retrieval.mode": (self.retrieval.mode, "off"),
            "refiner.when": (self.refiner.when, "never"),
            "update": (self.update, "delta"),
            "reflector": (self.reflector, "on"),
            "generator_reflections": (self.generator_reflections, 0),
            "bullet_order": (self.bullet_order, "created"),
        }
        for name, (value, possible) in needed.items():
            if value != possible:
                raise SettingError(f"{name}={value} needs playbook=bullets: with playbook=text it must be {possible}")

    @property
    def one_by_one(self) -> bool:
        """Whether the playbook changes within a step, so that samples are learnt from one after another."""
        return self.tags == "round"

    @property
    def free_trial(self) -> int:
        """A number of a rollout above those of any step."""
        return 1 + max(self.max_reflection_rounds, 0 if self.retries == "auto" else int(self.retries))

    def number(self, step: Step) -> tuple[int, int]:
        """Return the step that the Curator is shown, from 1, and of how many."""
        if self.step_number == "epoch":
            return step.epoch_index + 1, step.epoch_total
        return step.index + 1, step.total

    def reflection_plan(self, step: Step) -> ReflectionPlan:
        """Return how to reflect at a step."""
        harmful = self.harmful_every is not None and (step.index + 1) % self.harmful_every == 0
        return ReflectionPlan(
            rounds=self.max_reflection_rounds,
            retries="auto" if self.retries == "auto" else int(self.retries),
            window=self.reflection_window,
            tagged=self.tagged,
            replies=self.replies,
            template=reflector.HARMFUL if harmful else reflector.ROLE,
        )

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """The roles in use, and the templates each is asked with."""
        reflecting = (reflector.ROLE, *((reflector.HARMFUL,) if self.harmful_every else ()))
        curating = ("rewriter" if self.update == "rewrite" else "curator",)
        merging = ("merger",) if self.merge_wording == "curator" else ()
        if self.reflector == "rules":
            return {curator.ROLE: merging} if merging else {}
        reflects = {reflector.ROLE: reflecting} if self.reflector == "on" else {}
        return {**reflects, curator.ROLE: (*curating, *merging)}

    @property
    def limits(self) -> Limits:
        """What the Curator may do; a rewritten playbook consists of ADD operations, to any section.

        Rules add and vote, and their categories are sections.
        """
        if self.reflector == "rules":
            return Limits(kinds=("ADD", "TAG"), bullet_tokens=self.bullet_tokens, unknown_section="create")
        if self.update == "rewrite":
            return Limits(kinds=("ADD",), bullet_tokens=self.bullet_tokens, unknown_section="others")
        return Limits(
            kinds=tuple(self.operations), bullet_tokens=self.bullet_tokens, unknown_section=self.unknown_section
        )
