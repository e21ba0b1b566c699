"""Measure the retrieval of bullets: R@1, R@5, P@3 and latency of each retriever.

    python scripts/evaluate_retrieval.py                              # the set in scripts/retrieval, hashed words
    python scripts/evaluate_retrieval.py --embedder sentence-transformers/all-MiniLM-L6-v2 \
        --cross-encoder cross-encoder/ms-marco-MiniLM-L-6-v2
    python scripts/evaluate_retrieval.py --playbook final.json --queries questions.txt --judge MODEL

R@k is the share of queries with a relevant bullet among the first k, P@3 the relevant share of the first three places.
Relevance comes from labels, or from a cross-encoder that no measured retriever uses, because a retriever's own
similarity would only agree with itself. The included set is small, one author wrote its queries and bullets, and most
queries have one relevant bullet, so P@3 cannot exceed a third: it compares retrievers, but does not show how good they
are on real questions.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple, get_args

import msgspec
from rich.console import Console
from rich.table import Table

from ace_bench.contexts.load import load_context
from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook.embed import make_embedder
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.rerank import CrossEncoderReranker, Reranker
from ace_bench.contexts.playbook.retrieve import RetrievalMode, Retriever
from ace_bench.core.errors import AceBenchError, ConfigError, DataError
from ace_bench.core.tokens import estimate_tokens

_SET = Path(__file__).parent / "retrieval"
_SHOWN = 5

Relevant = Callable[[str, Bullet], bool]


class Label(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a labels file: a query, and the ids of the bullets that answer it."""

    query: str
    relevant: list[str]


class Measured(NamedTuple):
    """One retriever's results: shares in [0, 1], latency as the median in milliseconds."""

    way: str
    recall_1: float
    recall_5: float
    precision_3: float
    milliseconds: float


def read_labels(path: Path, playbook: Playbook) -> Mapping[str, Collection[str]]:
    """Read relevant ids by query; raises ``DataError`` for a broken line or an id that no bullet has."""
    labels: dict[str, Collection[str]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            label = msgspec.json.decode(line, type=Label)
        except msgspec.DecodeError as error:
            raise DataError(f"{path}: line {number}: {error}") from error
        unknown = [one for one in label.relevant if one not in playbook.index]
        if unknown or not label.relevant:
            problem = f"no bullet has the id {', '.join(unknown)}" if unknown else "no bullet is relevant"
            raise DataError(f"{path}: line {number}: {problem}")
        labels[label.query] = label.relevant
    return labels


def labelled(labels: Mapping[str, Collection[str]]) -> Relevant:
    """Return relevance by labels."""
    return lambda query, bullet: bullet.id in labels[query]


def judged(judge: Reranker, threshold: float) -> Relevant:
    """Return relevance by a cross-encoder; a bullet is relevant above the score ``threshold``."""
    return lambda query, bullet: float(judge.scores(query, [bullet.content])[0]) > threshold


def measure(retriever: Retriever, playbook: Playbook, queries: Sequence[str], relevant: Relevant) -> Measured:
    """Run every query with one retriever; the first runs twice, so that preparation is not timed."""
    retriever.prepare()
    retriever.ranked(playbook, queries[0])
    hits: list[list[bool]] = []
    seconds: list[float] = []
    for query in queries:
        started = time.perf_counter()
        found = retriever.ranked(playbook, query)
        seconds.append(time.perf_counter() - started)
        hits.append([relevant(query, bullet) for bullet in found])
    n = len(queries)
    return Measured(
        way=retriever.mode,
        recall_1=sum(any(hit[:1]) for hit in hits) / n,
        recall_5=sum(any(hit[:_SHOWN]) for hit in hits) / n,
        precision_3=sum(sum(hit[:3]) for hit in hits) / (3 * n),
        milliseconds=1000 * median(seconds),
    )


def check_judge(judge: str, *, embedder: str, cross_encoder: str | None) -> None:
    """Raise ``ConfigError`` if a retriever would be judged by itself."""
    if judge in ("cosine", "hashing", embedder):
        raise ConfigError(f"--judge {judge} would judge the retriever by its own cosine; use labels or a cross-encoder")
    if judge == cross_encoder:
        raise ConfigError(f"--judge {judge} also orders the reranked way; judge by another cross-encoder or by labels")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit code is not zero for an error in files or settings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--playbook", type=Path, default=_SET / "playbook.txt", help="saved playbook, JSON or text")
    parser.add_argument("--labels", type=Path, help='lines such as {"query": "...", "relevant": ["id"]}')
    parser.add_argument("--judge", help="cross-encoder that judges relevance instead of labels")
    parser.add_argument("--threshold", type=float, default=-10.0, help="score above which the judge finds it relevant")
    parser.add_argument("--queries", type=Path, help="queries for the judge, one a line")
    parser.add_argument("--embedder", default="hashing", help="hashing, or a sentence-transformers model")
    parser.add_argument("--cross-encoder", help="model of the reranked way, which is left out without it")
    options = parser.parse_args(arguments)
    try:
        results = evaluate(options)
    except (AceBenchError, OSError) as error:
        Console(stderr=True).print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        return 2
    Console().print(_table(results))
    return 0


def evaluate(options: argparse.Namespace) -> list[Measured]:
    """Measure all retrievers."""
    playbook = load_context(options.playbook, sections=(), count=estimate_tokens)
    if not isinstance(playbook, Playbook):
        raise ConfigError(f"{options.playbook} does not hold a playbook")
    if options.judge is None:
        labels = read_labels(options.labels or _SET / "labels.jsonl", playbook)
        queries = list(labels)
        relevant = labelled(labels)
    else:
        if options.queries is None or options.labels is not None:
            raise ConfigError("--judge needs --queries and takes no --labels")
        check_judge(options.judge, embedder=options.embedder, cross_encoder=options.cross_encoder)
        queries = list(filter(None, map(str.strip, options.queries.read_text(encoding="utf-8").splitlines())))
        relevant = judged(CrossEncoderReranker(options.judge), options.threshold)
    if not queries:
        raise ConfigError("there is no query to measure with")
    embedder = make_embedder(options.embedder)
    ways: list[RetrievalMode] = [way for way in get_args(RetrievalMode) if way != "off"]
    return [
        measure(
            Retriever(
                mode=way, top_k=_SHOWN, duplicates=0.9, embedder=embedder, cross_encoder=options.cross_encoder or ""
            ),
            playbook,
            queries,
            relevant,
        )
        for way in ways
        if way != "reranked" or options.cross_encoder
    ]


def _table(results: Sequence[Measured]) -> Table:
    table = Table(title="Retrieval")
    for heading in ("way", "R@1", "R@5", "P@3", "median ms"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    for one in results:
        shares = (f"{100 * share:.1f}" for share in (one.recall_1, one.recall_5, one.precision_3))
        table.add_row(one.way, *shares, f"{one.milliseconds:.1f}")
    return table


if __name__ == "__main__":
    sys.exit(main())
