"""A cache of the test's own, tasks made as runs make them, and a database to be attacked."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from ace_bench.core.types import Grade
from ace_bench.tasks.bird_sql.pool import Limits, Workers
from ace_bench.tasks.bird_sql.task import BirdSql
from ace_bench.tasks.catalog import make_task
from tests.tasks.conftest import data_folder, no_ambient_data, real_data  # noqa: F401 - fixtures

SCRIPT = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, age INTEGER, note);
CREATE TABLE "odd ""name" (x REAL);
CREATE INDEX by_age ON people (age);
INSERT INTO people VALUES (1, 'Ann', 30, x'ff00'), (2, 'Bob', 40, CAST(x'c328' AS TEXT)), (3, 'Cid', 40, NULL);
INSERT INTO "odd ""name" VALUES (0.1), (0.2), (0.3), (9e999);
"""


CLOCK = "2025-10-06 00:00:00"
FEW = {"train": 1, "val": 1, "seed": 0}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path) -> Path:
    """Keep the user's cache out of tests."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ACE_BENCH_CACHE", str(folder))
    return folder


@pytest.fixture
def make() -> Iterator[Callable[..., BirdSql]]:
    """Return a maker of tasks, by default of the sample set; their processes end with the test."""
    with ExitStack() as stack:

        def task(**overrides: Any) -> BirdSql:
            settings = {"source": None if "data_dir" in overrides else "sample", "sample_allowed": True, **overrides}
            return stack.enter_context(closing(make_task("bird_sql", **settings)))

        yield task


@pytest.fixture
def database(tmp_path) -> Path:
    """Return a SQLite file with text that is no UTF-8, blobs, infinity and odd names."""
    return build(tmp_path / "people" / "people.sqlite", SCRIPT)


def limits(**changed: Any) -> Limits:
    """Return small limits of a query, changed."""
    small = {"timeout": 0.5, "rows": 1_000, "cell_bytes": 1_000_000, "depth": 100, "memory_mb": 512}
    return Limits(**{**small, **changed})


@pytest.fixture
def workers(tmp_path) -> Iterator[Callable[..., Workers]]:
    """Return a maker of worker pools with small limits that can read ``database``."""
    with ExitStack() as stack:

        def pool(*, count: int = 1, **changed: Any) -> Workers:
            made = Workers(count=count, limits=limits(**changed), clock=CLOCK, databases=[tmp_path / "people"])
            return stack.enter_context(closing(made))

        yield pool


@pytest.fixture
def mini_dev(tmp_path) -> Callable[..., Path]:
    """Return a writer of a data folder in the form of BIRD's mini-dev."""

    def write(questions: list[dict[str, Any]]) -> Path:
        folder = tmp_path / "data"
        database = folder / "dev_databases" / "people" / "people.sqlite"
        if not database.exists():
            build(database, SCRIPT)
        full = [{"db_id": "people", "evidence": "", "difficulty": "simple", **question} for question in questions]
        (folder / "mini_dev_sqlite.json").write_text(json.dumps(full))
        return folder

    return write


@pytest.fixture
def grading(make, mini_dev) -> Callable[..., Callable[..., Grade]]:
    """Return what makes a task of gold queries and returns how it grades an answer (to the first of them)."""

    def prepare(*golds: str, **settings: Any) -> Callable[..., Grade]:
        rows = [{"question": f"Question {n}?", "SQL": gold} for n, gold in enumerate(golds)]
        rows += [{"question": f"Filler {n}?", "SQL": f"SELECT {n} + 700"} for n in range(3)]
        task = make(data_dir=str(mini_dev(rows)), mini_dev=FEW, **settings)
        samples = {task.failing_grade(one).gold: one for split in task.splits for one in task.samples(split)}

        def grade(answer: str | None, gold: str = golds[0]) -> Grade:
            with task.open(samples[gold]) as session:
                return session.grade(answer)

        return grade

    return prepare


def build(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path
