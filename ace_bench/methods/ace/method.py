"""ACE as a step learner: generate, reflect, curate, apply, refine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from ace_bench.contexts.load import load_kind, load_text_playbook
from ace_bench.contexts.playbook.embed import Embedder
from ace_bench.contexts.playbook.playbook import RECENT_REFLECTIONS, Playbook
from ace_bench.contexts.playbook_text.dialects import dialect_of
from ace_bench.contexts.playbook_text.text_playbook import TextPlaybook
from ace_bench.core.arena import Arena
from ace_bench.core.errors import SettingError
from ace_bench.core.method import AFTER_CURATION, ContextUpdate
from ace_bench.core.types import GeneratorSpec, Labels, Record, Rollout, Sample, Step
from ace_bench.core.workload import Learning, Workload, exactly
from ace_bench.methods.ace import curator, reflector
from ace_bench.methods.ace.attempts import learn_from_attempts
from ace_bench.methods.ace.curator import Curator
from ace_bench.methods.ace.draft import Draft
from ace_bench.methods.ace.execution import ExecutionReflector
from ace_bench.methods.ace.learning import BatchLearner
from ace_bench.methods.ace.playbooks import AnyPlaybook
from ace_bench.methods.ace.reflector import HARMFUL, SampleReflection
from ace_bench.methods.ace.reflector import ROLE as REFLECTOR
from ace_bench.methods.ace.settings import AceSettings
from ace_bench.methods.ace.workload import step_counts
from ace_bench.methods.base import BaseMethod


class Ace(BaseMethod[AnyPlaybook]):
    """The paper's method with its ablation switches (``AceSettings``)."""

    generator = GeneratorSpec(template="generator", reply="json")

    def __init__(self, **settings: Annotated[Any, AceSettings]):
        self._settings = AceSettings(**settings)

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """The roles in use under these settings, and the templates each is asked with."""
        return self._settings.roles

    @property
    def embedders(self) -> Sequence[Embedder]:
        """Those of refinement and retrieval, as far as they are in use."""
        settings = self._settings
        if settings.playbook == "text":
            return ()
        used = (settings.refiner.embedder,) if settings.refiner.when != "never" else ()
        return (*used, settings.retrieval.embedder) if settings.retrieval.mode != "off" else used

    def prompt_fields(self, inputs: frozenset[str], shown: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the templates in ``roles``."""
        known = {
            **dict.fromkeys((REFLECTOR, HARMFUL), inputs | shown | reflector.FIELDS),
            "curator": inputs | shown | curator.FIELDS | {"operations"},
            "rewriter": inputs | shown | curator.FIELDS,
            "merger": frozenset(("bullets",)),
        }
        return {name: known[name] for templates in self.roles.values() for name in templates}

    def check(self, arena: Arena) -> None:
        """Reject the authors' text on AppWorld without their loop, and reflections that nobody makes or is shown."""
        settings = self._settings
        if settings.generator_reflections and not arena.prompts.uses(self.generator.template, RECENT_REFLECTIONS):
            raise SettingError(
                f"generator_reflections={settings.generator_reflections} needs prompts that show the field "
                f"{RECENT_REFLECTIONS}, as prompts/default does: set 0, or add it to {self.generator.template}.j2"
            )
        if settings.bullet_order == "helpful" and not arena.prompts.uses(self.generator.template, "playbook"):
            raise SettingError(
                "bullet_order=helpful needs prompts that show the field playbook, as prompts/default does: set created"
            )
        if settings.reflector == "rules" and arena.tools is None:
            raise SettingError(
                "reflector=rules needs an agent that acts by tools (task=appworld): questions that are answered in one "
                "turn have no tool executions; set reflector=on"
            )
        appworld = dialect_of(arena.sections) == "appworld"
        if appworld and settings.playbook == "text" and settings.curate != "attempt":
            raise SettingError(f"curate={settings.curate} needs playbook=bullets: AppWorld's text goes with attempt")

    def start(self, arena: Arena) -> AnyPlaybook:
        """Return the initial playbook, or an empty one with the task's sections."""
        if self._settings.playbook == "text":
            return self._start_text(arena)
        self._settings.refiner.prepare()
        self._settings.retrieval.prepare()
        initial = self._settings.initial
        if initial is None:
            return Playbook.start(arena.sections)
        return load_kind(Playbook, initial, arena=arena, reader="ACE")

    def _start_text(self, arena: Arena) -> TextPlaybook:
        dialect, count, initial = dialect_of(arena.sections), arena.counter("generator"), self._settings.initial
        if initial is None:
            return TextPlaybook.start(arena.sections, dialect=dialect, count=count)
        return load_text_playbook(initial, dialect=dialect, count=count)

    def select(self, context: AnyPlaybook, sample: Sample) -> AnyPlaybook:
        """Return the playbook with the bullets that matter for a sample, all of them where retrieval is off."""
        if isinstance(context, TextPlaybook):
            return context
        shown = self._settings.retrieval.select(context, sample.inputs["question"])
        return replace(shown, helpful_first=True) if self._settings.bullet_order == "helpful" else shown

    def prepare(
        self, context: AnyPlaybook, samples: Sequence[Sample], step: Step, arena: Arena
    ) -> ContextUpdate[AnyPlaybook]:
        """Return the playbook with the last reflections on earlier samples, for the rollouts of this step alone."""
        del samples, step, arena
        number = self._settings.generator_reflections
        if not number or isinstance(context, TextPlaybook):
            return ContextUpdate(context=context)
        return ContextUpdate(context=context.having(shown_reflections=context.recent[-number:]))

    def update(
        self, context: AnyPlaybook, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[AnyPlaybook]:
        """Learn from a batch and refine the playbook once (paper, 3.1 and 3.2)."""
        if isinstance(context, TextPlaybook) and rollouts[0].attempt.ended is not None:
            return learn_from_attempts(self._settings, context, rollouts, step, arena)
        settings = self._settings
        number, total = settings.number(step)
        learner = BatchLearner(
            settings=settings,
            draft=Draft(context, step=step, count=arena.counter("generator")),
            curator=Curator(
                arena=arena,
                step=number,
                total=total,
                token_budget=settings.token_budget,
                window=settings.reflection_window,
                replies=settings.replies,
            ),
            plan=replace(settings.reflection_plan(step), rules=self._rules(arena)),
            curates=number % settings.curator_every == 0,
        )
        batch = learner.learn(rollouts)
        refined = self._refined(learner, batch, step)
        repeated = self._attempt_again(refined.context, rollouts, arena) if settings.after_curation else ()
        return replace(refined, events=(*learner.draft.events, *refined.events, *repeated))

    def _rules(self, arena: Arena) -> ExecutionReflector | None:
        tools = arena.tools if self._settings.reflector == "rules" else None
        return None if tools is None else ExecutionReflector(tools=tools)

    def _refined(
        self, learner: BatchLearner, batch: Sequence[SampleReflection], step: Step
    ) -> ContextUpdate[AnyPlaybook]:
        draft, settings = learner.draft, self._settings
        if isinstance(draft.playbook, TextPlaybook):
            return ContextUpdate(context=draft.playbook)
        refined = settings.refiner.refine(
            draft.playbook,
            draft.touched,
            step=step.index,
            count=learner.curator.arena.counter("generator"),
            word=learner.curator.wording(batch[0].rollout.key) if settings.merge_wording == "curator" else None,
        )
        book = self._with_recent(refined.playbook.having(shown_reflections=None), batch)
        return ContextUpdate(context=book, events=refined.events)

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return from no retry to all reflection rounds."""
        shown = arena.labels is not Labels.NONE and learning.split != "test"
        counts = step_counts(vars(self._settings), acts=learning.acts, shown=shown)
        roles = {role: span.times(exactly(learning.samples)) for role, span in counts.items()}
        rollouts = roles.pop("generator")
        return Workload(
            rollouts=rollouts,
            roles=roles,
            context_tokens=self._settings.refiner.max_tokens,
            writers=("curator",) if self._settings.update == "rewrite" else (),
        )

    def _with_recent(self, playbook: Playbook, batch: Sequence[SampleReflection]) -> Playbook:
        """Keep the reflections of this step that Curator and Generator are shown in later steps."""
        kept = max(self._settings.reflection_window - 1, self._settings.generator_reflections)
        latest = (reflected.reflections[-1] for reflected in batch if reflected.reflections)
        recent = (*playbook.recent, *latest)
        recent = recent[max(0, len(recent) - kept) :]
        return playbook if recent == playbook.recent else playbook.having(recent=recent)

    def _attempt_again(self, playbook: AnyPlaybook, rollouts: Sequence[Rollout], arena: Arena) -> Sequence[Record]:
        """Attempt each sample under the new playbook; metrics look up the grades by the rollouts' keys."""
        trial = self._settings.free_trial  # so that no rollout of the step is replayed
        again = arena.map(lambda rollout: arena.rollout(rollout.sample, playbook, trial=trial), rollouts)
        return [
            {"event": AFTER_CURATION, "sample": first.sample.id, "first": first.key, "again": second.key}
            for first, second in zip(rollouts, again, strict=True)
        ]
