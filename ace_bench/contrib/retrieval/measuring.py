"""Measure retrievers: R@1, R@5, P@3 and latency; the document's A/B table is ``reproduce experiment=seed_004``."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from ace_bench.contrib.retrieval.by_model import Model
from ace_bench.contrib.retrieval.features import Reranker
from ace_bench.contrib.retrieval.labels import (
    SHIPPED,
    Relevant,
    by_wording,
    read_labels,
    read_playbook,
    relevance_by_labels,
)
from ace_bench.contrib.retrieval.retriever import RetrievalMode, Retriever
from ace_bench.contrib.retrieval.typos import TypoCorrector
from ace_bench.core.measurement import Measurement, MeasurementRequest
from ace_bench.playbook.bullets import Bullet
from ace_bench.playbook.embed import make_embedder
from ace_bench.playbook.embeddings import Embedder, EmbeddingMemo, Matrix
from ace_bench.playbook.playbook import Playbook

COLUMNS = ("wording", "row", "configuration", "R@1", "R@5", "P@3", "p50 ms", "p95 ms")
_EMBEDDER = "embedder="
SHOWN = 5
_DUPLICATES = 0.9
_LEARNT_TYPOS = 1000
_PERCENTILE = 50.0
_SECTION = "others"
_WORDS = 22
_RARE = 0.1
"""Share of words that few bullets have, such as names and numbers."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One configuration of the pipeline; ``row`` is its letter in the document's A/B table."""

    name: str
    mode: RetrievalMode
    row: str = ""
    expansion: bool = False
    typos: bool = False
    by_model: bool = False
    percentile: float = 0.0


class Measured(NamedTuple):
    """One configuration's results for the queries of one wording: shares in [0, 1], latencies in milliseconds."""

    wording: str
    row: str
    variant: str
    recall_1: float
    recall_5: float
    precision_3: float
    p50_ms: float
    p95_ms: float

    def shown(self) -> tuple[str | float, ...]:
        """Return the values of ``COLUMNS``: shares in percent."""
        return (*self[:3], *(round(100 * share, 1) for share in self[3:6]), *self[6:])


def model_variants() -> Sequence[Variant]:
    """Return the stages of the document that a model takes over."""
    return [
        Variant(row="B", name="validated by the model", mode="reranked", by_model=True),
        Variant(row="C", name="expansion by the model", mode="fused", expansion=True, by_model=True),
        Variant(row="D", name="both by the model", mode="reranked", expansion=True, by_model=True),
        Variant(name="B with typo correction validated by the model", mode="features", typos=True, by_model=True),
    ]


def retriever_variants(*, cross_encoder: bool) -> Sequence[Variant]:
    """Return the configurations to compare: single rankings, the document's A to D, and the other stages."""
    variants = [
        Variant(name="bm25", mode="bm25"),
        Variant(name="embeddings", mode="embeddings"),
        Variant(row="A", name="fused (baseline)", mode="fused"),
        Variant(row="B", name="re-ranked by own features", mode="features"),
        Variant(row="C", name="expansion", mode="fused", expansion=True),
        Variant(row="D", name="re-ranked by own features, expansion", mode="features", expansion=True),
        Variant(name="B with typo correction", mode="features", typos=True),
        Variant(name="B with percentile 50", mode="features", percentile=_PERCENTILE),
    ]
    if not cross_encoder:
        return variants
    return [
        *variants,
        Variant(row="B", name="cross-encoder", mode="reranked"),
        Variant(row="D", name="cross-encoder, expansion", mode="reranked", expansion=True),
    ]


class MeasuredEmbedder:
    """Embeds each text once for all variants, and counts the seconds that this took."""

    def __init__(self, embedder: Embedder):
        self._memo = EmbeddingMemo(embedder)
        self._embedder = embedder
        self.seconds = 0.0

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See ``Embedder``."""
        if not texts:
            return self._embedder.embed(texts)
        started = time.perf_counter()
        rows = self._memo.rows(texts)
        self.seconds += time.perf_counter() - started
        return self._memo.matrix[rows]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What to measure with: a playbook, queries by their wording, and what is relevant to them."""

    playbook: Playbook
    queries: Mapping[str, Sequence[str]]
    relevant: Relevant
    embedder: Embedder
    cross_encoder: str | Reranker = ""
    model: Model | None = None

    @cached_property
    def _measured_embedder(self) -> MeasuredEmbedder:
        return MeasuredEmbedder(self.embedder)  # all variants share its vectors

    def measure_all(self, variants: Iterable[Variant]) -> Mapping[str, Sequence[Measured]]:
        """Measure variants; return the results of each wording."""
        measured = [self.measure(variant) for variant in variants]
        return dict(zip(self.queries, zip(*measured, strict=True), strict=True))

    def measure(self, variant: Variant) -> Sequence[Measured]:
        """Run every query, a result per wording; the first runs twice, so that preparation is not timed.

        Times leave out the embedding of queries, which happens once for all variants.
        """
        typos = TypoCorrector(max_learned=_LEARNT_TYPOS if variant.typos else 0)
        retriever = Retriever(
            mode=variant.mode,
            top_k=SHOWN,
            duplicates=_DUPLICATES,
            embedder=self._measured_embedder,
            cross_encoder=self.model if variant.by_model and self.model else self.cross_encoder,
            percentile=variant.percentile,
            expansion=variant.expansion,
            typos=typos,
        )
        if variant.by_model and self.model:
            retriever.expander, typos.validate = self.model.expanded, self.model.is_typo
        retriever.prepare()
        retriever.ranked(self.playbook, next(iter(self.queries.values()))[0])
        return [self._measure_wording(variant, retriever, wording) for wording in self.queries]

    def _measure_wording(self, variant: Variant, retriever: Retriever, wording: str) -> Measured:
        queries = self.queries[wording]
        hits: list[list[bool]] = []
        seconds: list[float] = []
        for query in queries:
            embedding, started = self._measured_embedder.seconds, time.perf_counter()
            bullets = retriever.ranked(self.playbook, query)
            took = time.perf_counter() - started
            seconds.append(took - (self._measured_embedder.seconds - embedding))
            hits.append([self.relevant(query, bullet) for bullet in bullets])
        n = len(queries)
        p50, p95 = (1000 * np.percentile(seconds, [50, 95])).tolist()
        return Measured(
            wording=wording,
            row=variant.row,
            variant=variant.name,
            recall_1=sum(any(hit[:1]) for hit in hits) / n,
            recall_5=sum(any(hit[:SHOWN]) for hit in hits) / n,
            precision_3=sum(sum(hit[:3]) for hit in hits) / (3 * n),
            p50_ms=round(p50, 2),
            p95_ms=round(p95, 2),
        )


def fill_playbook(playbook: Playbook, size: int) -> Playbook:
    """Return the playbook with bullets of its own words in random order, and some rare ones, up to ``size``."""
    draw = random.Random(0)
    words = [word for bullet in playbook.bullets for word in bullet.content.split()]
    first = playbook.next_number
    fillers = [
        Bullet(
            id=f"oth-{number:05d}",
            section=_SECTION,
            content=" ".join(
                f"name{draw.randrange(size)}" if draw.random() < _RARE else draw.choice(words) for _ in range(_WORDS)
            ),
            created=0,
            changed=0,
            tokens=2 * _WORDS,
        )
        for number in range(first, first + size - playbook.size)
    ]
    return Playbook.build_from([*playbook.bullets, *fillers], sections=playbook.sections)


def ab_table(request: MeasurementRequest) -> Measurement:
    """Measure the report half of the set that ships; of the settings, ``embedder=`` counts.

    Marked as simulated, because queries and labels are the project's own.
    """
    chosen = [setting.removeprefix(_EMBEDDER) for setting in request.settings if setting.startswith(_EMBEDDER)]
    playbook = read_playbook(SHIPPED.playbook)
    labels = read_labels(SHIPPED.labels, playbook, half="report")
    timing = Trial(
        playbook=playbook,
        queries=by_wording(labels),
        relevant=relevance_by_labels(labels),
        embedder=make_embedder(chosen[-1] if chosen else "hashing"),
    )
    measured = timing.measure_all(retriever_variants(cross_encoder=False)).values()
    rows = tuple(row.shown() for row in chain.from_iterable(measured))
    return Measurement(columns=COLUMNS, rows=rows, simulated=True)
