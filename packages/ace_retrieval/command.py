"""Measure the retrieval of bullets: R@1, R@5, P@3 and latency of each stage (document 004, "A/B Test Results").

    ace-bench retrieval                                   the report half of the set that ships, a table per wording
    ace-bench retrieval --out ab.md --json ab.json        the same as files
    ace-bench retrieval --embedder sentence-transformers/all-MiniLM-L6-v2 \
        --cross-encoder cross-encoder/ms-marco-MiniLM-L-6-v2
    ace-bench retrieval --embeddings-url http://localhost:8000/v1 --embedder Qwen/Qwen3-Embedding-8B
    ace-bench retrieval --playbook final.json --queries questions.txt --judge MODEL
    ace-bench retrieval --model BACKBONE --set budget.usd=1 --calls DIR --limit 40
    ace-bench retrieval --bullets 100000                  latency in a playbook filled up to that size

R@k is the share of queries with a relevant bullet among the first k, P@3 the relevant share of the first three places.
Relevance comes from labels, or from a cross-encoder that no measured retriever uses, because a retriever's own
similarity would only agree with itself. Most queries of the set have one relevant bullet, so P@3 cannot exceed about a
third.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ace_bench.api import open_backbone, open_embedder
from ace_bench.cli.arguments import Parser, add_column, count
from ace_bench.contexts.playbook.embed import Embedder, make_embedder
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.encoding import digest_of_text
from ace_bench.core.errors import ConfigError
from ace_bench.store.call_log import Account
from ace_bench.store.files import cache_folder, write_files
from ace_retrieval.by_model import Model
from ace_retrieval.features import CrossEncoderReranker
from ace_retrieval.labels import HALVES, SHIPPED, by_wording, judged, labelled, read_labels, read_playbook
from ace_retrieval.measuring import Measured, Trial, filled, model_variants, retriever_variants

_HEADINGS = ("", "configuration", "R@1", "R@5", "P@3", "p50 ms", "p95 ms")


def main(arguments: Sequence[str]) -> int:
    """Measure all configurations, print the table and write the files asked for."""
    options = _options(arguments)
    with _embedder(options) as embedder, _model(options) as model:
        _measure(options, replace(measurement_of(options, embedder), model=model))
    return 0


def _measure(options: argparse.Namespace, measurement: Trial) -> None:
    variants = [
        *retriever_variants(cross_encoder=bool(options.cross_encoder)),
        *(model_variants() if measurement.model else ()),
    ]
    measured = [one for variant in variants for one in measurement.measure(variant)]
    tables = {wording: [one for one in measured if one.wording == wording] for wording in measurement.queries}
    files: dict[Path, str] = {}
    if options.out is not None:
        files[options.out] = markdown(tables)
    if options.json is not None:
        files[options.json] = json.dumps([one._asdict() for table in tables.values() for one in table], indent=2) + "\n"
    write_files(files)
    console = Console()
    for wording, results in tables.items():
        title = (
            f"Retrieval: {len(measurement.queries[wording])} {wording} queries, {measurement.playbook.size:,} bullets"
        )
        console.print(_table(results, title))


def measurement_of(options: argparse.Namespace, embedder: Embedder) -> Trial:
    """Read what the options name; raises ``ConfigError`` and ``DataError``."""
    playbook = read_playbook(options.playbook)
    if options.judge is None:
        labels = read_labels(options.labels, playbook, half=options.half)
        queries = {wording: some[: options.limit] for wording, some in by_wording(labels).items()}
        relevant = labelled(labels)
    else:
        if options.queries is None or options.labels != SHIPPED.labels:
            raise ConfigError("--judge needs --queries and takes no --labels")
        check_judge(options.judge, embedder=options.embedder, cross_encoder=options.cross_encoder)
        asked = list(filter(None, map(str.strip, _text(options.queries).splitlines())))
        queries = {"judged": asked} if asked else {}
        relevant = judged(CrossEncoderReranker(options.judge), options.threshold)
    if not queries:
        raise ConfigError("there is no query to measure with")
    return Trial(
        playbook=_fill_up(playbook, options.bullets),
        queries=queries,
        relevant=relevant,
        embedder=embedder,
        cross_encoder=options.cross_encoder or "",
    )


@contextmanager
def _embedder(options: argparse.Namespace) -> Iterator[Embedder]:
    """Yield the embedder that the options name; of an endpoint, print at the end what was paid."""
    if options.embeddings_url is None:
        yield make_embedder(options.embedder)
        return
    folder = (options.embeddings_cache or cache_folder("embeddings")) / digest_of_text(options.embedder)[:16]
    price = options.embeddings_price
    opened = open_embedder(
        options.embeddings_url,
        options.embedder,
        folder=folder,
        key_env=options.embeddings_key_env,
        usd_per_million=price,
    )
    with opened as embedder:
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


def check_judge(judge: str, *, embedder: str, cross_encoder: str | None) -> None:
    """Raise ``ConfigError`` if a retriever would be judged by itself."""
    if judge in ("cosine", "hashing", embedder):
        raise ConfigError(f"--judge {judge} would judge the retriever by its own cosine; use labels or a cross-encoder")
    if judge == cross_encoder:
        raise ConfigError(f"--judge {judge} also orders the reranked way; judge by another cross-encoder or by labels")


def markdown(tables: Mapping[str, Sequence[Measured]]) -> str:
    """Return the tables in Markdown, each under the wording of its queries."""
    return "\n".join(f"{wording.capitalize()} queries:\n\n{_rows(results)}" for wording, results in tables.items())


def _rows(results: Sequence[Measured]) -> str:
    lines = [_HEADINGS, ("---", "---", *["---:"] * 5), *map(_cells, results)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser("retrieval", __doc__)
    parser.add_argument("--playbook", type=Path, default=SHIPPED.playbook, help="saved playbook, JSON or text")
    parser.add_argument(
        "--labels",
        type=Path,
        default=SHIPPED.labels,
        help='lines such as {"query": "...", "relevant": ["id"]}; with "wording": natural or distant',
    )
    parser.add_argument("--half", choices=HALVES, default="report", help="labelled queries (default: %(default)s)")
    parser.add_argument("--judge", help="cross-encoder that judges relevance instead of labels")
    parser.add_argument("--threshold", type=float, default=-10.0, help="score above which the judge finds it relevant")
    parser.add_argument("--queries", type=Path, help="queries for the judge, one a line")
    parser.add_argument(
        "--embedder", default="hashing", help="hashing, static:MODEL, or a sentence model (name or folder)"
    )
    parser.add_argument(
        "--embeddings-url", help="endpoint that embeds with --embedder, such as http://localhost:8000/v1"
    )
    parser.add_argument("--embeddings-key-env", help="environment variable of its key (default: it needs none)")
    parser.add_argument("--embeddings-price", type=float, help="its price in dollars per million tokens")
    parser.add_argument("--embeddings-cache", type=Path, help="folder of paid vectors (default: the cache folder)")
    parser.add_argument("--cross-encoder", help="model of the cross-encoder's rows, which are left out without it")
    parser.add_argument("--model", help="backbone that expands queries, and validates typos and the first five bullets")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="its settings, and budget.*")
    parser.add_argument("--calls", type=Path, help="folder of its paid calls (default: in the cache folder)")
    parser.add_argument("--limit", type=count, help="take the first queries of each wording only")
    parser.add_argument("--bullets", type=int, default=0, help="fill the playbook up to this size, to measure latency")
    parser.add_argument("--out", type=Path, help="write the table as Markdown")
    parser.add_argument("--json", type=Path, help="write the figures as JSON")
    return parser.parse_args(arguments)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def _fill_up(playbook: Playbook, size: int) -> Playbook:
    return filled(playbook, size) if size > playbook.size else playbook


def _cells(one: Measured) -> tuple[str, ...]:
    shares = (f"{100 * share:.1f}" for share in (one.recall_1, one.recall_5, one.precision_3))
    return one.row, one.variant, *shares, f"{one.p50_ms:.1f}", f"{one.p95_ms:.1f}"


def _table(results: Sequence[Measured], title: str) -> Table:
    table = Table(title=title)
    for at, heading in enumerate(_HEADINGS):
        add_column(table, heading, justify="left" if at < 2 else "right")
    for one in results:
        table.add_row(*_cells(one))
    return table
