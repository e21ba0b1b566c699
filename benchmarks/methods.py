"""All methods on FiNER and Formula: accuracy and cost of runs made by ``ace-bench run``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.core.types import Stage, Usage
from ace_bench.report.experiments import load_experiments
from benchmarks.measuring import Grid, Setting, metrics_of, price_card

TASKS = ("finer", "formula")
SIZES: Mapping[str, int] = {"train": 100, "val": 50, "test": 100}
"""The default number of samples of real data; sample data is used whole."""

_FORMS = {
    "rollouts": ",d",
    "calls": ",d",
    "tokens in": ",d",
    "tokens out": ",d",
    "cached": ".1%",
    "list $": ".2f",
    "wall s": ".1f",
}
"""The figures of a stage in the table, and how they are written."""

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


Cost = Mapping[str, float | None]
"""The figures of one stage of a run by their names; ``None`` is unknown."""


class Ran(NamedTuple):
    """A finished run: accuracy on the test split and the cost of each stage."""

    after: float
    costs: Mapping[Stage, Cost]


def methods(setting: Setting) -> list[Grid]:
    """base, ICL, MIPROv2, GEPA, ACE, Dynamic Cheatsheet on FiNER and Formula"""
    card = price_card(setting.prices)
    names = [name for name in _ENTRIES if name in setting.only]
    ran = {task: {name: _run_cell(setting, task, name, card) for name in names} for task in TASKS}
    sizes = ", ".join(f"{size} {split}" for split, size in _sizes(setting).items()) or "all samples"
    conditions = (
        f"embedded backbone [simulated], {'real' if setting.data else 'sample'} data ({sizes}), labels=gold, seed 0"
    )
    discount = "" if card.cached_input != card.input else ", which give no discount for cached input"
    priced = f"the list prices of configs/backbone/{setting.prices}.yaml{discount}"
    return [_table(ran, f"Methods: {conditions}", priced), _ratios(ran, f"ACE against the others: {conditions}")]


def _sizes(setting: Setting) -> Mapping[str, int]:
    return {**(SIZES if setting.data else {}), **setting.sizes}


def _run_cell(setting: Setting, task: str, name: str, card: PriceCard) -> Ran:
    label, *settings = _ENTRIES[name]
    sizes = _sizes(setting)
    limit = [f"limit={{{', '.join(f'{split}: {size}' for split, size in sizes.items())}}}"] if sizes else []
    started = time.monotonic()
    # All methods use the base run as "before"; a separate evaluation would count as cost of the method.
    shared = (f"task={task}", setting.source(task), "backbone=embedded", "labels=gold", "seed=0", "mode.before=false")
    metrics = metrics_of(setting.run(*shared, *settings, *limit))
    setting.say(f"{task}, {label}: {time.monotonic() - started:.0f} s")
    costs = {stage: _cost(metrics, stage, card) for stage in Stage if metrics["calls"][stage]}
    return Ran(metrics["headline"]["after"], costs)


def _cost(metrics: Mapping[str, Any], stage: Stage, card: PriceCard) -> Cost:
    tokens = metrics["tokens"][stage]
    usage = Usage(prompt=tokens["in"], completion=tokens["out"], cached=metrics["cache"][stage]["cached_tokens"])
    usd, wall_s = card.dollars(usage), metrics["timing"][stage]["wall_s"]
    return {
        "rollouts": metrics["rollouts"][stage],
        "calls": sum(metrics["calls"][stage].values()),
        "tokens in": usage.prompt,
        "tokens out": usage.completion,
        "cached": None if usage.cached is None or not usage.prompt else usage.cached / usage.prompt,
        "list $": usd,
        "dollars at list prices": usd,
        "dollars, cached input at a tenth": replace(card, cached_input=card.input and card.input / 10).dollars(usage),
        "wall s": wall_s,
        "seconds": wall_s,
    }


def _table(ran: Mapping[str, Mapping[str, Ran]], title: str, priced: str) -> Grid:
    rows: list[tuple[str, ...]] = []
    rules: set[int] = set()
    for task, runs in ran.items():
        for name, run in runs.items():
            before = f"{runs['base'].after:.1f}" if name != "base" and "base" in runs else ""
            head: tuple[str, ...] = (task, _ENTRIES[name][0], before, f"{run.after:.1f}")
            for stage, cost in run.costs.items():
                rows.append((*head, stage.value, *(_cell_text(cost[name], form) for name, form in _FORMS.items())))
                head = ("",) * len(head)
            rules.add(len(rows) - 1)
    notes = (
        "`before` is the base run on the same test samples. A small deterministic reader stands in for the language "
        "model: neither accuracy nor seconds say anything about one, and tokens are estimates by length.",
        f"`list $` are the counted tokens at {priced}; nothing was paid. "
        "Online, a prediction is part of adaptation. GEPA and MIPROv2 have DSPy's heavy budget, ACE has 5 epochs "
        "where nothing else is said. `wall s` depends on the machine.",
    )
    return Grid(
        title=title,
        headings=("task", "method", "before", "after", "stage", *_FORMS),
        rows=tuple(rows),
        rules=frozenset(rules),
        notes=notes,
    )


def _cell_text(value: float | None, form: str, unit: str = "") -> str:
    return "n/a" if value is None else format(value, form) + unit


_CALLS = {"calls": "", "tokens in": "", "tokens out": ""}
_OFFLINE = {"rollouts": "4a/ace/rollouts", **_CALLS, "seconds": "4a/ace/latency"}
_ONLINE = {
    **_CALLS,
    "dollars at list prices": "4b/ace/dollars",
    "dollars, cached input at a tenth": "",
    "seconds": "4b/ace/latency",
}
"""The figures of ACE that are compared with another method's, and the paper's cells for the same comparison."""
_PAIRS = (("ace", "gepa", _OFFLINE), ("ace_1", "gepa", _OFFLINE), ("ace_online", "dc", _ONLINE))


def _ratios(ran: Mapping[str, Mapping[str, Ran]], title: str) -> Grid:
    paper = load_experiments()
    rows: list[tuple[str, ...]] = []
    rules: set[int] = set()
    complete = set.intersection(*(set(runs) for runs in ran.values()))
    for method, baseline, ratios in _PAIRS:
        if not complete >= {method, baseline}:
            continue
        pair = f"{_ENTRIES[method][0]} : {_ENTRIES[baseline][0]}"
        for name, published in ratios.items():
            cells = [_change(name, runs[method], runs[baseline]) for runs in ran.values()]
            rows.append(
                (pair, name, *cells, _cell_text(paper.cell(published).change, "+.1f", " %") if published else "")
            )
            pair = ""
        rules.add(len(rows) - 1)
    notes = (
        "Of adaptation only. The paper's figures are for DeepSeek-V3.1: against GEPA on AppWorld (table 4a, whose "
        "357 rollouts over 90 tasks imply one epoch), against Dynamic Cheatsheet online on FiNER (table 4b). They "
        "measure something else than a simulated run and are here as landmarks.",
    )
    headings = ("adaptation", "figure", *ran, "paper")
    return Grid(title=title, headings=headings, rows=tuple(rows), rules=frozenset(rules), notes=notes)


def _change(name: str, run: Ran, baseline: Ran) -> str:
    a, b = run.costs[Stage.ADAPT][name], baseline.costs[Stage.ADAPT][name]
    form = ".2f" if name.startswith("dollars") else ".1f" if name == "seconds" else ",d"
    return "n/a" if a is None or not b else f"{100 * (a / b - 1):+.1f} % ({a:{form}} : {b:{form}})"
