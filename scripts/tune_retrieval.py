"""Fit the weights of the re-ranker by own features on the tuning half of the labelled queries.

    python scripts/tune_retrieval.py

Prints the weights to paste into ``ace_bench/contexts/retrieval/features.py``, and R@1 of the tuning half by
cross-validation over bullets. The report half is not read.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from scipy.optimize import minimize
from scipy.special import logsumexp

from ace_bench.cli.retrieval.labels import SHIPPED, read_labels, read_playbook
from ace_bench.contexts.playbook.embed import HashingEmbedder
from ace_bench.contexts.playbook.retrieve import Retriever
from ace_bench.contexts.retrieval.features import Weights

_FOLDS = 5
_PENALTY = 0.02

Matrix = npt.NDArray[np.float64]
Example = tuple[Matrix, npt.NDArray[np.bool_]]


def examples() -> list[Example]:
    """Return the features and the relevance of all bullets for each query of the tuning half."""
    playbook = read_playbook(SHIPPED.playbook)
    retriever = Retriever(mode="features", top_k=5, duplicates=1.0, embedder=HashingEmbedder(), cross_encoder="")
    found: list[Example] = []
    for label in read_labels(SHIPPED.labels, playbook, half="tuning"):
        relevant = np.array([bullet.id in label.relevant for bullet in playbook.bullets])
        found.append((retriever.explained(playbook, label.query), relevant))
    return found


def fitted(chosen: Sequence[Example]) -> Matrix:
    """Return non-negative weights that make the relevant bullets most likely (softmax over a query's bullets)."""

    def loss(weights: Matrix) -> float:
        total = 0.0
        for matrix, relevant in chosen:
            scores = matrix @ weights
            total += float(logsumexp(scores) - logsumexp(scores[relevant]))
        return total / len(chosen) + _PENALTY * float(weights @ weights) / len(weights)

    start = np.ones(len(Weights._fields))
    result: Any = minimize(loss, start, method="L-BFGS-B", bounds=[(0.0, 30.0)] * len(start))
    found: Matrix = result.x
    return found


def first_places(chosen: Sequence[Example], weights: Matrix) -> float:
    """Return the share of queries whose best bullet is relevant."""
    return float(np.mean([relevant[int(np.argmax(matrix @ weights))] for matrix, relevant in chosen]))


def main() -> int:
    """Fit and print."""
    found = examples()
    held_out = []
    for fold in range(_FOLDS):
        at = len(found) * fold // _FOLDS, len(found) * (fold + 1) // _FOLDS
        held_out.append(first_places(found[at[0] : at[1]], fitted(found[: at[0]] + found[at[1] :])))
    weights = fitted(found)
    console = Console()
    for name, value in zip(Weights._fields, weights, strict=True):
        console.print(f"    {name}={value:.2f},")
    console.print(f"R@1 of the tuning half: {first_places(found, weights):.3f}; held out: {np.mean(held_out):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
