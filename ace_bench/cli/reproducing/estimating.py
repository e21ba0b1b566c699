"""The cost of runs by the paper's own counts: calls, tokens, dollars and hours, from no retry to all of them.

On AppWorld the paper counts tokens and calls by query (tables 12 and 14) and seconds (table 4a); of other tasks it only
gives the dollars and seconds of online adaptation on FiNER (table 4b). Everything else is unknown here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.core.backbones import GENERATOR
from ace_bench.core.embedders import HASHING, with_embedder
from ace_bench.core.errors import AceBenchError
from ace_bench.core.method import Learning, Method, Span, Workload, exactly
from ace_bench.core.types import Labels, Usage
from ace_bench.report.paper.tables import Paper
from ace_bench.runners.build import assemble
from ace_bench.runners.identifying import build_part, identify
from ace_bench.runners.planning import Composer
from ace_bench.runners.rehearsal import rehearse
from ace_bench.store.call_log import Account

SIZES: Mapping[str, Mapping[str, int]] = {
    "appworld": {"train": 90, "val": 57, "test_normal": 168, "test_challenge": 417},
    "finer": {"train": 1000, "val": 500, "test": 441},
    "formula": {"train": 500, "val": 300, "test": 200},
    "ddxplus": {"train": 1000, "val": 372, "test": 1764},
    "bird_sql": {"train": 1000, "val": 500, "test": 1534},
}
"""Samples by task and split, of the official data as the paper uses it."""

APPWORLD = "appworld"
_LIKE = {"base": "react", "gepa": "gepa"}
"""Rows of table 14 by method; methods whose context is long are counted as ACE."""
LEARNING_NOTHING = ("base", "icl")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """``None`` is unknown."""

    calls: float | None = 0.0
    prompt: float | None = 0.0
    completion: float | None = 0.0
    usd: float | None = 0.0
    seconds: float | None = 0.0

    def __add__(self, other: Cost) -> Cost:
        """Sum; a sum with an unknown part is unknown."""
        return Cost(**{name: None if None in (a, b) else a + b for name, a, b in _pairs(self, other)})

    def times(self, factor: float) -> Cost:
        """Return this cost for ``factor`` samples."""
        return Cost(**{name: None if a is None else a * factor for name, a, _ in _pairs(self, self)})


UNKNOWN = Cost(calls=None, prompt=None, completion=None, usd=None, seconds=None)


@dataclass(frozen=True, kw_only=True)
class CostRange:
    """The cost without any retry, and with all rounds of reflection; ``typical`` where replies may be longer still."""

    low: Cost = Cost()
    high: Cost = Cost()
    typical: Cost | None = None

    def __add__(self, other: CostRange) -> CostRange:
        return CostRange(low=self.low + other.low, high=self.high + other.high)

    def times(self, factor: float) -> CostRange:
        """Return this cost for ``factor`` samples."""
        return CostRange(low=self.low.times(factor), high=self.high.times(factor))

    @property
    def ends(self) -> tuple[Cost, Cost, Cost]:
        """Low, typical and high."""
        return self.low, self.typical or self.high, self.high


def known(cost: Cost) -> CostRange:
    """Return a range of one cost."""
    return CostRange(low=cost, high=cost)


class Estimator:
    """Reads costs off the paper's tables."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper

    def cost(self, settings: Mapping[str, Any]) -> CostRange:
        """Estimate a run by its composed configuration; what the paper does not count is unknown."""
        return sum((_priced(part, settings) for part in self._parts(settings)), CostRange())

    def _parts(self, settings: Mapping[str, Any]) -> Iterator[CostRange]:
        """Yield adaptation and evaluation."""
        task, method, mode = (option_of(settings[group]["_target_"]) for group in ("task", "method", "mode"))
        sizes = limited(SIZES[task], settings["limit"])
        tested = sizes[settings["task"].get("test_split", "test") if task == APPWORLD else "test"]
        if mode == "offline":
            yield self._fit(task, method, settings, sizes["train"])
        if mode == "online":
            yield self._step(task, method, settings).times(tested)
        else:
            looks = 1 + bool(settings["mode"].get("before"))
            yield known(self._evaluation(task, method, settings)).times(tested * looks)

    def _fit(self, task: str, method: str, settings: Mapping[str, Any], train: int) -> CostRange:
        if method in LEARNING_NOTHING:
            return CostRange()
        if method == "gepa" and task == APPWORLD:
            return known(self._gepa(settings["method"]))
        if method in ("ace", "dc"):
            return self._step(task, method, settings).times(train * settings["mode"]["epochs"])
        return known(UNKNOWN)

    def _gepa(self, method: Mapping[str, Any]) -> Cost:
        """The paper's one adaptation with ``auto=heavy``, in proportion where ``max_metric_calls`` is set.

        Table 12 counts rollouts of GEPA, each of which makes as many calls as one of table 14.
        """
        share = 1.0
        if method.get("max_metric_calls"):
            share = method["max_metric_calls"] / self._number("4a/gepa/rollouts")
        elif method.get("max_full_evals") or method["auto"] != "heavy":
            return UNKNOWN
        calls = self._number("12/gepa/calls") * self._number("14/gepa/calls") / self._number("14/gepa/queries")
        row = replace(self._row("12", "gepa"), calls=calls, seconds=self._number("4a/gepa/latency"))
        return row.times(share)

    def _step(self, task: str, method: str, settings: Mapping[str, Any]) -> CostRange:
        """The cost of one adaptation step."""
        if task != APPWORLD:
            return self._single_turn_step(task, method, settings)
        if method != "ace":
            return known(UNKNOWN)
        counts = sample_counts(settings)
        # Without retries a rollout makes as many calls as one of table 14, each of table 12's size.
        evaluated = self._number("14/ace/calls") / self._number("14/ace/queries")
        calls = {GENERATOR: counts[GENERATOR].low * evaluated}
        low = (self._call(role).times(calls.get(role, span.low)) for role, span in counts.items())
        # At most each round takes what table 12 counts for all rollouts, reflections or curations of a sample.
        high = (self._sample(role).times(span.high) for role, span in counts.items())
        attempt = self._number("4a/ace/latency") / self._number("4a/ace/rollouts")
        rollouts = counts[GENERATOR]
        return CostRange(
            low=sum(low, Cost(seconds=attempt * rollouts.low)), high=sum(high, Cost(seconds=attempt * rollouts.high))
        )

    def _single_turn_step(self, task: str, method: str, settings: Mapping[str, Any]) -> CostRange:
        """The calls of a step; on FiNER the dollars and seconds that the paper measured online, retries included."""
        counts = sample_counts(settings).values()
        usd = seconds = None
        if task == "finer":
            samples = SIZES["finer"]["test"]
            row = {"dc": "dc"}.get(method, "ace")
            usd, seconds = (self._number(f"4b/{row}/{column}") / samples for column in ("dollars", "latency"))
            usd = usd if settings["backbone"].get("model") == "DeepSeek-V3.1" else None
        low, high = (
            Cost(calls=calls, prompt=None, completion=None, usd=usd, seconds=seconds)
            for calls in (sum(span.low for span in counts), sum(span.high for span in counts))
        )
        return CostRange(low=low, high=high)

    def _evaluation(self, task: str, method: str, settings: Mapping[str, Any]) -> Cost:
        if task != APPWORLD:
            return Cost(calls=1.0, prompt=None, completion=None, usd=None, seconds=None)
        row = _LIKE.get(method, "ace")
        rollout = self._number("4a/ace/latency") / self._number("4a/ace/rollouts") / settings["concurrency"]
        return self._row("14", row).times(1 / self._number(f"14/{row}/queries")) + Cost(seconds=rollout)

    def _call(self, role: str) -> Cost:
        return self._row("12", f"ace_{role}").times(1 / self._number(f"12/ace_{role}/calls"))

    def _sample(self, role: str) -> Cost:
        return self._row("12", f"ace_{role}").times(1 / self._number(f"12/ace_{role}/queries"))

    def _row(self, table: str, row: str) -> Cost:
        prompt, completion, calls = (self._number(f"{table}/{row}/{column}") for column in ("input", "output", "calls"))
        return Cost(calls=calls, prompt=prompt, completion=completion)

    def _number(self, ref: str) -> float:
        value = self._paper.cell(ref).value
        assert value is not None  # the cells named here are all printed
        return value


def _priced(costs: CostRange, settings: Mapping[str, Any]) -> CostRange:
    """Price known tokens at the backbone's list prices, none of them cached."""
    prices = {name: value for name, value in (settings["backbone"].get("prices") or {}).items() if name != "_target_"}

    def priced(cost: Cost) -> Cost:
        if cost.prompt is None:
            return cost
        tokens = Usage(prompt=round(cost.prompt), completion=round(cost.completion or 0), cached=0)
        return replace(cost, usd=PriceCard(**prices).dollars(tokens))

    return CostRange(low=priced(costs.low), high=priced(costs.high))


def limited(sizes: Mapping[str, int], limit: Any) -> dict[str, int]:
    """Return the sizes of the splits under the setting ``limit``."""

    def most(split: str) -> int:
        wanted = limit.get(split.partition("_")[0]) if isinstance(limit, Mapping) else limit
        return sizes[split] if wanted is None else min(wanted, sizes[split])

    return {split: most(split) for split in sizes}


def option_of(target: str) -> str:
    """Return the option of a class, "" of another package's: of ``ace_bench.tasks.finer.Finer`` it is ``finer``."""
    if not target.startswith("ace_bench."):
        return ""
    module = target.split(".")[2]
    return {"base_llm": "base", "ace_variants": "ace", "official": "ace"}.get(module, module)


def sample_counts(settings: Mapping[str, Any]) -> Mapping[str, Span]:
    """Return the generator's rollouts and the other roles' calls for one sample; one of each where they are unknown."""
    needed = workload_of_sample(settings)
    return {GENERATOR: needed.rollouts, **needed.roles} if needed else {GENERATOR: exactly(1), "learner": exactly(1)}


def workload_of_sample(settings: Mapping[str, Any]) -> Workload | None:
    """Return what learning from one sample takes, as the method says; ``None`` where it does not.

    The low end is a sample whose first rollout is right; the high end is wrong after all rounds of reflection.
    """
    method: Method[Any] = build_part(with_embedder(settings, HASHING), "method")
    split = "train" if option_of(settings["mode"]["_target_"]) == "offline" else "test"
    acts = option_of(settings["task"]["_target_"]) == APPWORLD
    known: Any = _Labelled(Labels(settings["labels"]))
    return method.workload(known, Learning(samples=1, steps=2, split=split, acts=acts))


@dataclass(frozen=True)
class _Labelled:
    """What the estimates of step learners read of an arena."""

    labels: Labels


def _pairs(a: Cost, b: Cost) -> list[tuple[str, Any, Any]]:
    return [(field.name, getattr(a, field.name), getattr(b, field.name)) for field in fields(Cost)]


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
        low, typical, high = map(_cost, (estimate.low, estimate.typical, estimate.high))
        return CostRange(low=low, typical=typical, high=high)


def _cost(account: Account) -> Cost:
    usage = account.usage
    return Cost(calls=account.calls, prompt=usage.prompt, completion=usage.completion, usd=usage.usd, seconds=None)
