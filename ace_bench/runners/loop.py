"""The loop of every run: adapt, validate, evaluate; ours, because methods compare only under one loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ace_bench.contexts.loading import encode_context
from ace_bench.core.context import Context
from ace_bench.core.method import FINAL_TRIAL
from ace_bench.core.types import Record
from ace_bench.runners.experiment import Experiment, Validation
from ace_bench.runners.mode import Mode
from ace_bench.store.journal import Journal, RolloutRecord


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """The outcome of a run: the tested context, and graded rollouts of the tested split."""

    split: str
    context: Context
    after: Sequence[RolloutRecord]
    before: Sequence[RolloutRecord] | None = None
    contexts: Mapping[str, Context] = field(default_factory=dict)
    validation: Sequence[Record] = ()


def run_loop(experiment: Experiment, mode: Mode) -> RunOutcome:
    """Adapt and evaluate a context; calls, rollouts and steps that the run folder holds are replayed."""
    method, phase = experiment.method, f"evaluate {mode.split}"
    start = context = experiment.beginning.start
    tested, batches = mode.tested(experiment), mode.batches(experiment)
    validations, predicted = list[Validation](), list[RolloutRecord]()
    before: Sequence[RolloutRecord] | None = None
    if batches:  # saved now and not at the end, so that a stopped run has it, too
        experiment.folder.write_missing("contexts/initial.json", encode_context(start))
    with experiment.clock:
        if mode.tests_start(method):
            before = experiment.test(tested, start, f"{phase}, before", "before")
        for batch in batches:
            context, rollouts = experiment.take_step(context, batch)
            predicted += experiment.arena.records(rollouts)
            if batch.validates:
                validations.append(experiment.validate(context, batch.step))
        name, chosen = mode.choose(experiment, context, validations)
        after: Sequence[RolloutRecord] = predicted
        if not predicted:
            after = experiment.test(tested, chosen, f"{phase}, after" if batches else phase, "after")
    if predicted and method.scores_last_trial:
        before, after = predicted, last_trials(experiment.folder.journal, predicted)
    return RunOutcome(
        split=mode.split,
        context=chosen,
        after=after,
        before=before,
        contexts={"initial": start, "final": context, name: chosen} if batches else {},
        validation=[validation.record() for validation in validations],
    )


def last_trials(journal: Journal, first: Sequence[RolloutRecord]) -> list[RolloutRecord]:
    """Return the trials that count in place of the first ones, in their order."""
    events = (event for step in journal.steps for event in step.events if event["event"] == FINAL_TRIAL)
    last = {event["first"]: event["last"] for event in events}
    return [journal.rollouts[last.get(record.key, record.key)] for record in first]
