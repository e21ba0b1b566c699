"""The cost of runs by the paper's own counts: calls, tokens, dollars and hours.

On AppWorld the paper counts tokens and calls by query (tables 12 and 14) and seconds (table 4a); of other tasks it only
gives the dollars and seconds of online adaptation on FiNER (table 4b). Everything else is unknown here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from ace_bench.core.types import Usage
from ace_bench.report.paper.tables import Paper
from ace_bench.store.prices import PriceCard

SIZES: Mapping[str, Mapping[str, int]] = {
    "appworld": {"train": 90, "val": 57, "test_normal": 168, "test_challenge": 417},
    "finer": {"train": 1000, "val": 500, "test": 441},
    "formula": {"train": 500, "val": 300, "test": 200},
    "ddxplus": {"train": 1000, "val": 372, "test": 1764},
    "bird_sql": {"train": 1000, "val": 500, "test": 1534},
}
"""Samples by task and split, of the official data as the paper uses it."""

_APPWORLD = "appworld"
_LIKE = {"base": "react", "gepa": "gepa"}
"""Rows of table 14 by method; methods whose context is long are counted as ACE."""
_ROLES = ("ace_generator", "ace_reflector", "ace_curator")


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


def together(parts: Iterable[Cost], *, at_least: bool = False) -> Cost:
    """Sum the parts; ``at_least`` skips unknown values, unless a value is unknown in all parts."""
    parts = list(parts)
    if not at_least:
        return sum(parts, Cost())
    columns = {field.name: [getattr(part, field.name) for part in parts] for field in fields(Cost)}
    known = {name: [value for value in values if value is not None] for name, values in columns.items()}
    return Cost(**{name: sum(values) if values else None for name, values in known.items()})


class Estimator:
    """Reads costs off the paper's tables."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper

    def parts(self, settings: Mapping[str, Any]) -> list[Cost]:
        """Estimate a run by its composed configuration: adaptation and evaluation, one by one."""
        task, method, mode = (_named(settings[group]["_target_"]) for group in ("task", "method", "mode"))
        sizes = _limited(SIZES[task], settings["limit"])
        tested = sizes[settings["task"].get("test_split", "test") if task == _APPWORLD else "test"]
        parts = [self._fit(task, method, settings, sizes["train"])] if mode == "offline" else []
        if mode == "online":
            parts.append(self._step(task, method, settings).times(tested))
        else:
            looks = 1 + bool(settings["mode"].get("before"))
            parts.append(self._evaluation(task, method, settings).times(tested * looks))
        return [part if part.prompt is None else _priced(part, settings) for part in parts]

    def _fit(self, task: str, method: str, settings: Mapping[str, Any], train: int) -> Cost:
        if method in ("base", "icl"):
            return Cost()
        if method == "gepa" and task == _APPWORLD:
            return self._row("12", "gepa", seconds=self._number("4a/gepa/latency"))
        if method in ("ace", "dc"):
            return self._step(task, method, settings).times(train * settings["mode"]["epochs"])
        return UNKNOWN

    def _step(self, task: str, method: str, settings: Mapping[str, Any]) -> Cost:
        """The cost of one adaptation step; all reflection rounds are counted."""
        rounds = settings["method"].get("max_reflection_rounds", 0)
        if task != _APPWORLD:
            calls = 3.0 if rounds else 2.0
            if task != "finer":
                return Cost(calls=calls, prompt=None, completion=None, usd=None, seconds=None)
            samples = SIZES["finer"]["test"]
            row = {"dc": "dc"}.get(method, "ace")
            usd, seconds = (self._number(f"4b/{row}/{column}") / samples for column in ("dollars", "latency"))
            known = settings["backbone"].get("model") == "DeepSeek-V3.1"
            return Cost(calls=calls, prompt=None, completion=None, usd=usd if known else None, seconds=seconds)
        if method != "ace":
            return UNKNOWN
        times = (1, _reflections(settings) if settings["method"]["reflector"] != "off" else 0, 1)
        roles = (self._row("12", role).times(count) for role, count in zip(_ROLES, times, strict=True))
        queries = self._number("12/ace/queries")
        latency = Cost(seconds=self._number("4a/ace/latency"))
        return (together(roles) + latency).times(1 / queries)

    def _evaluation(self, task: str, method: str, settings: Mapping[str, Any]) -> Cost:
        if task != _APPWORLD:
            return Cost(calls=1.0, prompt=None, completion=None, usd=None, seconds=None)
        row = _LIKE.get(method, "ace")
        rollout = self._number("4a/ace/latency") / self._number("4a/ace/rollouts") / settings["concurrency"]
        return self._row("14", row).times(1 / self._number(f"14/{row}/queries")) + Cost(seconds=rollout)

    def _row(self, table: str, row: str, seconds: float = 0.0) -> Cost:
        prompt, completion, calls = (self._number(f"{table}/{row}/{column}") for column in ("input", "output", "calls"))
        return Cost(calls=calls, prompt=prompt, completion=completion, seconds=seconds)

    def _number(self, ref: str) -> float:
        value = self._paper.cell(ref).value
        assert value is not None  # the cells named here are all printed
        return value


def _priced(cost: Cost, settings: Mapping[str, Any]) -> Cost:
    """Price tokens at the backbone's list prices, none of them cached."""
    prices = {name: value for name, value in (settings["backbone"].get("prices") or {}).items() if name != "_target_"}
    assert cost.prompt is not None
    tokens = Usage(prompt=round(cost.prompt), completion=round(cost.completion or 0), cached=0)
    known = Cost(calls=cost.calls, prompt=cost.prompt, completion=cost.completion, seconds=cost.seconds)
    return known + Cost(usd=PriceCard(**prices).dollars(tokens))


def _reflections(settings: Mapping[str, Any]) -> int:
    """Return the most reflections on an agent's sample, as ``AceSettings.retries`` defines them."""
    retries, rounds = settings["method"]["retries"], settings["method"]["max_reflection_rounds"]
    if retries != "auto":
        return int(retries) + 1
    online = _named(settings["mode"]["_target_"]) == "online"
    return 1 if online or settings["labels"] == "none" else int(rounds)


def _limited(sizes: Mapping[str, int], limit: Any) -> dict[str, int]:
    def most(split: str) -> int:
        wanted = limit.get(split.partition("_")[0]) if isinstance(limit, Mapping) else limit
        return sizes[split] if wanted is None else min(wanted, sizes[split])

    return {split: most(split) for split in sizes}


def _named(target: str) -> str:
    """Return the option of a class: ``bird_sql`` for ``ace_bench.tasks.bird_sql.task.BirdSql``."""
    module = target.split(".")[2]
    return {"base_llm": "base"}.get(module, module)


def _pairs(a: Cost, b: Cost) -> list[tuple[str, Any, Any]]:
    return [(field.name, getattr(a, field.name), getattr(b, field.name)) for field in fields(Cost)]
