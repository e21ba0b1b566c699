"""What a planned comparison will cost where no runs say it: the estimate that `ace-bench run` makes, by samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from ace_bench.cli.reproducing.estimating import Rehearsals
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders
from ace_bench.core.statistics import Array
from ace_bench.core.types import Usage
from ace_bench.report.power import Assumed
from ace_bench.runners.estimate_text import cost_in_words
from ace_bench.runners.planning import Composer
from ace_bench.runners.settings import decode
from ace_bench.runners.small_run import REHEARSED
from ace_bench.store.call_log import Account

Costs = Mapping[tuple[int, int], Account]
"""By seeds and samples."""
_FEW, _MORE = REHEARSED, REHEARSED + 1
"""Tested samples of two estimates, from which those of other numbers follow: both rehearse the same samples."""


def estimated_costs(
    words: Sequence[str], base: str, seeds: Sequence[int], samples: Sequence[int], *, assumed: Assumed
) -> Costs:
    """Estimate the runs of a method and its base. ``words`` are settings of both, such as ``method=ace,base``.

    ``base`` is a word that only the base has (``method=base`` if it is empty). Raises ``ConfigError`` where a run
    cannot be estimated.
    """
    named = ",".join(word.removeprefix("method=") for word in words if word.startswith("method=")).split(",")
    base_method = (base or "method=base").removeprefix("method=")
    methods = [name for name in named if name and name != base_method] or ["ace"]
    if len(methods) > 1 or "," in base_method or "=" in base_method:
        raise ConfigError("a plan is for one method and its base; write method=ace,base, or --base method=NAME")
    settings = [word for word in words if not word.startswith("method=")]
    shared = [word for word in settings if not word.startswith("method.")]
    estimates = _Estimates()
    ours = estimates.by_samples([*settings, f"method={methods[0]}"])
    theirs = estimates.by_samples([*shared, f"method={base_method}"])
    costs = {}
    for count, tested in product(seeds, samples):
        of_base = (count if assumed.base_adapts else 1) * (theirs @ (1, tested))
        costs[count, tested] = _account(count * (ours @ (1, tested)) + of_base)
    return costs


def cost_note(costs: Costs) -> str:
    """Say what the smallest design costs, and where that is from."""
    (seeds, samples), cost = next(iter(costs.items()))
    return (
        f"No such runs are there, so the cost is what `ace-bench run` estimates: {seeds} seeds x {samples} samples "
        f"cost about {cost_in_words(cost)}, with the base."
    )


class _Estimates:
    """Estimates single runs."""

    def __init__(self) -> None:
        self._compose = Composer(config_folders())
        self._rehearsals = Rehearsals(self._compose)

    def by_samples(self, words: Sequence[str]) -> Array:
        """Return calls, prompt tokens, completion tokens and dollars as rows: of a run, and of each tested sample."""
        few, more = (self._rehearsed(words, tested) for tested in (_FEW, _MORE))
        each = (more - few) / (_MORE - _FEW)
        if not each[0] > 0:
            raise ConfigError(f"the cost cannot be estimated: there are fewer than {_MORE} samples to test on")
        return np.stack([few - _FEW * each, each], axis=1)

    def _rehearsed(self, words: Sequence[str], tested: int) -> Array:
        limits = {**decode(self._compose.run(words)).limits, "test": tested}
        limit = ",".join(f"{split}:{'null' if most is None else most}" for split, most in limits.items())
        unlimited = [word for word in words if not word.startswith("limit=")]
        cost = self._rehearsals.cost([*unlimited, f"limit={{{limit}}}"])
        if cost is None:
            raise ConfigError(f"the cost cannot be estimated: {'; '.join(self._rehearsals.problems)}")
        usage = cost.typical.usage
        known = [cost.typical.calls, usage.prompt, usage.completion, usage.usd]
        return np.array([np.nan if amount is None else amount for amount in known], dtype=float)


def _account(amounts: Array) -> Account:
    calls, prompt, completion = (None if np.isnan(amount) else round(amount) for amount in amounts[:3])
    usd = None if np.isnan(amounts[3]) else float(amounts[3])
    return Account(calls=calls or 0, usage=Usage(prompt=prompt, completion=completion, usd=usd))
