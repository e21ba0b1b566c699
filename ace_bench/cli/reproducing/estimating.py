"""What runs will take: calls, tokens and dollars as each run itself estimates them; the length of chains, and memory.

A rehearsal on AppWorld takes minutes, so its runs are estimated by what the paper counts (tables 12 and 14).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
from ace_bench.runners.estimate_text import most_in_words
from ace_bench.runners.identifying import identify
from ace_bench.runners.planning import Composer
from ace_bench.runners.rehearsal import rehearse
from ace_bench.runners.settings import decode
from ace_bench.store.call_log import Account

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
_NOTHING = np.zeros(3)
"""No calls, prompt tokens or completion tokens."""
_STEPS = 10
"""Approximate number of turns of an AppWorld episode (paper, table 14)."""
_SHARE = 0.9
"""Share of the free memory that runs may take."""
_MEMORY, _LIMIT, _USED = (
    Path("/proc/meminfo"),
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory.current"),
)


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """What a run typically takes, and at most.

    ``chain`` are the tokens that are written one after another, ``None`` if that is unknown. ``assumed`` is what the
    bound assumes, "" by the paper's counts.
    """

    typical: Account
    high: Account
    chain: float | None = None
    assumed: str = ""
    price_lists: tuple[str, ...] = ()


class PaperCounts:
    """What runs on AppWorld take, by the paper's own counts of tokens and calls (tables 12 and 14)."""

    def __init__(self, paper: Experiments) -> None:
        self._paper = paper

    def cost(self, planned: PlannedRun, settings: Mapping[str, Any]) -> RunCost | None:
        """Return the cost of a planned run, ``None`` where the paper does not count a part of it."""
        _, method, mode = planned.kind
        sizes = _limit_sizes(_SIZES[APPWORLD], settings["limit"])
        tested = sizes[settings["task"].get("test_split", "test_normal")]
        ends: tuple[Array, Array] | None = (_NOTHING, _NOTHING)
        if mode == "online":
            ends = self._steps(planned, settings, tested)
        elif mode == "offline":
            ends = self._fit(planned, settings, sizes["train"])
        if ends is None:
            return None
        looks = (mode != "online") + bool(settings["mode"].get("before"))
        row = _LIKE.get(method, "ace")
        answers = tested * looks * self._row("14", row) / self._number(f"14/{row}/queries")
        low, high = (end + answers for end in ends)
        return RunCost(typical=_priced(np.sqrt(low * high), settings), high=_priced(high, settings))

    def _fit(self, planned: PlannedRun, settings: Mapping[str, Any], train: int) -> tuple[Array, Array] | None:
        method = planned.option("method")
        if method in (*_BASE, "icl"):
            return _NOTHING, _NOTHING
        if method == "gepa":
            return self._gepa(settings["method"])
        return self._steps(planned, settings, train * settings["mode"]["epochs"])

    def _gepa(self, method: Mapping[str, Any]) -> tuple[Array, Array] | None:
        """Return the cost of the paper's adaptation (``auto=heavy``), in proportion if ``max_metric_calls`` is set.

        Table 12 counts rollouts of GEPA, each of which makes as many calls as one of table 14.
        """
        share = 1.0
        if method.get("max_metric_calls"):
            share = method["max_metric_calls"] / self._number("4a/gepa/rollouts")
        elif method.get("max_full_evals") or method["auto"] != "heavy":
            return None
        row = self._row("12", "gepa")
        row[0] = self._number("12/gepa/calls") * self._number("14/gepa/calls") / self._number("14/gepa/queries")
        return share * row, share * row

    def _steps(self, planned: PlannedRun, settings: Mapping[str, Any], steps: int) -> tuple[Array, Array] | None:
        """Return the cost of adaptation steps: without any retry, and with all rounds of reflection."""
        if planned.option("method") not in _ACE:
            return None
        counts = _sample_counts(planned, settings)
        # Without retries a rollout makes as many calls as one of table 14, each of table 12's size.
        evaluated = self._number("14/ace/calls") / self._number("14/ace/queries")
        calls = {GENERATOR: counts[GENERATOR].low * evaluated}
        low = sum((calls.get(role, span.low) * self._part(role, "calls") for role, span in counts.items()), _NOTHING)
        # At most each round takes what table 12 counts for all rollouts, reflections or curations of a sample.
        high = sum((span.high * self._part(role, "queries") for role, span in counts.items()), _NOTHING)
        return steps * low, steps * high

    def _part(self, role: str, column: str) -> Array:
        """Return what table 12 counts for one call of a role, or for one sample ("queries")."""
        return self._row("12", f"ace_{role}") / self._number(f"12/ace_{role}/{column}")

    def _row(self, table: str, row: str) -> Array:
        """Return the calls, prompt tokens and completion tokens of a row."""
        return np.array([self._number(f"{table}/{row}/{column}") for column in ("calls", "input", "output")])

    def _number(self, ref: str) -> float:
        value = self._paper.cell(ref).value
        assert value is not None  # the cells named here are all printed
        return value


def _priced(counts: Array, settings: Mapping[str, Any]) -> Account:
    """Price tokens at the backbone's list prices, none of them cached."""
    calls, prompt, completion = map(round, counts)
    usage = Usage(prompt=prompt, completion=completion, cached=0)
    return Account(calls=calls, usage=replace(usage, usd=configured_prices(settings["backbone"]).dollars(usage)))


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
        self._costs: dict[tuple[str, ...], RunCost | None] = {}
        self.problems: dict[str, None] = {}

    def cost(self, overrides: Sequence[str]) -> RunCost | None:
        """Return the cost of a run, which is the same for all seeds. It is ``None`` where its data is missing."""
        key = tuple(overrides)
        if key not in self._costs:
            self._costs[key] = self._rehearsed(overrides)
        return self._costs[key]

    def _rehearsed(self, overrides: Sequence[str]) -> RunCost | None:
        try:
            estimate = rehearse(assemble(identify(decode(self._compose.run(overrides)))))
        except AceBenchError as error:
            self.problems[str(error)] = None
            return None
        return RunCost(
            typical=estimate.typical,
            high=estimate.high,
            chain=estimate.chain,
            assumed=most_in_words(limited=estimate.limited, answered_by=estimate.answered_by),
            price_lists=estimate.price_lists,
        )


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
