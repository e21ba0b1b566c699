"""What a run asks of a method that learns a playbook by roles, beside learning (``core.method.Method``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ace_bench.contexts.loading import load_kind
from ace_bench.contexts.playbook.embeddings import Embedder
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.refine import MergeWording, Refiner
from ace_bench.contexts.selection import Retrieval
from ace_bench.core.method import Arena, Learning, Span, Workload, exactly
from ace_bench.core.types import Sample
from ace_bench.methods.ace_parts import Insight
from ace_bench.methods.base import CURATOR, CURATOR_FIELDS, REFLECTOR, REFLECTOR_FIELDS, BaseMethod, Rounds


class Role:
    """A Reflector or Curator. ``templates`` are the prompts that it asks a model with; none if it asks no model."""

    templates: ClassVar[tuple[str, ...]] = ()

    def check(self, arena: Arena) -> None:
        """Accept all tasks and agents."""


class CuratorRole(Role):
    """A Curator, with the roles that it asks a model in."""

    @property
    def embedders(self) -> Sequence[Embedder]:
        """Those that choosing its bullets needs."""
        return ()

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """Each role with its templates."""
        return {CURATOR: self.templates}

    def prompt_fields(self, shared: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of its templates, given those of a sample and of the playbook."""
        return dict.fromkeys(self.templates, shared | CURATOR_FIELDS | {"operations"})

    def calls(self, learning: Learning) -> Mapping[str, Span]:
        """Return the calls of each role if it curates after every step."""
        return {CURATOR: exactly(learning.samples)}


class MergeWriter(Protocol):
    """Words merged bullets."""

    @property
    def templates(self) -> tuple[str, ...]:
        """The prompt templates that the Curator's model is asked with."""
        ...

    def bind(self, arena: Arena, session: str) -> MergeWording:
        """Return the function that words a merged bullet in a step."""
        ...


@dataclass(frozen=True, kw_only=True)
class PlaybookLearner(BaseMethod[Playbook]):
    """The parts of the method, and what follows from them.

    The playbook starts empty or from the file ``initial``. The Generator is shown what ``retrieval`` selects, all
    bullets without it. ``merge_writer`` words merged bullets; without one the older text stays.
    """

    reflector: Role
    curator: CuratorRole
    refiner: Refiner
    rounds: Rounds
    curator_every: int
    initial: str | None = None
    retrieval: Retrieval | None = None
    merge_writer: MergeWriter | None = None

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """The roles that ask a model, and the templates each is asked with."""
        merging = () if self.merge_writer is None else self.merge_writer.templates
        roles = {REFLECTOR: self.reflector.templates, **self.curator.roles}
        roles[CURATOR] = (*roles[CURATOR], *merging)
        return {role: templates for role, templates in roles.items() if templates}

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the templates in ``roles``."""
        merging = () if self.merge_writer is None else self.merge_writer.templates
        return {
            **dict.fromkeys(self.reflector.templates, inputs | context_fields | REFLECTOR_FIELDS),
            **self.curator.prompt_fields(inputs | context_fields),
            **dict.fromkeys(merging, frozenset(("bullets",))),
        }

    @property
    def embedders(self) -> Sequence[Embedder]:
        """Those of refinement, retrieval and the Curator, as far as they are in use."""
        refining = () if self.refiner.when == "never" else (self.refiner.memo.embedder,)
        retrieving = () if self.retrieval is None else (self.retrieval.embedder,)
        return *refining, *retrieving, *self.curator.embedders

    def check(self, arena: Arena) -> None:
        """Reject tasks and agents that the Reflector cannot work with."""
        self.reflector.check(arena)

    def start(self, arena: Arena) -> Playbook:
        """Return the initial playbook, or an empty one with the task's sections."""
        for embedder in self.embedders:
            embedder.embed([])
        if self.retrieval is not None:
            self.retrieval.prepare()
        if self.initial is None:
            return Playbook.start(arena.sections)
        return load_kind(Playbook, self.initial, arena=arena, required_by="ACE")

    def select(self, context: Playbook, sample: Sample) -> Playbook:
        """Return the playbook with the bullets that matter for a sample (paper, section 3.1)."""
        return context if self.retrieval is None else self.retrieval.select(context, sample.asked)

    def merge_wording(self, insights: Sequence[Insight], arena: Arena) -> MergeWording | None:
        """Return the function that words merged bullets in a step; ``None``: the older text stays."""
        return None if self.merge_writer is None else self.merge_writer.bind(arena, insights[0].session)

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return from no retry to all reflection rounds; calls that word merged bullets are not counted."""
        reflections, retries = self.rounds.limits_in(arena, learning)
        each, curated = exactly(learning.samples), exactly(1 / self.curator_every)
        calls = {role: span.times(curated) for role, span in self.curator.calls(learning).items()}
        return Workload(
            rollouts=Span(1, 1 + retries).times(each),
            roles={
                **({REFLECTOR: Span(1, reflections).times(each)} if self.reflector.templates else {}),
                **(calls if self.curator.templates else {}),
            },
            context_tokens=self.refiner.max_tokens,
            writers=(CURATOR,) if "rewriter" in self.curator.templates else (),
        )


def with_recent_lessons(playbook: Playbook, insights: Sequence[Insight], keep: int) -> Playbook:
    """Return the playbook with the last ``keep`` lessons on samples, for the prompts of later steps."""
    latest = (insight.lessons[-1] for insight in insights if insight.lessons)
    recent = (*playbook.recent, *latest)
    recent = recent[max(0, len(recent) - keep) :]
    return playbook if recent == playbook.recent else playbook.replace_fields(recent=recent)
