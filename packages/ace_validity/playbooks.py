"""Transfer of playbooks to other tasks and models, and placebos in their place."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice

from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.errors import ConfigError
from ace_bench.core.prompts import estimate_tokens
from ace_validity.planning import (
    SCORED,
    Make,
    PlannedRun,
    Request,
    Row,
    Study,
    fixed_run,
    frozen_run,
    moved,
    parse_words,
    score_row,
    scores_of,
)

_NEUTRAL = (
    "Rivers carry fine sand to the sea. Old bridges were often built of local stone. Clouds form where moist air "
    "rises and cools. Bread keeps longer in a cool and dry place. Wool takes up water and still feels warm. Many "
    "birds travel south before the winter. A tree adds one ring of wood each year. Letters once took weeks to arrive."
)
"""Sentences about nothing that a task asks."""


class Transfer(Study):
    """Gains of a learned playbook on other tasks and models (--to)"""

    columns = ("target", *SCORED)
    note = "Gains are over the empty playbook under the same prompt (method=ace_empty) on the same target."

    def __init__(self, request: Request) -> None:
        if not request.options["to"]:
            raise ConfigError("name a target: --to task=formula, or --to 'backbone=vllm backbone.model=NAME'")
        sources = {seed: PlannedRun(words=request.having(seed)) for seed in request.seeds}
        targets = {"where it learned": request.words}
        for text in request.options["to"]:
            targets[text], left_out = moved(request.words, parse_words(text.split()))
            self.note += left_out
        self._arms = {
            name: (
                fixed_run({**words, "seed": str(request.seeds[0])}, "ace_empty"),
                [
                    frozen_run({**words, "seed": str(seed)}, source, lambda book: book)
                    for seed, source in sources.items()
                ],
            )
            for name, words in targets.items()
        }
        self.runs = [*sources.values(), *(run for empty, full in self._arms.values() for run in (empty, *full))]

    def rows(self, make: Make) -> Iterator[Row]:
        """Compare each playbook on each target with the empty one there."""
        for name, (empty, full) in self._arms.items():
            yield score_row(name, scores_of(full, make), scores_of([empty], make))


class Placebo(Study):
    """A learned playbook against shuffled words, scattered bullets, neutral text, and another task's (--other)"""

    columns = ("playbook", *SCORED[:3], "learned gains", *SCORED[4:])
    note = (
        "Shuffled words and neutral text have as many words per bullet as the learned playbook; scattered bullets have "
        "its contents in other sections. A playbook that helps by what it says beats all but the scattered one."
    )

    def __init__(self, request: Request) -> None:
        sources = [PlannedRun(words=request.having(seed)) for seed in request.seeds]
        changes = {"learned": lambda book: book, "shuffled words": _shuffle_words, "scattered bullets": _scatter}
        self._arms = {
            name: [frozen_run(source.words, source, change) for source in sources]
            for name, change in {**changes, "neutral text": _neutralise}.items()
        }
        if task := request.options["other"]:
            words, left_out = moved(request.words, {"task": task})
            self.note += left_out
            others = [PlannedRun(words={**words, "seed": str(seed)}) for seed in request.seeds]
            found = [
                frozen_run(own.words, other, lambda book: book) for own, other in zip(sources, others, strict=True)
            ]
            self._arms[f"playbook of {task}"], sources = found, [*sources, *others]
        self._arms["empty playbook"] = [fixed_run(sources[0].words, "ace_empty")]
        self.runs = [*sources, *(run for arm in self._arms.values() for run in arm)]

    def rows(self, make: Make) -> Iterator[Row]:
        """Compare the learned playbook with each placebo."""
        found = {name: scores_of(arm, make) for name, arm in self._arms.items()}
        learned = found.pop("learned")
        yield score_row("learned", learned)
        for name, scores in found.items():
            gains = score_row("", learned, scores, base_adapts=name != "empty playbook")[4:]
            yield (*score_row(name, scores)[:4], *gains)


def _shuffle_words(book: Playbook) -> Playbook:
    """Return the words of all bullets in random order, each bullet as long as before."""
    words = [word for bullet in book.bullets for word in bullet.content.split()]
    random.Random(book.digest).shuffle(words)
    return _filled(book, iter(words))


def _neutralise(book: Playbook) -> Playbook:
    """Return neutral sentences, each bullet as long as before."""
    return _filled(book, cycle(_NEUTRAL.split()))


def _filled(book: Playbook, words: Iterator[str]) -> Playbook:
    return _with_contents(book, [" ".join(islice(words, len(one.content.split()))) for one in book.bullets])


def _scatter(book: Playbook) -> Playbook:
    """Return the contents among other bullets: other sections, counters and places."""
    contents = [bullet.content for bullet in book.bullets]
    random.Random(book.digest).shuffle(contents)
    return _with_contents(book, contents)


def _with_contents(book: Playbook, contents: list[str]) -> Playbook:
    changed = [replace(old, content=new) for old, new in zip(book.bullets, contents, strict=True)]
    return replace(book, bullets=tuple(changed)).fitted(book.sections, estimate_tokens)
