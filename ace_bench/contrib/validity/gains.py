"""Gains of playbooks elsewhere, against placebos, by training samples, and by the order of a stream."""

from __future__ import annotations

import random
from collections.abc import Iterator
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
from ace_bench.core.measurement import Value
from ace_bench.core.prompts import estimate_tokens
from ace_bench.playbook.playbook import Playbook
from ace_bench.report import statistics
from ace_bench.report.statistics import Interval, Seeds
from ace_bench.report.tables.grids import p_value

_SCORED = ("seeds", "score", "95% interval", "gain", "95% interval of it", "p")
"""Columns of a score, after its name."""
_NEUTRAL = (
    "Rivers carry fine sand to the sea. Old bridges were often built of local stone. Clouds form where moist air "
    "rises and cools. Bread keeps longer in a cool and dry place. Wool takes up water and still feels warm. Many "
    "birds travel south before the winter. A tree adds one ring of wood each year. Letters once took weeks to arrive."
)
"""Sentences about nothing that a task asks."""


class _Gains(Study):
    """A check whose rows are scores and gains."""

    def score_row(self, name: Value, seeds: Seeds, base: Seeds | None = None) -> Row:
        """Return a name, the score with its interval and, with a base, the gain over it with interval and p."""
        interval = statistics.score_interval(seeds)
        if interval:
            self.wide_scores.append(statistics.reasons_score_wide(seeds))
        gain = self.gain(seeds, base) if base else (None, None, None)
        return name, len(seeds), round(statistics.mean_score(seeds), 1), _bounds(interval), *gain

    def gain(self, seeds: Seeds, base: Seeds, *, base_adapts: bool = False) -> Row:
        """Return the gain over a base with its interval and p."""
        comparison = statistics.compare(seeds, base, base_adapts=base_adapts)
        if comparison.interval:
            self.gains.append(comparison)
        return round(comparison.difference, 1), _bounds(comparison.interval), p_value(comparison.p)


def _bounds(interval: Interval | None) -> str | None:
    return f"{interval.low:.1f} to {interval.high:.1f}" if interval else None


class Transfer(_Gains):
    """Gains of a learned playbook on other tasks and models (--to)"""

    columns = ("target", *_SCORED)
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
            yield self.score_row(name, scores_of(full, make), scores_of([empty], make))


class Placebo(_Gains):
    """A learned playbook against shuffled words, scattered bullets, neutral text, and another task's (--other)"""

    columns = ("playbook", *_SCORED[:3], "learned gains", *_SCORED[4:])
    note = (
        "Shuffled words and neutral text have as many words per bullet as the learned playbook; scattered bullets have "
        "its contents in other sections. A playbook that helps by what it says beats all but the scattered one."
    )

    def __init__(self, request: Request) -> None:
        sources = request.playbook_runs(request.overrides)
        changes = {
            "shuffled words": _shuffle_words,
            "scattered bullets": _scatter,
            "neutral text": lambda book: _fill_with_words(book, cycle(_NEUTRAL.split())),
        }
        self._learned = [frozen_run(source.overrides, source) for source in sources]
        self._arms = {
            name: [frozen_run(source.overrides, source, change) for source in sources]
            for name, change in changes.items()
        }
        donors: list[PlannedRun] = []
        if task := request.options["other"]:
            settings, left_out = move_overrides(request.overrides, {"task": task})
            self.note += left_out
            donors = request.playbook_runs(settings)
            self._arms[f"playbook of {task}"] = [
                frozen_run(own_source.overrides, donor) for own_source, donor in zip(sources, donors, strict=True)
            ]
        self._arms["empty playbook"] = [fixed_run(sources[0].overrides, "ace_empty")]
        self.runs = [*sources, *donors, *self._learned, *chain.from_iterable(self._arms.values())]

    def rows(self, make: Make) -> Iterator[Row]:
        """Compare the learned playbook with each placebo."""
        learned = scores_of(self._learned, make)
        yield self.score_row("learned", learned)
        for name, arm in self._arms.items():
            scores = scores_of(arm, make)
            gain = self.gain(learned, scores, base_adapts=name != "empty playbook")
            yield (*self.score_row(name, scores)[:4], *gain)


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
