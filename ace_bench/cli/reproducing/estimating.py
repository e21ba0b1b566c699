"""What runs will take: calls, tokens, dollars and hours by the paper's own counts; the length of chains, and memory.

On AppWorld the paper counts tokens and calls by query (tables 12 and 14) and seconds (table 4a); of other tasks it only
gives the dollars and seconds of online adaptation on FiNER (table 4b). Everything else is unknown here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ace_bench.backbones.openai_compatible.list_prices import configured_prices
from ace_bench.core.backbones import GENERATOR
from ace_bench.core.embedders import HASHING
from ace_bench.core.errors import AceBenchError
from ace_bench.core.identity import with_embedder
from ace_bench.core.method import Learning, Method, Span, exactly
from ace_bench.core.settings import build
from ace_bench.core.statistics import Array
from ace_bench.core.types import Labels, Usage
from ace_bench.report.experiments import Experiments
from ace_bench.report.planned import PlannedRun
from ace_bench.runners.build import assemble
from ace_bench.runners.identifying import identify
from ace_bench.runners.planning import Composer
from ace_bench.runners.rehearsal import rehearse
from ace_bench.runners.settings import decode

_SIZES: Mapping[str, Mapping[str, int]] = {
    "appworld": {"train": 90, "val": 57, "test_normal": 168, "test_challenge": 417},
    "finer": {"train": 1000, "val": 500, "test": 441},
    "formula": {"train": 500, "val": 300, "test": 200},
    "ddxplus": {"train": 1000, "val": 372, "test": 1764},
    "bird_sql": {"train": 1000, "val": 500, "test": 1534},
}
"""Samples by task and split, of the official data as the paper uses it."""

APPWORLD = "appworld"
_ACE, _BASE = ("ace", "ace_rich", "combee"), ("base", "ace_empty")
_LIKE = {**dict.fromkeys(_BASE, "react"), "gepa": "gepa"}
"""Rows of table 14 by method. Methods whose context is long are counted as ACE."""
_OTHER_SIZES = {"train": 1000, "val": 500, "test": 1000}
_RUN_MIB, _ENGINE_MIB, _EPISODE_MIB = 20, 350, 100
"""Measured: 5 MiB for a run on questions, in the process that it shares with others. AppWorld takes 390
MiB with one episode at a time and 720 MiB with eight, on the mini-world. Twice that is reserved for an episode, because
real worlds are larger."""
_STEPS = 10
"""Approximate number of turns of an AppWorld episode (paper, table 14)."""
_SHARE = 0.9
"""Share of the free memory that runs may take."""
_MEMORY, _LIMIT, _USED = (
    Path("/proc/meminfo"),
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory.current"),
)


COUNTED = ("calls", "prompt", "completion", "usd", "seconds")
"""What a cost is made of: an array of these, where NaN is unknown, as is every sum with it.

The cost of a run has three lines: without any retry, typical, and with all rounds of reflection. Typical differs from
the last only where replies may be longer still.
"""
UNKNOWN = np.full((3, len(COUNTED)), np.nan)


def cost(
    *, calls: float = 0.0, prompt: float = 0.0, completion: float = 0.0, usd: float = 0.0, seconds: float = 0.0
) -> Array:
    """Return a line of costs."""
    return np.array([calls, prompt, completion, usd, seconds])


def between(low: Array, high: Array) -> Array:
    """Return the cost of a run, typically the high end."""
    return np.stack([low, high, high])


class Estimator:
    """Reads costs off the paper's tables."""

    def __init__(self, paper: Experiments) -> None:
        self._paper = paper

    def cost(self, planned: PlannedRun, settings: Mapping[str, Any]) -> Array:
        """Estimate a planned run from its configuration. Parts that the paper does not count are unknown."""
        task, method, mode = planned.kind
        if task not in _SIZES:
            return UNKNOWN
        sizes = _limit_sizes(_SIZES[task], settings["limit"])
        tested = sizes[settings["task"].get("test_split", "test")]
        if mode == "online":
            return _price_tokens(tested * self._step(planned, settings), settings)
        learnt = self._fit(planned, settings, sizes["train"]) if mode == "offline" else np.zeros_like(UNKNOWN)
        looks, evaluation = 1 + bool(settings["mode"].get("before")), self._evaluation(task, method, settings)
        return _price_tokens(learnt, settings) + _price_tokens(
            tested * looks * between(evaluation, evaluation), settings
        )

    def _fit(self, planned: PlannedRun, settings: Mapping[str, Any], train: int) -> Array:
        task, method, _ = planned.kind
        if method in (*_BASE, "icl"):
            return np.zeros_like(UNKNOWN)
        if method == "gepa" and task == APPWORLD:
            return self._gepa(settings["method"])
        if method in (*_ACE, "dc"):
            steps: int = train * settings["mode"]["epochs"]
            return steps * self._step(planned, settings)
        return UNKNOWN

    def _gepa(self, method: Mapping[str, Any]) -> Array:
        """Return the cost of the paper's adaptation (``auto=heavy``), in proportion if ``max_metric_calls`` is set.

        Table 12 counts rollouts of GEPA, each of which makes as many calls as one of table 14.
        """
        share = 1.0
        if method.get("max_metric_calls"):
            share = method["max_metric_calls"] / self._number("4a/gepa/rollouts")
        elif method.get("max_full_evals") or method["auto"] != "heavy":
            return UNKNOWN
        row = self._row("12", "gepa") + cost(seconds=self._number("4a/gepa/latency"))
        row[0] = self._number("12/gepa/calls") * self._number("14/gepa/calls") / self._number("14/gepa/queries")
        return share * between(row, row)

    def _step(self, planned: PlannedRun, settings: Mapping[str, Any]) -> Array:
        """Return the cost of one adaptation step."""
        task, method, _ = planned.kind
        if task != APPWORLD:
            return self._single_turn_step(planned, settings)
        if method not in _ACE:
            return UNKNOWN
        counts = _sample_counts(planned, settings)
        # Without retries a rollout makes as many calls as one of table 14, each of table 12's size.
        evaluated = self._number("14/ace/calls") / self._number("14/ace/queries")
        calls = {GENERATOR: counts[GENERATOR].low * evaluated}
        low = sum(calls.get(role, span.low) * self._part(role, "calls") for role, span in counts.items())
        # At most each round takes what table 12 counts for all rollouts, reflections or curations of a sample.
        high = sum(span.high * self._part(role, "queries") for role, span in counts.items())
        attempt = self._number("4a/ace/latency") / self._number("4a/ace/rollouts")
        rollouts = counts[GENERATOR]
        return between(low + cost(seconds=attempt * rollouts.low), high + cost(seconds=attempt * rollouts.high))

    def _single_turn_step(self, planned: PlannedRun, settings: Mapping[str, Any]) -> Array:
        """Return the calls of a step, and on FiNER the dollars and seconds that the paper measured with retries."""
        task, method, _ = planned.kind
        counts = _sample_counts(planned, settings).values()
        usd = seconds = np.nan
        if task == "finer":
            row = "dc" if method == "dc" else "ace"
            usd, seconds = (self._number(f"4b/{row}/{name}") / _SIZES[task]["test"] for name in ("dollars", "latency"))
            usd = usd if settings["backbone"].get("model") == "DeepSeek-V3.1" else np.nan
        low, high = (
            cost(calls=calls, prompt=np.nan, completion=np.nan, usd=usd, seconds=seconds)
            for calls in (sum(span.low for span in counts), sum(span.high for span in counts))
        )
        return between(low, high)

    def _evaluation(self, task: str, method: str, settings: Mapping[str, Any]) -> Array:
        if task != APPWORLD:
            return cost(calls=1.0, prompt=np.nan, completion=np.nan, usd=np.nan, seconds=np.nan)
        row = _LIKE.get(method, "ace")
        rollout = self._number("4a/ace/latency") / self._number("4a/ace/rollouts") / settings["concurrency"]
        return self._row("14", row) / self._number(f"14/{row}/queries") + cost(seconds=rollout)

    def _part(self, role: str, column: str) -> Array:
        """Return what table 12 counts for one call of a role, or for one sample ("queries")."""
        return self._row("12", f"ace_{role}") / self._number(f"12/ace_{role}/{column}")

    def _row(self, table: str, row: str) -> Array:
        prompt, completion, calls = (self._number(f"{table}/{row}/{column}") for column in ("input", "output", "calls"))
        return cost(calls=calls, prompt=prompt, completion=completion)

    def _number(self, ref: str) -> float:
        value = self._paper.cell(ref).value
        assert value is not None  # the cells named here are all printed
        return value


def _price_tokens(costs: Array, settings: Mapping[str, Any]) -> Array:
    """Price known tokens at the backbone's list prices, none of them cached."""
    prices = configured_prices(settings["backbone"])
    priced = costs.copy()
    for line in priced:
        prompt, completion = line[1:3]
        if not np.isnan(prompt):
            tokens = Usage(prompt=round(prompt), completion=round(completion), cached=0)
            dollars = prices.dollars(tokens)
            line[3] = np.nan if dollars is None else dollars
    return priced


def _limit_sizes(sizes: Mapping[str, int], limit: Any) -> dict[str, int]:
    """Return the sizes of the splits under the setting ``limit``."""
    limits = limit if isinstance(limit, Mapping) else dict.fromkeys(("train", "val", "test"), limit)
    wanted = ((split, size, limits.get(split.partition("_")[0])) for split, size in sizes.items())
    return {split: size if most is None else min(most, size) for split, size, most in wanted}


def _sample_counts(planned: PlannedRun, settings: Mapping[str, Any]) -> Mapping[str, Span]:
    """Return the generator's rollouts and the other roles' calls for one sample, as the method says, or one of each.

    The low end is a sample whose first rollout is right. The high end is a sample that is wrong after all rounds of
    reflection.
    """
    method: Method[Any] = build(with_embedder(settings, HASHING)["method"], "method")
    split = "train" if planned.option("mode") == "offline" else "test"
    acts = planned.option("task") == APPWORLD
    labelled: Any = SimpleNamespace(labels=Labels(settings["labels"]))  # what step learners read of an arena
    needed = method.workload(labelled, Learning(samples=1, steps=2, split=split, acts=acts))
    return {GENERATOR: needed.rollouts, **needed.roles} if needed else {GENERATOR: exactly(1), "learner": exactly(1)}


class Rehearsals:
    """Estimates runs as ``dry_run=true`` does. ``problems`` says why some could not be estimated."""

    def __init__(self, compose: Composer) -> None:
        """``compose`` turns overrides into a configuration."""
        self._compose = compose
        self._costs: dict[tuple[str, ...], Array] = {}
        self.problems: dict[str, None] = {}

    def cost(self, overrides: Sequence[str]) -> Array:
        """Return the cost of a run, which is the same for all seeds. It is unknown where its data is missing."""
        key = tuple(overrides)
        if key in self._costs:
            return self._costs[key]
        self._costs[key] = UNKNOWN
        try:
            estimate = rehearse(assemble(identify(decode(self._compose.run(overrides)))))
            accounts = ((account.calls, account.usage) for account in (estimate.low, estimate.typical, estimate.high))
            rows = [(calls, usage.prompt, usage.completion, usage.usd, None) for calls, usage in accounts]
            self._costs[key] = np.array(rows, dtype=float)  # None is NaN
        except AceBenchError as error:
            self.problems[str(error)] = None
        return self._costs[key]


def chain_of(planned: PlannedRun, settings: Mapping[str, Any]) -> float:
    """Return about how many calls of a run must follow one another, to compare runs with each other."""
    task, method, mode = planned.kind
    sizes = _limit_sizes(_SIZES.get(task, _OTHER_SIZES), settings["limit"])
    tested = max(size for split, size in sizes.items() if split.startswith("test"))
    turns = _STEPS if task == APPWORLD else 1
    waves = float(turns * tested / settings["concurrency"])
    if mode == "evaluate" or method in (*_BASE, "icl"):
        return waves
    if method in ("gepa", "mipro"):
        return waves + turns * sizes["train"]
    at_once: int = settings["mode"]["batch_size"]
    learnt: int = tested if mode == "online" else sizes["train"] * settings["mode"]["epochs"]
    counts = _sample_counts(planned, settings).items()
    calls = sum((turns if role == GENERATOR else 1) * (span.low + span.high) / 2 for role, span in counts)
    return waves + learnt / at_once * calls


def memory_of(planned: PlannedRun, settings: Mapping[str, Any]) -> int:
    """Return about how many MiB a run takes with its processes. AppWorld's engine counts with its episodes."""
    engine = _ENGINE_MIB + _EPISODE_MIB * int(settings["concurrency"])
    return _RUN_MIB + engine * (planned.option("task") == APPWORLD)


def free_memory() -> int | None:
    """Return how many MiB the runs of this command may take together, or ``None`` if this system does not say."""
    try:
        lines = dict(line.split(":", 1) for line in _MEMORY.read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) / 1024
    except (OSError, KeyError, ValueError):
        return None
    with suppress(OSError, ValueError):  # there may be no control group, or one without a limit
        free = min(free, (int(_LIMIT.read_text()) - int(_USED.read_text())) / 1024**2)
    return int(_SHARE * free)
