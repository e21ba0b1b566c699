"""Labelled queries: the set that ships, and files of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec

from ace_bench.contexts.loading import load_context
from ace_bench.contrib.retrieval.features import Reranker
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.core.prompts import estimate_tokens
from ace_bench.playbook.bullets import Bullet
from ace_bench.playbook.playbook import Playbook

Half = Literal["tuning", "report"]
Wording = Literal["natural", "distant"]

Relevant = Callable[[str, Bullet], bool]


class Label(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a labels file: a query, the ids of the bullets that answer it, and its half of the set.

    A ``natural`` query has the words that a user of the task would take; a ``distant`` one avoids the bullet's words.
    Where a model judges relevance a line needs no ids.
    """

    query: str
    relevant: list[str] = []
    half: Half = "report"
    wording: Wording = "natural"


class Files(NamedTuple):
    """A playbook and the labels over it."""

    playbook: Path
    labels: Path


SHIPPED = Files(Path(__file__).parent / "playbook.txt", Path(__file__).parent / "labels.jsonl")


def read_playbook(path: Path) -> Playbook:
    """Read a saved playbook, JSON or text; raises ``ConfigError`` for another kind of context."""
    playbook = load_context(path, sections=(), count=estimate_tokens)
    if not isinstance(playbook, Playbook):
        raise ConfigError(f"{path} does not hold a playbook")
    return playbook


def read_labels(path: Path, playbook: Playbook, *, half: Half, judged: bool = False) -> Sequence[Label]:
    """Read the labels of a half; raises ``DataError`` for a broken line, a repeated query and an unknown id.

    A line without ids is refused, too, unless a model judges.
    """
    labels: dict[str, Label] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            label = msgspec.json.decode(line, type=Label)
        except msgspec.DecodeError as error:
            raise DataError(f"{path}: line {number}: {error}") from error
        unknown = [bullet_id for bullet_id in label.relevant if bullet_id not in playbook.index]
        if unknown or not (label.relevant or judged):
            problem = f"no bullet has the id {', '.join(unknown)}" if unknown else "no bullet is relevant"
            raise DataError(f"{path}: line {number}: {problem}")
        if label.query in labels:
            raise DataError(f"{path}: line {number}: the query {label.query!r} has a line already")
        labels[label.query] = label
    return [label for label in labels.values() if label.half == half]


def by_wording(labels: Sequence[Label]) -> Mapping[str, Sequence[str]]:
    """Return the queries of each wording, the natural ones first."""
    return {
        wording: queries
        for wording in get_args(Wording)
        if (queries := [label.query for label in labels if label.wording == wording])
    }


def relevance_by_labels(labels: Sequence[Label]) -> Relevant:
    """Return a function that judges relevance by the labels."""
    relevant = {label.query: frozenset(label.relevant) for label in labels}
    return lambda query, bullet: bullet.id in relevant[query]


def relevance_by_model(judge: Reranker, least: float) -> Relevant:
    """Return a function by which a bullet is relevant if a model scores it above ``least`` for the query."""

    @cache
    def judged(query: str, content: str) -> bool:
        return bool(judge.scores(query, [content])[0] > least)

    return lambda query, bullet: judged(query, bullet.content)
