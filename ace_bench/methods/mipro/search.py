"""MIPROv2's run: ``dspy.MIPROv2`` over rollouts of the arena."""

from __future__ import annotations

import math
import warnings
from typing import Any

import dspy
from dspy.teleprompt.mipro_optimizer_v2 import AUTO_RUN_SETTINGS, MIN_MINIBATCH_SIZE
from optuna.exceptions import ExperimentalWarning

from ace_bench.contexts.instruction import Instruction
from ace_bench.core.method import Arena, ContextUpdate, Span, Workload
from ace_bench.methods.dspy_bridge.adapters import ChatFormat
from ace_bench.methods.dspy_bridge.program import examples, score
from ace_bench.methods.dspy_bridge.session import OptimiserSession

_PROPOSALS, _SUMMARIES = 3, 12
"""Calls by candidate (program, module, instruction), and at most to summarise the training samples."""
_PROPOSED, _BASIC = "proposed_instruction", "basic_instruction"


class _Format(ChatFormat):
    """DSPy's chat format, which returns the basic instruction if a proposal fails.

    MIPROv2 itself goes on without a summary that failed, but not without an instruction.
    """

    def __init__(self, session: OptimiserSession):
        super().__init__()
        self._session = session

    def __call__(self, lm: Any, lm_kwargs: Any, signature: Any, demos: Any, inputs: Any) -> Any:
        try:
            return super().__call__(lm, lm_kwargs, signature, demos, inputs)
        except Exception as error:
            self._session.failed(error)
            if _PROPOSED not in signature.output_fields:
                raise
            return [{_PROPOSED: inputs[_BASIC]}]


class _Metric:
    """Scores predictions, and counts how often it is asked to."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> float:
        del example, trace
        self.calls += 1
        return score(prediction)


def workload(auto: str, *, train: int, validation: int, shows: bool) -> Workload:
    """Return bounds of MIPROv2's rollouts and proposals.

    A trial looks at all validation samples, or at 35 and at all now and then. ``shows`` says whether demonstrations are
    searched for, too, which doubles what there is to choose; at the high end each set of them takes an attempt at every
    training sample, and at the low end all trials are of the first program, whose rollouts are recorded.
    """
    settings = AUTO_RUN_SETTINGS[auto]
    candidates, samples = int(settings["n"]), min(validation, int(settings["val_size"]))
    rounds = int(max(2 * (1 + shows) * math.log2(candidates), 1.5 * candidates))
    tried = rounds * samples if samples <= MIN_MINIBATCH_SIZE else 35 * rounds + samples * (rounds // 5 + 1)
    proposals = _PROPOSALS * candidates + _SUMMARIES
    return Workload(
        rollouts=Span(samples, samples + tried + candidates * train * shows), roles={"proposer": Span(0, proposals)}
    )


def search(
    start: Instruction, arena: Arena, *, auto: str, bootstrapped: int, labeled: int
) -> ContextUpdate[Instruction]:
    """Return the combination with the best validation score. Only attempts that were right become demonstrations."""
    session, metric = OptimiserSession(start, arena, "mipro"), _Metric()
    train, validation = examples(arena, "train"), examples(arena, "val")
    with session.open(adapter=_Format(session)), warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)  # of the sampler that MIPROv2 chose
        optimiser = dspy.MIPROv2(
            metric=metric,
            prompt_model=session.proposer,
            auto=auto,
            max_bootstrapped_demos=bootstrapped,
            max_labeled_demos=labeled,
            metric_threshold=1.0,
            num_threads=1,
            seed=arena.seed,
        )
        best = optimiser.compile(session.program, trainset=train, valset=validation)
        context = session.rollouts.context(best.predictors()[0])
    summary = {
        "event": "optimised",
        "metric_calls": metric.calls,
        "rollouts": len(session.rollouts.keys),
        "trials": len(best.trial_logs),
        "validation": best.score,
    }
    return ContextUpdate(context=context, events=(summary, *session.faults))
