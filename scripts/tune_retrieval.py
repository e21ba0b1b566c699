"""Fit the weights of the re-ranker by own features on the tuning half of the labelled queries, of both wordings.

    python scripts/tune_retrieval.py

Prints the weights to paste into ``packages/ace_retrieval/features.py``, and R@1 of the tuning half by
cross-validation: no bullet has queries in two folds. The report half is not read.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import logsumexp

from ace_bench.contexts.playbook.embeddings import HashingEmbedder
from ace_bench.core.console import Console
from ace_retrieval.features import Weights
from ace_retrieval.labels import SHIPPED, read_labels, read_playbook
from ace_retrieval.retriever import Retriever

_FOLDS = 5
_PENALTY = 0.01

Matrix = npt.NDArray[np.float64]


class Examples(NamedTuple):
    """Queries with the features of all bullets (queries, bullets, features), relevance, fold and wording."""

    features: Matrix
    relevant: npt.NDArray[np.bool_]
    fold: npt.NDArray[np.intp]
    wording: npt.NDArray[np.str_]

    def only(self, chosen: npt.NDArray[np.bool_]) -> Examples:
        """Return some of the queries."""
        return Examples(self.features[chosen], self.relevant[chosen], self.fold[chosen], self.wording[chosen])


def examples() -> Examples:
    """Return the tuning half."""
    playbook = read_playbook(SHIPPED.playbook)
    retriever = Retriever(mode="features", top_k=5, duplicates=1.0, embedder=HashingEmbedder(), cross_encoder="")
    labels = read_labels(SHIPPED.labels, playbook, half="tuning")
    bullets = sorted({label.relevant[0] for label in labels})
    return Examples(
        features=np.array([retriever.explained(playbook, label.query) for label in labels]),
        relevant=np.array([[bullet.id in label.relevant for bullet in playbook.bullets] for label in labels]),
        fold=np.array([bullets.index(label.relevant[0]) % _FOLDS for label in labels]),
        wording=np.array([label.wording for label in labels]),
    )


def fitted(chosen: Examples) -> Matrix:
    """Return non-negative weights that make the relevant bullets most likely (softmax over a query's bullets)."""

    def loss(weights: Matrix) -> float:
        scores = chosen.features @ weights
        of_relevant = np.where(chosen.relevant, scores, -np.inf)
        misses = logsumexp(scores, axis=1) - logsumexp(of_relevant, axis=1)
        return float(misses.mean()) + _PENALTY * float(weights @ weights) / len(weights)

    start = np.ones(len(Weights._fields))
    result: Any = minimize(loss, start, method="L-BFGS-B", bounds=[(0.0, 30.0)] * len(start))
    found: Matrix = result.x
    return found


def first_places(chosen: Examples, weights: Matrix) -> npt.NDArray[np.bool_]:
    """Return for each query whether its best bullet is relevant."""
    best = np.argmax(chosen.features @ weights, axis=1)
    places: npt.NDArray[np.bool_] = chosen.relevant[np.arange(len(best)), best]
    return places


def main() -> int:
    """Fit and print."""
    found = examples()
    held_out = np.zeros(len(found.fold), dtype=np.bool_)
    for fold in range(_FOLDS):
        inside = found.fold == fold
        held_out[inside] = first_places(found.only(inside), fitted(found.only(~inside)))
    weights = fitted(found)
    console = Console()
    for name, value in zip(Weights._fields, weights, strict=True):
        console.print(f"    {name}={value:.2f},")
    fits = first_places(found, weights)
    for wording in dict.fromkeys(found.wording):
        chosen = found.wording == wording
        console.print(f"R@1, {wording}: {fits[chosen].mean():.3f}; held out: {held_out[chosen].mean():.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
