"""Graders by name: BIRD's own rule in a few plain lines beside ours, over replies of real shapes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing

import pytest

from ace_bench.core.types import Grade
from ace_bench.tasks.bird_sql.questions import sql_by_stream_bench, sql_of
from tests.tasks.bird_sql.conftest import SCRIPT, build
from tests.tasks.bird_sql.replies import GOLDS, draw_replies

COUNT = 400


def grades(make, mini_dev, pairs) -> Sequence[Grade]:
    """Grade replies by a task with one question for each gold query."""
    rows = [{"question": f"Question {number}?", "SQL": gold} for number, gold in enumerate(GOLDS)]
    task = make(data_dir=str(mini_dev(rows)), mini_dev={"train": 1, "val": 1, "seed": 0})
    sessions = {}
    for split in task.splits:
        for sample in task.samples(split):
            session = task.open(sample).__enter__()
            sessions[session.grade(None).gold] = session
    return [sessions[gold].grade(reply) for gold, reply in pairs]


def test_bird_ex_compares_what_python_reads_as_sets(tmp_path, make, mini_dev):
    pairs = list(draw_replies(COUNT, seed=1))
    database = build(tmp_path / "plain" / "people.sqlite", SCRIPT)

    def rows(sql):
        with closing(sqlite3.connect(database)) as connection:
            return set(connection.execute(sql).fetchall())

    def right(gold, reply):
        try:
            return rows(sql_of(reply)) == rows(gold)
        except (sqlite3.Error, ValueError):  # SQL that fails, NUL, half a surrogate pair, text that is not UTF-8
            return False

    found = grades(make, mini_dev, pairs)
    for (gold, reply), grade in zip(pairs, found, strict=True):
        assert grade.detail["bird_ex"] == right(gold, reply), (gold, reply)
    points = {name: sum(grade.detail[name] for grade in found) for name in ("streambench_ex", "execution", "bird_ex")}
    assert COUNT / 10 < points["streambench_ex"] < points["execution"] != points["bird_ex"]


@pytest.mark.parametrize(
    ("reply", "sql"),
    [
        ("```sql\nSELECT 1\n```", "SELECT 1"),
        ("So: ```sql\nSELECT 1\n``` Done.", "SELECT 1"),
        ("```SQL\nSELECT 1\n``` done", "SELECT 1\n done"),
        ("```sql\nSELECT 1\n```\n```sql\nSELECT 2\n```", "SELECT 1\n```\n```sql\nSELECT 2"),
        ("WITH t AS (SELECT 1) SELECT * FROM t", "SELECT WITH t AS (SELECT 1) SELECT * FROM t"),
        ("select 1", "SELECT select 1"),
        ("name FROM people", "SELECT name FROM people"),
    ],
)
def test_the_query_that_stream_bench_reads(reply, sql):
    assert sql_by_stream_bench(reply) == sql
