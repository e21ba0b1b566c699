"""The loop of every run: adapt a context step by step, validate it on the way, evaluate it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ace_bench.contexts.loading import encode_context
from ace_bench.core.context import Context
from ace_bench.core.method import FINAL_TRIAL
from ace_bench.core.types import Record
from ace_bench.runners.experiment import Experiment, StepTest, Validation
from ace_bench.runners.mode import Mode
from ace_bench.store.journal import Journal, RolloutRecord


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """The outcome of a run: the tested context, graded rollouts of the tested split, and the mode's own ``results``."""

    split: str
    context: Context
    after: Sequence[RolloutRecord]
    before: Sequence[RolloutRecord] | None = None
    contexts: Mapping[str, Context] = field(default_factory=dict)
    validation: Sequence[Record] = ()
    results: Record = field(default_factory=dict)


def run_loop(experiment: Experiment, mode: Mode) -> RunOutcome:
    """Adapt and evaluate a context; calls, rollouts and steps that the run folder holds are replayed."""
    method, phase = experiment.method, f"evaluate {mode.split}"
    start = context = mode.start(experiment)
    tested, batches = mode.tested(experiment), mode.batches(experiment)
    tests, validations, predicted = list[StepTest](), list[Validation](), list[RolloutRecord]()
    if batches:  # saved now and not at the end, so that a stopped run has it, too
        experiment.folder.write_missing("contexts/initial.json", encode_context(start))
    with experiment.clock:
        if mode.tests_start(method):
            tests.append(experiment.test(tested, start, f"{phase}, before", "before"))
        before = tests[0].records if tests else None
        for batch in batches:
            if batch.restarts:
                context = experiment.restart(context, start, batch)
                continue
            context, rollouts = experiment.take_step(context, batch)
            predicted += experiment.arena.records(rollouts)
            if batch.tests:
                tests.append(experiment.test(batch.tests, context, f"test after {batch.scope}", batch.scope))
            if batch.validates:
                validations.append(experiment.validate(context, batch.step))
        name, chosen = mode.choose(experiment, context, validations)
        last = StepTest(name="after", context=chosen, records=predicted)
        if not predicted:
            last = experiment.test(tested, chosen, f"{phase}, after" if batches else phase, "after")
    after = last.records
    if predicted and method.scores_last_trial:
        before, after = predicted, last_trials(experiment.folder.journal, predicted)
    return RunOutcome(
        split=mode.split,
        context=chosen,
        after=after,
        before=before,
        contexts={"initial": start, "final": context, name: chosen} if batches else {},
        validation=[one.record() for one in validations],
        results=mode.results(experiment, tests or [replace(last, records=after)]),
    )


def last_trials(journal: Journal, first: Sequence[RolloutRecord]) -> list[RolloutRecord]:
    """Return the trials that count in place of the first ones, in their order."""
    events = (event for step in journal.steps for event in step.events if event["event"] == FINAL_TRIAL)
    last = {event["first"]: event["last"] for event in events}
    return [journal.rollouts[last.get(record.key, record.key)] for record in first]
