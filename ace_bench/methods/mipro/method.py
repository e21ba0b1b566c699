"""MIPROv2 as an optimiser: settings, and checks before the first call."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ace_bench.contexts.instruction import Instruction
from ace_bench.core.method import Arena, ContextUpdate, Learning, Workload
from ace_bench.core.settings import Whole
from ace_bench.core.types import GeneratorSpec, Labels
from ace_bench.methods.base import BaseMethod
from ace_bench.methods.optimising import Size, check_optimisable, first_instruction


class Mipro(BaseMethod[Instruction]):
    """Proposes instructions and sets of demonstrations, and searches their combinations with Bayesian optimisation.

    ``auto`` sets the number of candidates and trials by DSPy's rule (paper: heavy). A set holds up to ``bootstrapped``
    attempts that were right, filled up with reference answers to ``labeled`` examples; the latter need labels=gold
    and are left out otherwise.
    """

    generator = GeneratorSpec(template="instructed", reply="json")
    roles: Mapping[str, tuple[str, ...]] = MappingProxyType({"proposer": ()})  # it is asked in DSPy's own words

    def __init__(self, *, auto: Size, bootstrapped: Whole, labeled: Whole) -> None:
        self._auto = auto
        self._bootstrapped = bootstrapped
        self._labeled = labeled

    def start(self, arena: Arena) -> Instruction:
        """Return the task's own instruction, without demonstrations."""
        return first_instruction(arena)

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` where there is nothing to optimise by."""
        check_optimisable("mipro", arena)

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return bounds of what DSPy's trials take, and the attempts that demonstrations are drawn from."""
        del learning
        from ace_bench.methods.mipro.search import workload

        shows = self._bootstrapped + self._labeled > 0
        train, validation = len(arena.samples("train")), len(arena.samples("val"))
        return workload(self._auto, train=train, validation=validation, shows=shows)

    def fit(self, context: Instruction, arena: Arena) -> ContextUpdate[Instruction]:
        """Run MIPROv2; repeated, it makes the same calls in the same order."""
        from ace_bench.methods.mipro.search import search  # DSPy takes a second to import

        labeled = self._labeled if arena.labels is Labels.GOLD else 0
        return search(context, arena, auto=self._auto, bootstrapped=self._bootstrapped, labeled=labeled)
