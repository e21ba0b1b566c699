"""What a run asks of a method that learns a playbook by roles, beside learning (``core.method.Method``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ace_bench.ace.verify import Verifier
from ace_bench.contexts.loading import load_kind
from ace_bench.contexts.selection import Retrieval
from ace_bench.core.method import Arena, Learning, Span, Workload, exactly, may_draw
from ace_bench.methods.base import CURATOR, CURATOR_FIELDS, REFLECTOR, REFLECTOR_FIELDS, BaseMethod, Rounds
from ace_bench.playbook.embeddings import Embedder
from ace_bench.playbook.playbook import Playbook
from ace_bench.playbook.refine import Refiner


class Role:
    """A Reflector or Curator. ``templates`` are the prompts that it asks a model with; none if it asks no model."""

    draws_from_seed = False
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
        """Return the fields of its templates, given the fields of a sample and of the playbook."""
        return dict.fromkeys(self.templates, shared | CURATOR_FIELDS)

    def calls(self, learning: Learning) -> Mapping[str, Span]:
        """Return the calls of each role."""
        return {CURATOR: exactly(learning.samples)}


@dataclass(frozen=True, kw_only=True)
class PlaybookLearner(BaseMethod[Playbook]):
    """The parts of the method, and what follows from them.

    The playbook starts empty or from the file ``initial``. The Generator is shown what ``retrieval`` selects, all
    bullets without it. It keeps the last ``remembered`` lessons on samples for later prompts. With a ``verifier`` only
    changes stay that its check keeps.
    """

    reflector: Role
    curator: CuratorRole
    refiner: Refiner
    rounds: Rounds
    remembered: int
    initial: str | None = None
    retrieval: Retrieval | None = None
    verifier: Verifier | None = None

    @property
    def draws_from_seed(self) -> bool:
        """Whether the Reflector, the Curator or the verifier draws something."""
        return may_draw(self.reflector) or may_draw(self.curator) or self.verifier is not None

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """The roles that ask a model, and the templates each is asked with."""
        roles = {REFLECTOR: self.reflector.templates, **self.curator.roles}
        return {role: templates for role, templates in roles.items() if templates}

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the templates in ``roles``."""
        return {
            **dict.fromkeys(self.reflector.templates, inputs | context_fields | REFLECTOR_FIELDS),
            **self.curator.prompt_fields(inputs | context_fields),
        }

    @property
    def embedders(self) -> Sequence[Embedder]:
        """The embedders of refinement, retrieval, the Curator and the verifier that are in use."""
        refining = () if self.refiner.when == "never" else (self.refiner.memo.embedder,)
        retrieving = () if self.retrieval is None else (self.retrieval.embedder,)
        verifying = () if self.verifier is None else (self.verifier.memo.embedder,)
        return *refining, *retrieving, *self.curator.embedders, *verifying

    def check(self, arena: Arena) -> None:
        """Reject tasks and agents that the Reflector cannot work with."""
        self.reflector.check(arena)
        if self.verifier is not None:
            self.verifier.check(arena)

    def start(self, arena: Arena) -> Playbook:
        """Return the initial playbook, or an empty one with the task's sections."""
        if self.retrieval is not None:
            self.retrieval.prepare()
        if self.initial is None:
            return Playbook.start(arena.sections)
        return load_kind(Playbook, self.initial, arena=arena, required_by="ACE")

    @property
    def rehearsed(self) -> PlaybookLearner:
        """The method without its verifier: an estimate is of a playbook that keeps every lesson."""
        return replace(self, verifier=None)

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return spans from no retry and no check to all reflection rounds and all checks of the verifier."""
        reflections, retries = self.rounds.limits_in(arena, learning)
        per_sample = exactly(learning.samples)
        attempts = Span(1, 1 + retries) + (exactly(0) if self.verifier is None else self.verifier.attempts)
        return Workload(
            rollouts=attempts.times(per_sample),
            roles={
                **({REFLECTOR: Span(1, reflections).times(per_sample)} if self.reflector.templates else {}),
                **(self.curator.calls(learning) if self.curator.templates else {}),
            },
            context_tokens=self.refiner.max_tokens,
            writers=(CURATOR,) if "rewriter" in self.curator.templates else (),
        )
