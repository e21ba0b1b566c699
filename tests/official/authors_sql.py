"""Grades replies with the benchmarks' code.

    python tests/official/authors_sql.py REPOSITORY CHECKOUT DATABASES < pairs.json > verdicts.json

REPOSITORY is ``stream-bench`` (stream-bench/stream-bench; the pairs are gold queries with replies) or ``mini_dev``
(bird-bench/mini_dev, ``evaluation/``; gold queries with predicted ones). The verdicts are a list of 0 and 1. Their
time limit, a package of its own, is left out: the queries are short.
"""

from __future__ import annotations

import json
import sys
import types
from importlib import import_module
from typing import Any
from unittest.mock import MagicMock

from authors_prompts import Missing

NAME = "people"


class _NotInTime(Exception):
    """Never raised."""


def stream_bench(pairs: list[tuple[str, str]], databases: str) -> list[int]:
    """Return what ``process_results`` says of replies."""
    bench_class: Any = import_module("stream_bench.benchmarks.text_to_sql").create_bird()
    bench = object.__new__(bench_class)
    bench.db_path, bench.n_correct, bench.total, bench.predictions, bench.references = databases, 0, 0, [], []
    return [
        bench.process_results(bench.postprocess_generation(reply), {"db_id": NAME, "SQL": gold})
        for gold, reply in pairs
    ]


def mini_dev(pairs: list[tuple[str, str]], databases: str) -> list[int]:
    """Return what ``execute_model`` says of queries."""
    module: Any = import_module("evaluation_ex")
    path = f"{databases}/{NAME}/{NAME}.sqlite"
    return [
        module.execute_model(query, gold, path, number, 30.0, "SQLite")["res"]
        for number, (gold, query) in enumerate(pairs)
    ]


def main() -> None:
    repository, checkout, databases = sys.argv[1:]
    sys.dont_write_bytecode = True
    sys.path[0] = checkout if repository == "stream-bench" else f"{checkout}/evaluation"  # not this file's folder
    clock: Any = types.ModuleType("func_timeout")
    clock.func_timeout = lambda _seconds, function, args: function(*args)
    clock.FunctionTimedOut = _NotInTime
    sys.modules.update({"func_timeout": clock, "datasets": MagicMock(), "evaluate": MagicMock()})
    sys.meta_path.append(Missing())
    grade = {"stream-bench": stream_bench, "mini_dev": mini_dev}[repository]
    json.dump(grade(json.load(sys.stdin), databases), sys.stdout)


if __name__ == "__main__":
    main()
