"""All methods on FiNER and Formula: accuracy and cost of runs made by ``ace-bench run``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.core.types import Stage, Usage
from ace_bench.report.paper.tables import load_paper
from ace_benchmarks.measuring import Grid, Setting, metrics_of, price_card

TASKS = ("finer", "formula")
SIZES: Mapping[str, int] = {"train": 100, "val": 50, "test": 100}
"""The default number of samples of real data; sample data is used whole."""

_HEADINGS = (
    "task", "method", "before", "after", "stage", "rollouts", "calls", "tokens in", "tokens out", "cached", "list $",
    "wall s",
)  # fmt: skip


_ENTRIES: Mapping[str, tuple[str, ...]] = {
    "base": ("base", "method=base"),
    "icl": ("ICL", "method=icl"),
    "mipro": ("MIPROv2", "method=mipro"),
    "gepa": ("GEPA", "method=gepa"),
    "ace": ("ACE offline", "method=ace"),
    "ace_1": ("ACE offline, 1 epoch", "method=ace", "mode.epochs=1"),
    "dc": ("DC (cumulative) online", "method=dc", "mode=online"),
    "dc_rs": ("DC-RS online", "method=dc_rs", "mode=online"),
    "ace_online": ("ACE online", "method=ace", "mode=online"),
}
"""By name: the label in the table, and the overrides."""
METHODS = tuple(_ENTRIES)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of one stage of a run; ``None`` is unknown. ``reused_usd`` bills cached input at a tenth."""

    rollouts: int
    calls: int
    usage: Usage
    usd: float | None
    reused_usd: float | None
    wall_s: float


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A finished run: accuracy on the test split and the cost of each stage."""

    after: float
    costs: Mapping[Stage, Cost]


class _Ratio(NamedTuple):
    """A figure of ACE compared with another method's, and the paper's cell for the same comparison."""

    name: str
    value: Callable[[Cost], float | None]
    form: str
    paper: str = ""


def methods(setting: Setting) -> list[Grid]:
    """base, ICL, MIPROv2, GEPA, ACE, Dynamic Cheatsheet on FiNER and Formula"""
    card = price_card(setting.prices)
    names = [name for name in _ENTRIES if name in setting.only]
    ran = {task: {name: _run_cell(setting, task, name, card) for name in names} for task in TASKS}
    sizes = ", ".join(f"{size} {split}" for split, size in _sizes(setting).items()) or "all samples"
    shown = f"embedded backbone [simulated], {'real' if setting.data else 'sample'} data ({sizes}), labels=gold, seed 0"
    discount = "" if card.cached_input != card.input else ", which give no discount for cached input"
    priced = f"the list prices of configs/backbone/{setting.prices}.yaml{discount}"
    return [_table(ran, f"Methods: {shown}", priced), _ratios(ran, f"ACE against the others: {shown}")]


def _sizes(setting: Setting) -> Mapping[str, int]:
    return {**(SIZES if setting.data else {}), **setting.sizes}


def _run_cell(setting: Setting, task: str, name: str, card: PriceCard) -> Ran:
    label, *own = _ENTRIES[name]
    sizes = _sizes(setting)
    limit = [f"limit={{{', '.join(f'{split}: {size}' for split, size in sizes.items())}}}"] if sizes else []
    started = time.monotonic()
    # All methods use the base run as "before"; a separate evaluation would count as cost of the method.
    shared = (f"task={task}", setting.source(task), "backbone=embedded", "labels=gold", "seed=0", "mode.before=false")
    metrics = metrics_of(setting.run(*shared, *own, *limit))
    setting.say(f"{task}, {label}: {time.monotonic() - started:.0f} s")
    return Ran(
        after=metrics["headline"]["after"],
        costs={stage: _cost(metrics, stage, card) for stage in Stage if metrics["calls"][stage]},
    )


def _cost(metrics: Mapping[str, Any], stage: Stage, card: PriceCard) -> Cost:
    tokens = metrics["tokens"][stage]
    usage = Usage(prompt=tokens["in"], completion=tokens["out"], cached=metrics["cache"][stage]["cached_tokens"])
    return Cost(
        rollouts=metrics["rollouts"][stage],
        calls=sum(metrics["calls"][stage].values()),
        usage=usage,
        usd=card.dollars(usage),
        reused_usd=replace(card, cached_input=card.input and card.input / 10).dollars(usage),
        wall_s=metrics["timing"][stage]["wall_s"],
    )


def _table(ran: Mapping[str, Mapping[str, Ran]], title: str, priced: str) -> Grid:
    rows: list[tuple[str, ...]] = []
    rules: set[int] = set()
    for task, runs in ran.items():
        for name, run in runs.items():
            before = f"{runs['base'].after:.1f}" if name != "base" and "base" in runs else ""
            rows += _rows((task, _ENTRIES[name][0], before, f"{run.after:.1f}"), run)
            rules.add(len(rows) - 1)
    notes = (
        "`before` is the base run on the same test samples. A small deterministic reader stands in for the language "
        "model: neither accuracy nor seconds say anything about one, and tokens are estimates by length.",
        f"`list $` are the counted tokens at {priced}; nothing was paid. "
        "Online, a prediction is part of adaptation. GEPA and MIPROv2 have DSPy's heavy budget, ACE has 5 epochs "
        "where nothing else is said. `wall s` depends on the machine.",
    )
    return Grid(title=title, headings=_HEADINGS, rows=tuple(rows), rules=frozenset(rules), notes=notes)


def _rows(head: tuple[str, ...], run: Ran) -> Iterator[tuple[str, ...]]:
    for stage, cost in run.costs.items():
        share = None if cost.usage.cached is None or not cost.usage.prompt else cost.usage.cached / cost.usage.prompt
        yield (
            *head,
            stage.value,
            f"{cost.rollouts:,}",
            f"{cost.calls:,}",
            _cell_text(cost.usage.prompt, ",d"),
            _cell_text(cost.usage.completion, ",d"),
            _cell_text(share, ".1%"),
            _cell_text(cost.usd, ".2f"),
            f"{cost.wall_s:.1f}",
        )
        head = ("",) * len(head)


def _cell_text(value: float | None, form: str) -> str:
    return "n/a" if value is None else format(value, form)


_CALLS = (
    _Ratio("calls", lambda cost: cost.calls, ",d"),
    _Ratio("tokens in", lambda cost: cost.usage.prompt, ",d"),
    _Ratio("tokens out", lambda cost: cost.usage.completion, ",d"),
)
_OFFLINE = (
    _Ratio("rollouts", lambda cost: cost.rollouts, ",d", "4a/ace/rollouts"),
    *_CALLS,
    _Ratio("seconds", lambda cost: cost.wall_s, ".1f", "4a/ace/latency"),
)
_ONLINE = (
    *_CALLS,
    _Ratio("dollars at list prices", lambda cost: cost.usd, ".2f", "4b/ace/dollars"),
    _Ratio("dollars, cached input at a tenth", lambda cost: cost.reused_usd, ".2f"),
    _Ratio("seconds", lambda cost: cost.wall_s, ".1f", "4b/ace/latency"),
)
_PAIRS = (("ace", "gepa", _OFFLINE), ("ace_1", "gepa", _OFFLINE), ("ace_online", "dc", _ONLINE))


def _ratios(ran: Mapping[str, Mapping[str, Ran]], title: str) -> Grid:
    paper = load_paper()
    rows: list[tuple[str, ...]] = []
    rules: set[int] = set()
    made = set.intersection(*(set(runs) for runs in ran.values()))
    for ours, other, ratios in _PAIRS:
        if not made >= {ours, other}:
            continue
        pair = f"{_ENTRIES[ours][0]} : {_ENTRIES[other][0]}"
        for ratio in ratios:
            cells = [_change(ratio, runs[ours], runs[other]) for runs in ran.values()]
            rows.append(
                (pair, ratio.name, *cells, _published_text(paper.cell(ratio.paper).change) if ratio.paper else "")
            )
            pair = ""
        rules.add(len(rows) - 1)
    notes = (
        "Of adaptation only. The paper's figures are those of DeepSeek-V3.1: against GEPA on AppWorld (table 4a, whose "
        "357 rollouts over 90 tasks imply one epoch), against Dynamic Cheatsheet online on FiNER (table 4b). They "
        "measure something else than a simulated run and are here as landmarks.",
    )
    headings = ("adaptation", "figure", *ran, "paper")
    return Grid(title=title, headings=headings, rows=tuple(rows), rules=frozenset(rules), notes=notes)


def _change(ratio: _Ratio, ours: Ran, other: Ran) -> str:
    a, b = ratio.value(ours.costs[Stage.ADAPT]), ratio.value(other.costs[Stage.ADAPT])
    if a is None or not b:
        return "n/a"
    return f"{100 * (a / b - 1):+.1f} % ({a:{ratio.form}} : {b:{ratio.form}})"


def _published_text(change: float | None) -> str:
    return "n/a" if change is None else f"{change:+.1f} %"
