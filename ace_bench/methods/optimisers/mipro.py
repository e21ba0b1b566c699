"""MIPROv2: instruction and demonstrations chosen together, by DSPy's own implementation (paper, section 4.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import count
from types import MappingProxyType
from typing import Any

from ace_bench.contexts.instruction import Instruction, first_instruction
from ace_bench.core.method import Arena, ContextUpdate, Learning, Span, Workload
from ace_bench.core.settings import Whole
from ace_bench.core.types import GeneratorSpec, Labels
from ace_bench.methods.base import BaseMethod
from ace_bench.methods.optimisers.start import Size, check_optimisable

_PROPOSALS, _SUMMARIES = 3, 12
"""Calls by candidate (program, module, instruction), and at most to summarise the training samples."""


class Mipro(BaseMethod[Instruction]):
    """Proposes instructions and sets of demonstrations, and searches their combinations with Bayesian optimisation.

    ``auto`` sets the number of candidates and trials by DSPy's rule (paper: heavy). A set holds up to ``bootstrapped``
    attempts that were right, filled up with reference answers to ``labeled`` examples; the latter need labels=gold
    and are left out otherwise.
    """

    generator = GeneratorSpec(template="instructed", answer_format="json")
    roles: Mapping[str, tuple[str, ...]] = MappingProxyType({"proposer": ()})  # it is asked in DSPy's own words

    def __init__(self, *, auto: Size, bootstrapped: Whole, labeled: Whole) -> None:
        self._auto = auto
        self._bootstrapped = bootstrapped
        self._labeled = labeled

    def start(self, arena: Arena) -> Instruction:
        """Return the task's own instruction, without demonstrations."""
        return first_instruction(arena)

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` without anything to optimise by."""
        check_optimisable("mipro", arena)

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return bounds of MIPROv2's rollouts and proposals.

        A trial looks at all validation samples, or at 35 and at all now and then. Demonstrations double what there is
        to choose. At the high end each set of them takes an attempt at every training sample; at the low end all trials
        are of the first program, whose rollouts are recorded.
        """
        from dspy.teleprompt.mipro_optimizer_v2 import AUTO_RUN_SETTINGS, MIN_MINIBATCH_SIZE

        has_demonstrations = self._bootstrapped + self._labeled > 0
        settings = AUTO_RUN_SETTINGS[self._auto]
        candidates, samples = int(settings["n"]), min(len(arena.samples("val")), int(settings["val_size"]))
        rounds = int(max(2 * (1 + has_demonstrations) * math.log2(candidates), 1.5 * candidates))
        tried = rounds * samples if samples <= MIN_MINIBATCH_SIZE else 35 * rounds + samples * (rounds // 5 + 1)
        bootstrapped = candidates * len(arena.samples("train")) * has_demonstrations
        return Workload(
            rollouts=Span(samples, samples + tried + bootstrapped),
            roles={"proposer": Span(0, _PROPOSALS * candidates + _SUMMARIES)},
            asked_again=("proposer",),
        )

    def fit(self, context: Instruction, arena: Arena) -> ContextUpdate[Instruction]:
        """Return the combination with the best validation score; only attempts that were right become demonstrations.

        Repeated, MIPROv2 makes the same calls in the same order.
        """
        import dspy  # takes a second

        from ace_bench.methods.optimisers.dspy_bridge import MiproFormat, OptimiserSession
        from ace_bench.methods.optimisers.dspy_program import score

        calls = count()

        def metric(example: Any, prediction: Any, trace: Any = None) -> float:
            del example, trace
            next(calls)
            return score(prediction)

        session = OptimiserSession(context, arena, "mipro")
        with session.open(adapter=MiproFormat(session)):
            optimiser = dspy.MIPROv2(
                metric=metric,
                prompt_model=session.proposer,
                auto=self._auto,
                max_bootstrapped_demos=self._bootstrapped,
                max_labeled_demos=self._labeled if arena.labels is Labels.GOLD else 0,
                metric_threshold=1.0,
                num_threads=1,
                seed=arena.seed,
            )
            best = session.compile(optimiser)
        summary = session.summary(metric_calls=next(calls), trials=len(best.trial_logs), validation=best.score)
        return ContextUpdate(context=session.context, events=(summary, *session.faults))
