"""The cost of runs that the paper does not count: from a few samples, rehearsed with the embedded reader."""

from __future__ import annotations

from collections.abc import Sequence

from ace_bench.cli.reproducing.estimating import UNKNOWN, Cost, CostRange, known
from ace_bench.core.errors import AceBenchError
from ace_bench.runners.build import assemble
from ace_bench.runners.identifying import identify
from ace_bench.runners.planning import Composer
from ace_bench.runners.rehearsal import rehearse
from ace_bench.store.call_log import Account


class Rehearsals:
    """Estimates runs as ``dry_run=true`` does; ``problems`` says why some could not be estimated."""

    def __init__(self, compose: Composer) -> None:
        """``compose`` turns overrides into a configuration."""
        self._compose = compose
        self._costs: dict[tuple[str, ...], CostRange] = {}
        self.problems: dict[str, None] = {}

    def cost(self, overrides: Sequence[str]) -> CostRange:
        """Return the cost of a run, which is the same for all seeds; unknown where its data is missing."""
        key = tuple(overrides)
        if key not in self._costs:
            self._costs[key] = self._rehearsed(key)
        return self._costs[key]

    def _rehearsed(self, overrides: Sequence[str]) -> CostRange:
        try:
            estimate = rehearse(assemble(identify(self._compose.run(overrides))))
        except AceBenchError as error:
            self.problems[str(error)] = None
            return known(UNKNOWN)
        return CostRange(low=_cost(estimate.low), high=_cost(estimate.high))


def _cost(account: Account) -> Cost:
    usage = account.usage
    return Cost(calls=account.calls, prompt=usage.prompt, completion=usage.completion, usd=usage.usd, seconds=None)
