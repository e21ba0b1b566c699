"""ACE as a step learner: generate, reflect, curate, apply, refine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from ace_bench.contexts.load import load_context
from ace_bench.contexts.playbook.apply import Limits, UnknownSection, apply
from ace_bench.contexts.playbook.deltas import KINDS, Kind, Operation
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.refine import Refiner
from ace_bench.contexts.playbook.retrieve import Retriever
from ace_bench.core.arena import Arena
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.method import ContextUpdate
from ace_bench.core.settings import Count, Text
from ace_bench.core.types import GeneratorSpec, Record, Rollout, Sample, Step
from ace_bench.methods.ace import curator, reflector
from ace_bench.methods.ace.curator import NO_PROPOSAL, Curator, Proposal
from ace_bench.methods.ace.reflector import (
    HARMFUL,
    TAGS_ONLY,
    ReflectionPlan,
    SampleReflection,
    study,
    without_reflector,
)
from ace_bench.methods.ace.reflector import ROLE as REFLECTOR

_OPERATIONS = f"a list of some of {', '.join(KINDS)}, such as [ADD]"


class Ace:
    """The paper's method with its ablation switches.

    ``max_reflection_rounds`` and ``curator_every`` are the paper's 5 and 1. A new try is shown the last
    ``reflection_window`` reflections on its sample, the Curator the last ones on as many samples. ``reflector=off``
    hands the bare attempt to the Curator (table 3), ``harmful_every`` has a Reflector that is told to mislead take over
    every so many steps (table 17; ``None``: never), ``update=rewrite`` lets the Curator write the whole playbook anew
    (table 18).
    ``operations`` are the types the Curator may use (the official code: ADD only) and ``bullet_tokens`` the most one
    bullet may take. ``initial`` is a playbook file to start from: a saved context or the official text.
    ``merge_wording=curator`` has merged bullets worded by the curator role instead of keeping the older text.
    ``retrieval`` has the Generator shown only the bullets that matter for its question (section 3.1).
    """

    generator = GeneratorSpec(template="generator", reply="json")

    def __init__(  # noqa: PLR0913 - settings, all keyword-only
        self,
        *,
        max_reflection_rounds: Count,
        reflection_window: Count,
        reflector: Literal["on", "off"],
        harmful_every: Count | None,
        curator_every: Count,
        update: Literal["delta", "rewrite"],
        operations: Annotated[Sequence[Kind], Meta(min_length=1, description=_OPERATIONS)],
        bullet_tokens: Count,
        unknown_section: UnknownSection,
        merge_wording: Literal["keep", "curator"],
        initial: Text | None,
        refiner: Refiner,
        retrieval: Retriever,
    ):
        if harmful_every is not None and reflector == "off":
            raise SettingError(f"harmful_every={harmful_every} needs a Reflector: set reflector=on, or this to null")
        if initial is not None and not Path(initial).is_file():
            raise SettingError(f"initial={initial} is not a file: give a saved playbook, or null")
        self._rounds = max_reflection_rounds
        self._window = reflection_window
        self._reflects = reflector == "on"
        self._harmful_every = harmful_every
        self._curator_every = curator_every
        self._rewrites = update == "rewrite"
        self._operations = tuple(operations)
        self._limits = Limits(kinds=self._operations, bullet_tokens=bullet_tokens, unknown_section=unknown_section)
        self._rewrite_limits = Limits(kinds=("ADD",), bullet_tokens=bullet_tokens, unknown_section="others")
        self._words_merges = merge_wording == "curator"
        self._initial = initial
        self._refiner = refiner
        self._retrieval = retrieval

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """The roles in use under these settings, and the templates each is asked with."""
        curator = ["rewriter" if self._rewrites else "curator"] + (["merger"] if self._words_merges else [])
        reflector = (REFLECTOR, *((HARMFUL,) if self._harmful_every else ()))
        return {**({REFLECTOR: reflector} if self._reflects else {}), "curator": tuple(curator)}

    def prompt_fields(self, inputs: frozenset[str], shown: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the templates in ``roles``."""
        known = {
            **dict.fromkeys((REFLECTOR, HARMFUL), inputs | shown | reflector.FIELDS),
            "curator": inputs | shown | curator.FIELDS | {"operations"},
            "rewriter": inputs | shown | curator.FIELDS,
            "merger": frozenset(("bullets",)),
        }
        return {name: known[name] for templates in self.roles.values() for name in templates}

    def start(self, arena: Arena) -> Context:
        """Return the initial playbook, or an empty one with the task's sections."""
        self._refiner.prepare()
        self._retrieval.prepare()
        if self._initial is None:
            return Playbook.start(arena.sections)
        loaded = load_context(Path(self._initial), sections=arena.sections, count=arena.counter("generator"))
        if not isinstance(loaded, Playbook):
            raise ConfigError(f"method.initial={self._initial} holds no playbook; ACE starts from one")
        return loaded

    def shown(self, context: Context, sample: Sample) -> Context:
        """Return the playbook with the bullets that matter for a sample, all of them where retrieval is off."""
        if not isinstance(context, Playbook):
            raise TypeError(f"ACE shows a playbook, not {type(context).__name__}")
        return self._retrieval.select(context, sample.inputs["question"])

    def update(self, context: Context, rollouts: Sequence[Rollout], step: Step, arena: Arena) -> ContextUpdate:
        """Reflect on a batch in parallel, apply its deltas in sample order, refine once (paper, 3.1 and 3.2)."""
        if not isinstance(context, Playbook):
            raise TypeError(f"ACE evolves a playbook, not {type(context).__name__}")
        studies = arena.map(lambda rollout: self._study(context, rollout, step, arena), rollouts)
        curates = (step.index + 1) % self._curator_every == 0
        desk = Curator(arena=arena, step=step, token_budget=self._refiner.max_tokens, window=self._window)
        # A rewrite replaces everything, so those of a batch follow one another; deltas are proposed side by side.
        proposals = (
            arena.map(lambda done: desk.propose(done, context, self._operations), studies)
            if curates and not self._rewrites
            else [NO_PROPOSAL] * len(studies)
        )
        merge = _Merge(context, step=step, count=arena.counter("generator"))
        for done, proposal in zip(studies, proposals, strict=True):
            merge.add(done, done.tags, TAGS_ONLY, done.events)
            if curates and self._rewrites:
                rewritten = desk.rewrite(done, merge.playbook)
                merge.replace(done, rewritten, self._rewrite_limits)
            else:
                merge.add(done, proposal.operations, self._limits, proposal.events)
        refined = self._refiner.refine(
            merge.playbook,
            merge.touched,
            step=step.index,
            count=arena.counter("generator"),
            word=desk.wording(rollouts[0].key) if self._words_merges else None,
        )
        playbook = self._remembering(refined.playbook, studies)
        return ContextUpdate(context=playbook, events=(*merge.events, *refined.events))

    def _remembering(self, playbook: Playbook, studies: Sequence[SampleReflection]) -> Playbook:
        """Keep what the Curator is to see of this step's reflections later on."""
        said = (*playbook.recent, *(done.reflections[-1] for done in studies if done.reflections))
        recent = said[max(0, len(said) - self._window + 1) :]
        return playbook if recent == playbook.recent else replace(playbook, recent=recent)

    def _study(self, playbook: Playbook, rollout: Rollout, step: Step, arena: Arena) -> SampleReflection:
        if not self._reflects:
            return without_reflector(rollout)
        harmful = self._harmful_every is not None and (step.index + 1) % self._harmful_every == 0
        template = HARMFUL if harmful else REFLECTOR
        plan = ReflectionPlan(rounds=self._rounds, window=self._window, template=template)
        return study(playbook, rollout, plan=plan, arena=arena)


class _Merge:
    """The deltas of a batch on their way into one playbook, sample by sample."""

    def __init__(self, playbook: Playbook, *, step: Step, count: TokenCounter):
        self.playbook = playbook
        self.touched: list[str] = []
        self.events: list[Record] = []
        self._step = step.index
        self._count = count

    def add(
        self, done: SampleReflection, operations: Sequence[Operation], limits: Limits, events: Sequence[Record]
    ) -> None:
        """Apply a sample's operations, and note its events before theirs."""
        source = done.rollout.sample.id
        applied = apply(self.playbook, operations, step=self._step, source=source, limits=limits, count=self._count)
        self.playbook = applied.playbook
        self.touched += applied.touched
        self.events += [{"sample": source, **event} for event in (*events, *applied.events())]

    def replace(self, done: SampleReflection, proposal: Proposal, limits: Limits) -> None:
        """Put a rewritten playbook in place of the old one; an empty rewriting changes nothing."""
        if proposal.operations:
            self.playbook = self.playbook.with_bullets(())
        self.add(done, proposal.operations, limits, proposal.events)
