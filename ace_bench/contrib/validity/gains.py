"""Gains of playbooks on other tasks and models, and against placebos."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, cycle, islice

from ace_bench.contrib.validity.planning import (
    Make,
    PlannedRun,
    Request,
    Row,
    Study,
    fixed_run,
    frozen_run,
    move_overrides,
    parse_overrides,
    scores_of,
)
from ace_bench.core.errors import ConfigError
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.statistics import LEVEL
from ace_bench.playbook.playbook import Playbook
from ace_bench.report import statistics
from ace_bench.report.statistics import Interval, Seeds
from ace_bench.report.tables.grids import p_value

_SHUFFLED, _NEUTRAL_TEXT, _NO_PLAYBOOK = "shuffled words", "neutral text", "empty playbook"
_NEUTRAL = (
    "Rivers carry fine sand to the sea. Old bridges were often built of local stone. Clouds form where moist air "
    "rises and cools. Bread keeps longer in a cool and dry place. Wool takes up water and still feels warm. Many "
    "birds travel south before the winter. A tree adds one ring of wood each year. Letters once took weeks to arrive."
)
"""Sentences about nothing that a task asks."""


class _Gains(Study):
    """A check whose rows are gains of scores."""

    def gain(self, seeds: Seeds, base: Seeds, *, base_adapts: bool = False) -> tuple[float, str | None, float]:
        """Return the gain over a base with its interval and p."""
        comparison = statistics.compare(seeds, base, base_adapts=base_adapts)
        if comparison.interval:
            self.gains.append(comparison)
        return round(comparison.difference, 1), _bounds(comparison.interval), comparison.p


def _score(seeds: Seeds) -> float:
    return round(statistics.mean_score(seeds), 1)


def _bounds(interval: Interval | None) -> str | None:
    return f"{interval.low:.1f} to {interval.high:.1f}" if interval else None


class Transfer(_Gains):
    """Gains of a learned playbook on other tasks and models (--to)"""

    columns = ("target", "seeds", "score", "95% interval", "gain", "95% interval of it", "p (Holm)")
    note = "Gains are over the empty playbook under the same prompt (method=ace_empty) on the same target."

    def __init__(self, request: Request) -> None:
        if not request.options["to"]:
            raise ConfigError("name a target: --to task=formula, or --to 'backbone=vllm backbone.model=NAME'")
        sources = request.playbook_runs(request.overrides)
        targets = {"where it learned": request.overrides}
        for text in request.options["to"]:
            targets[text], left_out = move_overrides(request.overrides, parse_overrides(text.split()))
            self.note += left_out
        self._arms = {
            name: (
                fixed_run({**settings, "seed": str(request.seeds[0])}, "ace_empty"),
                [frozen_run({**settings, "seed": source.overrides["seed"]}, source) for source in sources],
            )
            for name, settings in targets.items()
        }
        self.runs = [*sources, *(run for empty, full in self._arms.values() for run in (empty, *full))]

    def rows(self, make: Make) -> Iterator[Row]:
        """Compare each playbook on each target with the empty one there."""
        for name, (empty, full) in self._arms.items():
            seeds = scores_of(full, make)
            interval = statistics.score_interval(seeds)
            if interval:
                self.wide_scores.append(statistics.reasons_score_wide(seeds))
            *gain, p = self.gain(seeds, scores_of([empty], make))
            yield Row(cells=(name, len(seeds), _score(seeds), _bounds(interval), *gain), p=p)


class Placebo(_Gains):
    """A learned playbook against shuffled words, scattered bullets, neutral text, and another task's (--other)"""

    columns = ("playbook", "seeds", "score", "against", "its score", "gain", "95% interval", "p (Holm)")
    note = (
        "Shuffled words and neutral text have as many words per bullet as the learned playbook; scattered bullets have "
        "its contents in other sections. A playbook that helps by what it says beats all but the scattered one."
    )

    def __init__(self, request: Request) -> None:
        sources = request.playbook_runs(request.overrides)
        changes = {
            _SHUFFLED: _shuffle_words,
            "scattered bullets": _scatter,
            _NEUTRAL_TEXT: lambda book: _fill_with_words(book, cycle(_NEUTRAL.split())),
        }
        self._learned = [replace(frozen_run(one.overrides, one), derived="its learned playbook") for one in sources]
        self._arms = {
            name: [replace(frozen_run(one.overrides, one, change), derived=name) for one in sources]
            for name, change in changes.items()
        }
        donors: list[PlannedRun] = []
        if task := request.options["other"]:
            settings, left_out = move_overrides(request.overrides, {"task": task})
            self.note += left_out
            donors = request.playbook_runs(settings)
            name = f"playbook of {task}"
            self._arms[name] = [
                replace(frozen_run(own_source.overrides, donor), derived=name)
                for own_source, donor in zip(sources, donors, strict=True)
            ]
        self._arms[_NO_PLAYBOOK] = [fixed_run(sources[0].overrides, "ace_empty")]
        self.runs = [*sources, *donors, *self._learned, *chain.from_iterable(self._arms.values())]

    def rows(self, make: Make) -> Iterator[Row]:
        """Compare the learned playbook with each placebo, and a placebo with no playbook."""
        learned = scores_of(self._learned, make)
        if not any(make(run).metrics["context"]["items"] for run in self._learned):
            raise ConfigError(
                "no bullet was learned, so all playbooks would be empty: learn from more samples (limit=N)"
            )
        placebos = {name: scores_of(arm, make) for name, arm in self._arms.items()}
        for name, scores in placebos.items():
            yield self._row("learned", learned, name, scores)
        yield self._row(_NEUTRAL_TEXT, placebos[_NEUTRAL_TEXT], _NO_PLAYBOOK, placebos[_NO_PLAYBOOK])

    def _row(self, name: str, seeds: Seeds, against: str, base: Seeds) -> Row:
        *gain, p = self.gain(seeds, base, base_adapts=against != _NO_PLAYBOOK)
        return Row(cells=(name, len(seeds), _score(seeds), against, _score(base), *gain), p=p)

    def verdict(self, rows: Sequence[Row]) -> Iterator[str]:
        """Say whether the playbook helps by what it says, and whether its form alone helps."""
        tests = {(row.cells[0], row.cells[3]): row for row in rows}
        yield _sentence(
            "the playbook helps by what it says", [tests["learned", name] for name in (_SHUFFLED, _NEUTRAL_TEXT)]
        )
        yield _sentence("its form alone helps", [tests[_NEUTRAL_TEXT, _NO_PLAYBOOK]])


def _sentence(claim: str, rows: Sequence[Row]) -> str:
    """Say that a claim holds if every row is a gain that its test finds, with the gains."""
    gains = [(row.cells[5], row.cells[3], 1.0 if row.p is None else row.p) for row in rows]
    holds = all(isinstance(gain, float) and gain > 0 and p < 1 - LEVEL for gain, _, p in gains)
    listed = " and ".join(f"{gain:+} over {against}, p (Holm) {p_value(p)}" for gain, against, p in gains)
    text = claim if holds else f"no sign that {claim}"
    return f"{text[0].upper()}{text[1:]}: {rows[0].cells[0]} gains {listed}."


def _shuffle_words(book: Playbook) -> Playbook:
    """Return the words of all bullets in random order, each bullet as long as before."""
    words = [word for bullet in book.bullets for word in bullet.content.split()]
    random.Random(book.digest).shuffle(words)
    return _fill_with_words(book, iter(words))


def _fill_with_words(book: Playbook, words: Iterator[str]) -> Playbook:
    return _with_contents(book, [" ".join(islice(words, len(bullet.content.split()))) for bullet in book.bullets])


def _scatter(book: Playbook) -> Playbook:
    """Return the contents among other bullets: other sections, counters and places."""
    contents = [bullet.content for bullet in book.bullets]
    random.Random(book.digest).shuffle(contents)
    return _with_contents(book, contents)


def _with_contents(book: Playbook, contents: list[str]) -> Playbook:
    changed = [replace(old, content=new) for old, new in zip(book.bullets, contents, strict=True)]
    return replace(book, bullets=tuple(changed)).fitted(book.sections, estimate_tokens)
