"""GEPA, by DSPy's own implementation (paper, section 4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ace_bench.contexts.instruction import Instruction, first_instruction
from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.method import Arena, ContextUpdate, Learning, Span, Workload
from ace_bench.core.settings import Count
from ace_bench.core.types import GeneratorSpec, Record
from ace_bench.methods.base import BaseMethod
from ace_bench.methods.optimisers.start import Size, check_optimisable

_MINIBATCH = 3
"""Samples that are reflected on at a time; DSPy's default."""


class Gepa(BaseMethod[Instruction]):
    """Evolves an instruction by reflection on minibatches of the training split, judged on the validation split.

    The budget counts metric calls, which include repeated looks at a rollout: ``auto`` by DSPy's rule (heavy: 7 V +
    1,035 for V validation samples, so 1,434 for AppWorld's 57: paper, table 4a). ``max_metric_calls``, or
    ``max_full_evals`` passes over both splits, comes before ``auto``.

    With ``proposals`` an iteration proposes that many candidates side by side, each from a minibatch of its own: of as
    many parents, or of ``parents``, each with an equal part. ``keep`` bounds how many that improve are kept.
    """

    generator = GeneratorSpec(template="instructed", answer_format="json")
    roles: Mapping[str, tuple[str, ...]] = MappingProxyType({"proposer": ()})  # it is asked in DSPy's own words

    def __init__(  # noqa: PLR0913 - settings, all keyword-only
        self,
        *,
        auto: Size | None,
        max_metric_calls: Count | None,
        max_full_evals: Count | None,
        proposals: Count | None = None,
        parents: Count | None = None,
        keep: Count | None = None,
    ) -> None:
        counted = [value for value in (max_metric_calls, max_full_evals) if value is not None]
        if len(counted) > 1 or not (counted or auto):
            raise SettingError(
                f"auto={auto or 'null'}, max_metric_calls={max_metric_calls or 'null'} and "
                f"max_full_evals={max_full_evals or 'null'}: GEPA takes one budget, so set one of the counts and the "
                "other to null, or both to null and auto"
            )
        self._auto = None if counted else auto
        self._max_metric_calls = max_metric_calls
        self._max_full_evals = max_full_evals
        self._proposals, self._parents, self._keep = proposals or 1, parents or proposals or 1, keep
        lowest = keep or 1
        if self._proposals % self._parents or lowest > self._proposals:
            raise SettingError(
                f"proposals={self._proposals} must be a multiple of parents={self._parents} and at least keep={lowest}"
            )

    def start(self, arena: Arena) -> Instruction:
        """Return the task's own instruction."""
        return first_instruction(arena)

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` for a budget that the first look at the validation split uses up, and the like."""
        check_optimisable("gepa", arena)
        validation = len(arena.samples("val"))
        calls = self._max_metric_calls
        if calls is not None and calls <= validation:
            raise ConfigError(
                f"method.max_metric_calls={calls} is used up by the first evaluation of the "
                f"{validation} validation samples; raise it above that, or lower limit.val"
            )

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return what the budget in metric calls allows.

        At the low end minibatches repeat rollouts that are recorded, and nothing is proposed. At the high end none
        repeats, the last iteration passes the budget (GEPA checks it before an iteration), and each iteration proposes.
        """
        del learning
        train, validation = len(arena.samples("train")), len(arena.samples("val"))
        budget = self.metric_calls(train, validation)
        searched = max(0, budget - validation)
        last = 2 * self._proposals * _MINIBATCH + (self._keep or self._proposals) * validation
        return Workload(
            rollouts=Span(validation + min(train, searched // 2), budget + last),
            roles={"proposer": Span(0, searched // _MINIBATCH + self._proposals)},
        )

    def fit(self, context: Instruction, arena: Arena) -> ContextUpdate[Instruction]:
        """Return the candidate with the best validation score, and an event for each candidate that was kept.

        Repeated, GEPA makes the same calls in the same order.
        """
        import dspy  # takes a second
        from gepa.strategies.proposal_sampling import PxNSampling
        from gepa.strategies.proposal_selection import TopKImprovements

        from ace_bench.methods.optimisers.dspy_bridge import GepaProposer, OptimiserSession, ParallelProposer

        session = OptimiserSession(context, arena, "gepa")
        proposer = GepaProposer(session) if self._proposals == 1 else ParallelProposer(session)
        with session.open():
            optimiser = dspy.GEPA(
                metric=_metric,
                auto=self._auto,
                max_metric_calls=self._max_metric_calls,
                max_full_evals=self._max_full_evals,
                reflection_minibatch_size=_MINIBATCH,
                reflection_lm=session.proposer,
                instruction_proposer=proposer,
                num_threads=self._proposals,
                track_stats=True,
                seed=arena.seed,
                gepa_kwargs={
                    "sampling_strategy": PxNSampling(p=self._parents, n=self._proposals // self._parents),
                    "selection_strategy": TopKImprovements(k=self._keep) if self._keep else None,
                    "callbacks": [proposer],
                },
            )
            results = session.compile(optimiser).detailed_results
        summary = session.summary(metric_calls=results.total_metric_calls, budget=optimiser.max_metric_calls)
        faults = session.faults if self._proposals == 1 else sorted(session.faults, key=str)  # they came side by side
        return ContextUpdate(context=session.context, events=(summary, *_candidates(results), *faults))

    def metric_calls(self, train: int, validation: int) -> int:
        """Return the budget in metric calls, by DSPy's own rule where it has a name, for one predictor."""
        if self._auto is not None:
            import dspy
            from dspy.teleprompt.gepa.gepa import AUTO_RUN_SETTINGS

            optimiser = dspy.GEPA(metric=_metric, auto=self._auto, reflection_lm=object())
            candidates = AUTO_RUN_SETTINGS[self._auto]["n"]
            return int(optimiser.auto_budget(num_preds=1, num_candidates=candidates, valset_size=validation))
        return self._max_metric_calls or (self._max_full_evals or 0) * (train + validation)


def _metric(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> Any:
    import dspy

    from ace_bench.methods.optimisers.dspy_program import feedback_text, score

    del gold, trace, pred_name, pred_trace
    return dspy.Prediction(score=score(pred), feedback=feedback_text(pred))


def _candidates(results: Any) -> Sequence[Record]:
    return [
        {
            "event": "candidate",
            "number": number,
            "parents": [parent for parent in results.parents[number] if parent is not None],
            "validation": round(100 * results.val_aggregate_scores[number], 4),
            "metric_calls": results.discovery_eval_counts[number],
            "instruction": candidate.predictors()[0].signature.instructions,
        }
        for number, candidate in enumerate(results.candidates)
    ]
