"""Measure the retrieval of bullets: R@1, R@5, P@3 and latency of each stage (document 004, "A/B Test Results").

    ace-bench retrieval                                   the report half of the set that ships, a table per wording
    ace-bench retrieval --out ab.md --json ab.json        the same as files
    ace-bench retrieval --embedder sentence-transformers/all-MiniLM-L6-v2 \
        --cross-encoder cross-encoder/ms-marco-MiniLM-L-6-v2
    ace-bench retrieval --embeddings-url http://localhost:8000/v1 --embedder Qwen/Qwen3-Embedding-8B
    ace-bench retrieval --playbook final.json --labels labels.jsonl
    ace-bench retrieval --playbook final.json --labels queries.jsonl --judge cross-encoder/ms-marco-MiniLM-L-6-v2
    ace-bench retrieval --model BACKBONE --set budget.usd=1 --calls DIR --limit 40
    ace-bench retrieval --bullets 100000                  latency in a playbook filled up to that size

R@k is the share of queries with a relevant bullet among the first k, P@3 the relevant share of the first three places.
Most queries of the set have one relevant bullet, so P@3 cannot exceed about a third.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from rich.table import Table

from ace_bench.api import open_backbone, open_embedder
from ace_bench.cli.arguments import Parser, add_column, count
from ace_bench.contrib.retrieval.by_model import Model
from ace_bench.contrib.retrieval.features import CrossEncoderReranker
from ace_bench.contrib.retrieval.labels import (
    SHIPPED,
    by_wording,
    read_labels,
    read_playbook,
    relevance_by_labels,
    relevance_by_model,
)
from ace_bench.contrib.retrieval.measuring import (
    COLUMNS,
    Measured,
    Trial,
    fill_playbook,
    model_variants,
    retriever_variants,
)
from ace_bench.core.console import Console
from ace_bench.core.encoding import digest_of_text
from ace_bench.core.errors import ConfigError
from ace_bench.playbook.embed import ModelEmbedder, make_embedder
from ace_bench.playbook.embeddings import Embedder
from ace_bench.store.call_log import Account
from ace_bench.store.files import cache_folder, write_files
from ace_bench.store.vectors import VectorStore


def main(arguments: Sequence[str]) -> int:
    """Measure all configurations, print the table and write the files asked for."""
    options = _options(arguments)
    with _embedder(options) as embedder, _model(options) as model:
        trial = replace(_read_trial(options, embedder), model=model)
        variants = retriever_variants(cross_encoder=bool(options.cross_encoder))
        tables = trial.measure_all([*variants, *(model_variants() if model else ())])
        _write(options, tables)
        for wording, results in tables.items():
            queries, bullets = len(trial.queries[wording]), trial.playbook.size
            table = Table(title=f"Retrieval: {queries} {wording} queries, {bullets:,} bullets")
            for index, heading in enumerate(_HEADINGS):
                add_column(table, heading, justify="left" if index < 2 else "right")
            for result in results:
                table.add_row(*_cells(result))
            Console().print(table)
    return 0


_HEADINGS = ("", *COLUMNS[2:])


def _cells(measured: Measured) -> tuple[str, ...]:
    return measured.row, measured.variant, *(f"{figure:.1f}" for figure in measured.shown()[3:])


def _write(options: argparse.Namespace, tables: Mapping[str, Sequence[Measured]]) -> None:
    files: dict[Path, str] = {}
    if options.out is not None:
        texts = []
        for wording, results in tables.items():
            lines = [_HEADINGS, ("---", "---", *["---:"] * 5), *map(_cells, results)]
            rows = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
            texts.append(f"{wording.capitalize()} queries:\n\n{rows}")
        files[options.out] = "\n".join(texts)
    if options.json is not None:
        files[options.json] = (
            json.dumps([measured._asdict() for table in tables.values() for measured in table], indent=2) + "\n"
        )
    write_files(files)


def _read_trial(options: argparse.Namespace, embedder: Embedder) -> Trial:
    """Read what the options name; raises ``ConfigError`` and ``DataError``."""
    playbook = read_playbook(options.playbook)
    labels = read_labels(options.labels, playbook, half="report", judged=options.judge is not None)
    if not labels:
        raise ConfigError("there is no query to measure with")
    relevant = relevance_by_labels(labels)
    if options.judge is not None:
        judge = CrossEncoderReranker(options.judge)
        judge.scores("", [])  # a model that cannot be loaded stops the command here
        relevant = relevance_by_model(judge, options.judge_above)
    return Trial(
        playbook=fill_playbook(playbook, options.bullets) if options.bullets > playbook.size else playbook,
        queries={wording: queries[: options.limit] for wording, queries in by_wording(labels).items()},
        relevant=relevant,
        embedder=embedder,
        cross_encoder=options.cross_encoder or "",
    )


@contextmanager
def _embedder(options: argparse.Namespace) -> Iterator[Embedder]:
    """Yield the embedder that the options name; of an endpoint, print at the end what was paid."""
    if options.embeddings_url is None:
        embedder = make_embedder(options.embedder)
        with ExitStack() as stack:
            if options.embeddings_cache is not None and isinstance(embedder, ModelEmbedder):
                embedder.store = stack.enter_context(closing(VectorStore(options.embeddings_cache)))
            yield embedder
        return
    url, key, price = options.embeddings_url, options.embeddings_key_env, options.embeddings_price
    folder = (options.embeddings_cache or cache_folder("embeddings")) / digest_of_text(options.embedder)[:16]
    with open_embedder(url, options.embedder, folder=folder, key_env=key, usd_per_million=price) as embedder:
        yield embedder
        Console().print(_describe_cost(embedder.ledger.total))


@contextmanager
def _model(options: argparse.Namespace) -> Iterator[Model | None]:
    """Yield the model that takes over stages, if one is named; its calls are kept and limited like a run's."""
    if options.model is None:
        yield None
        return
    folder = options.calls or cache_folder("retrieval") / digest_of_text(" ".join([options.model, *options.set]))[:16]
    with open_backbone(options.model, folder=folder, settings=options.set) as backbone:
        yield Model(backbone)


def _describe_cost(total: Account) -> str:
    tokens = "n/a" if total.usage.prompt is None else f"{total.usage.prompt:,}"
    usd = "n/a" if total.usage.usd is None else f"${total.usage.usd:.4f}"
    return f"Embeddings: {total.calls} requests, {tokens} tokens, {usd}, {total.retries} retries"


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser("retrieval", __doc__)
    parser.add_argument("--playbook", type=Path, default=SHIPPED.playbook, help="saved playbook, JSON or text")
    parser.add_argument(
        "--labels",
        type=Path,
        default=SHIPPED.labels,
        help='lines such as {"query": "...", "relevant": ["id"]}; with "wording": natural or distant',
    )
    parser.add_argument(
        "--embedder", default="hashing", help="hashing, static:MODEL, or a sentence model (name or folder)"
    )
    parser.add_argument(
        "--embeddings-url", help="endpoint that embeds with --embedder, such as http://localhost:8000/v1"
    )
    parser.add_argument("--embeddings-key-env", help="environment variable of its key (default: it needs none)")
    parser.add_argument("--embeddings-price", type=float, help="its price in dollars per million tokens")
    parser.add_argument(
        "--embeddings-cache",
        type=Path,
        help="folder that keeps the vectors of a model (an endpoint's default: in the cache folder)",
    )
    parser.add_argument("--cross-encoder", help="model of the cross-encoder's rows, which are left out without it")
    parser.add_argument("--judge", help="cross-encoder that says which bullets are relevant, in place of the labels")
    parser.add_argument(
        "--judge-above", type=float, default=-10.0, help="score above which a bullet is relevant (default: -10)"
    )
    parser.add_argument("--model", help="backbone that expands queries, and validates typos and the first five bullets")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="its settings, and budget.*")
    parser.add_argument("--calls", type=Path, help="folder of its paid calls (default: in the cache folder)")
    parser.add_argument("--limit", type=count, help="take the first queries of each wording only")
    parser.add_argument("--bullets", type=int, default=0, help="fill the playbook up to this size, to measure latency")
    parser.add_argument("--out", type=Path, help="write the table as Markdown")
    parser.add_argument("--json", type=Path, help="write the figures as JSON")
    return parser.parse_args(arguments)
