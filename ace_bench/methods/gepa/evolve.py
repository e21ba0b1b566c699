"""GEPA's run: ``dspy.GEPA`` over rollouts of the arena."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dspy
from dspy.teleprompt.gepa.gepa import AUTO_RUN_SETTINGS
from dspy.teleprompt.gepa.instruction_proposal import InstructionProposer

from ace_bench.contexts.instruction import Instruction
from ace_bench.core.method import Arena, ContextUpdate
from ace_bench.core.types import Record
from ace_bench.methods.dspy_bridge.adapters import JsonFormat
from ace_bench.methods.dspy_bridge.program import examples, feedback_text, score
from ace_bench.methods.dspy_bridge.session import OptimiserSession
from ace_bench.methods.gepa.budget import MetricBudget


class _Proposer(InstructionProposer):  # type: ignore[misc]
    """DSPy's proposer; a proposal that fails is noted, and GEPA goes on with the next minibatch."""

    def __init__(self, session: OptimiserSession):
        super().__init__(adapter=JsonFormat())
        self._session = session

    def __call__(self, candidate: Any, reflective_dataset: Any, components_to_update: Any) -> Any:
        try:
            return super().__call__(candidate, reflective_dataset, components_to_update)
        except Exception as error:
            self._session.failed(error)
            raise


def metric_calls(budget: MetricBudget, *, train: int, validation: int) -> int:
    """Return a budget in metric calls, by DSPy's own rule where it has a name, for a program of one predictor."""
    if budget.auto is not None:
        optimiser = dspy.GEPA(metric=_metric, auto=budget.auto, reflection_lm=object())
        candidates = AUTO_RUN_SETTINGS[budget.auto]["n"]
        return int(optimiser.auto_budget(num_preds=1, num_candidates=candidates, valset_size=validation))
    return budget.max_metric_calls or (budget.max_full_evals or 0) * (train + validation)


def evolve(start: Instruction, arena: Arena, *, budget: MetricBudget, minibatch: int) -> ContextUpdate[Instruction]:
    """Return the candidate with the best validation score, and an event for each candidate that was kept."""
    session = OptimiserSession(start, arena, "gepa")
    train, validation = examples(arena, "train"), examples(arena, "val")
    with session.open():
        optimiser = dspy.GEPA(
            metric=_metric,
            **vars(budget),
            reflection_minibatch_size=minibatch,
            reflection_lm=session.proposer,
            instruction_proposer=_Proposer(session),
            num_threads=1,
            track_stats=True,
            seed=arena.seed,
        )
        best = optimiser.compile(session.program, trainset=train, valset=validation)
        context = session.rollouts.context(best.predictors()[0])
    found = best.detailed_results
    summary = {
        "event": "optimised",
        "metric_calls": found.total_metric_calls,
        "budget": optimiser.max_metric_calls,
        "rollouts": len(session.rollouts.keys),
    }
    return ContextUpdate(context=context, events=(summary, *_candidates(found), *session.faults))


def _metric(
    gold: dspy.Example, pred: dspy.Prediction, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
) -> dspy.Prediction:
    del gold, trace, pred_name, pred_trace
    return dspy.Prediction(score=score(pred), feedback=feedback_text(pred))


def _candidates(found: Any) -> Sequence[Record]:
    return [
        {
            "event": "candidate",
            "number": number,
            "parents": [parent for parent in found.parents[number] if parent is not None],
            "validation": round(100 * found.val_aggregate_scores[number], 4),
            "metric_calls": found.discovery_eval_counts[number],
            "instruction": candidate.predictors()[0].signature.instructions,
        }
        for number, candidate in enumerate(found.candidates)
    ]
