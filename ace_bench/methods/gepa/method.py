"""GEPA as an optimiser: settings, budget, and checks before the first call."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ace_bench.contexts.instruction import Instruction
from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.method import Arena, ContextUpdate, Learning, Span, Workload
from ace_bench.core.settings import Count
from ace_bench.core.types import GeneratorSpec
from ace_bench.methods.base import BaseMethod
from ace_bench.methods.gepa.budget import MetricBudget
from ace_bench.methods.optimising import Size, check_optimisable, first_instruction


class Gepa(BaseMethod[Instruction]):
    """Evolves an instruction by reflection on minibatches of the training split, judged on the validation split.

    The budget counts metric calls, which include repeated looks at a rollout: ``auto`` by DSPy's rule (heavy: 7 V +
    1,035 for V validation samples, so 1,434 for AppWorld's 57: paper, table 4a). ``max_metric_calls``, or
    ``max_full_evals`` passes over both splits, comes before ``auto``. ``minibatch`` samples are reflected on at a time
    (DSPy: 3).
    """

    generator = GeneratorSpec(template="instructed", reply="json")
    roles: Mapping[str, tuple[str, ...]] = MappingProxyType({"proposer": ()})  # it is asked in DSPy's own words

    def __init__(
        self, *, auto: Size | None, max_metric_calls: Count | None, max_full_evals: Count | None, minibatch: Count
    ) -> None:
        counted = [value for value in (max_metric_calls, max_full_evals) if value is not None]
        if len(counted) > 1 or not (counted or auto):
            raise SettingError(
                f"auto={auto or 'null'}, max_metric_calls={max_metric_calls or 'null'} and "
                f"max_full_evals={max_full_evals or 'null'}: GEPA takes one budget, so set one of the counts and the "
                "other to null, or both to null and auto"
            )
        self._budget = MetricBudget(
            auto=None if counted else auto, max_metric_calls=max_metric_calls, max_full_evals=max_full_evals
        )
        self._minibatch = minibatch

    def start(self, arena: Arena) -> Instruction:
        """Return the task's own instruction."""
        return first_instruction(arena)

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` for a budget that the first look at the validation split uses up, and the like."""
        check_optimisable("gepa", arena)
        validation = len(arena.samples("val"))
        calls = self._budget.max_metric_calls
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
        from ace_bench.methods.gepa.evolve import metric_calls

        train, validation = len(arena.samples("train")), len(arena.samples("val"))
        budget = metric_calls(self._budget, train=train, validation=validation)
        searched = max(0, budget - validation)
        return Workload(
            rollouts=Span(validation + min(train, searched // 2), budget + 2 * self._minibatch + validation),
            roles={"proposer": Span(0, searched // self._minibatch + 1)},
        )

    def fit(self, context: Instruction, arena: Arena) -> ContextUpdate[Instruction]:
        """Run GEPA; repeated, it makes the same calls in the same order."""
        from ace_bench.methods.gepa.evolve import evolve  # DSPy takes a second to import

        return evolve(context, arena, budget=self._budget, minibatch=self._minibatch)
