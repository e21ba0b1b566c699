"""Measure what a cosine similarity means to an embedder: which bullets it merges, and which questions it finds similar.

    python scripts/measure_embedders.py hashing FOLDER        FOLDER holds a sentence-transformers model
    python scripts/measure_embedders.py hashing --memory train.jsonl --queries test.jsonl --text question --label db_id

The first form prints, for each threshold, the share of the pairs in ``bullet_pairs.jsonl`` at or above it: copies with
small changes, the same lesson in other words, and a different lesson in like words, which must not be merged; and how
many bullets of the playbook that ships, all distinct lessons, are merged by mistake. The second form prints how often
the nearest of the ``--memory`` questions, and the nearest four, have the label of a query.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from ace_bench.contexts.playbook.embed import make_embedder
from ace_bench.contexts.playbook.embeddings import Embedder
from ace_bench.contexts.playbook.refine import Refiner
from ace_bench.contexts.selection import NearestTexts
from ace_bench.core.console import Console
from ace_bench.core.errors import ConfigError
from ace_bench.core.prompts import estimate_tokens
from ace_retrieval.labels import SHIPPED, read_playbook

THRESHOLDS = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5)
KINDS = ("copy", "reworded", "different")
_PAIRS = Path(__file__).with_name("bullet_pairs.jsonl")
_SHOWN = 4


def similarities(embedder: Embedder) -> dict[str, np.ndarray[Any, Any]]:
    """Return the cosine similarity of each bullet to its variant of each kind."""
    pairs = read_lines(_PAIRS)
    bullets = embedder.embed([pair["bullet"] for pair in pairs])
    return {kind: (bullets * embedder.embed([pair[kind] for pair in pairs])).sum(axis=1) for kind in KINDS}


def measure_merging(embedder: Embedder) -> list[list[str]]:
    """Return the median of each kind, and a row for each threshold."""
    found = similarities(embedder)
    playbook = read_playbook(SHIPPED.playbook)
    rows = [["median", *(f"{np.median(found[kind]):.2f}" for kind in KINDS), ""]]
    for threshold in THRESHOLDS:
        refiner = Refiner(embedder, threshold=threshold, max_tokens=None)
        refined = refiner.refine(playbook, [bullet.id for bullet in playbook.bullets], step=0, count=estimate_tokens)
        shares = (f"{(found[kind] >= threshold).mean():.0%}" for kind in KINDS)
        rows.append([f"{threshold:g}", *shares, str(playbook.size - refined.playbook.size)])
    return rows


def measure_neighbours(embedder: Embedder, options: argparse.Namespace) -> list[list[str]]:
    """Return the shares of queries that find their label in the nearest question, and in one of the nearest four."""
    memory, queries = read_lines(options.memory), read_lines(options.queries)
    texts = [one[options.text] for one in memory]
    nearest = NearestTexts(embedder)
    hits = []
    for query in queries:
        found = nearest.find(texts, near=[query[options.text]], top_k=_SHOWN)
        hits.append([memory[near.place][options.label] == query[options.label] for near in reversed(found)])
    one, some = np.mean([hit[0] for hit in hits]), np.mean([any(hit) for hit in hits])
    return [[str(len(memory)), str(len(queries)), f"{one:.0%}", f"{some:.0%}"]]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Print one table in Markdown for each embedder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("embedders", nargs="+", help="as in embedder=: hashing, static:MODEL, a model's name or folder")
    parser.add_argument("--memory", type=Path, help="JSON Lines file of the questions that are searched")
    parser.add_argument("--queries", type=Path, help="JSON Lines file of the questions that are asked")
    parser.add_argument("--text", default="question", help="field of the question")
    parser.add_argument("--label", help="field in which the nearest sample should agree")
    options = parser.parse_args()
    given = [options.memory, options.queries, options.label]
    if any(given) and not all(given):
        parser.error("--memory, --queries and --label go together")
    headings = ["memory", "queries", "nearest", "one of four"] if options.memory else ["threshold", *KINDS, "mistakes"]
    console = Console(soft_wrap=True, highlight=False)
    for name in options.embedders:
        try:
            embedder = make_embedder(name)
            rows = measure_neighbours(embedder, options) if options.memory else measure_merging(embedder)
        except (ConfigError, OSError) as error:
            parser.error(str(error))
        except KeyError as error:
            parser.error(f"a line has no field {error}: name the fields with --text and --label")
        lines = [headings, ["---:"] * len(headings), *rows]
        console.print(f"{name}:\n", *(f"| {' | '.join(line)} |" for line in lines), sep="\n", end="\n\n", markup=False)


if __name__ == "__main__":
    main()
