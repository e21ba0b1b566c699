"""What a query gives does not depend on the day on which it runs: all SQL sees one time."""

from __future__ import annotations

import json

from tests.tasks.bird_sql.conftest import CLOCK, SCRIPT, build

FIXED = {
    "current_timestamp": CLOCK,
    "CURRENT_DATE": "2025-10-06",
    "current_time": "00:00:00",
    "date()": "2025-10-06",
    "time()": "00:00:00",
    "DATETIME()": CLOCK,
    "julianday()": 2460954.5,
    "unixepoch()": 1759708800,
    "strftime('%Y')": "2025",
    "date('now')": "2025-10-06",
    "date('NOW', 'start of month', '-1 day')": "2025-09-30",
    "strftime('%Y', 'now') - strftime('%Y', '1960-02-03')": 65,
    "strftime('%s', 'n' || 'ow')": "1759708800",
    "strftime('%Y', x'6e6f77')": "2025",
    "date('now' || char(0) || 'x')": "2025-10-06",
    "datetime('now', 'localtime')": CLOCK,
    "datetime('2020-01-01', 'localtime')": "2020-01-01 00:00:00",
    # What does not ask for the current time is SQLite's own.
    "strftime('%Y-%m', '2008-02-29', '+1 year')": "2009-03",
    "strftime()": None,
    "date(NULL)": None,
    "date('nowhere')": None,
    "date(2450000.5)": "1995-10-10",
    "time('12:30')": "12:30:00",
}


def test_every_way_to_read_the_clock_gives_the_fixed_time(workers, database, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    pool = workers(timeout=10)
    found = {sql: pool.run(database, f"SELECT {sql}") for sql in FIXED}
    assert {sql: outcome.message or outcome.preview[0] for sql, outcome in found.items()} == {
        sql: repr(value) for sql, value in FIXED.items()
    }


def test_the_clock_in_views_and_defaults_is_fixed_too(workers, tmp_path):
    path = tmp_path / "people" / "people.sqlite"
    build(path, f"{SCRIPT} CREATE VIEW ages AS SELECT strftime('%Y', 'now') - 1980 AS age;")
    assert workers(timeout=10).run(path, "SELECT age FROM ages").preview == ("45",)


def test_gold_and_answer_see_the_same_time_and_kept_golds_name_it(grading, cache):
    gold = "SELECT strftime('%Y', CURRENT_TIMESTAMP) - 1980"
    now = grading(gold, clock="2025-10-06T00:00:00")
    assert now("SELECT strftime('%Y', date('now')) - 1980").correct
    assert now("SELECT 2025 - 1980").correct
    later = grading(gold, clock="2027-01-01T01:00:00+02:00")
    assert later("SELECT 2026 - 1980").correct, "a time zone is understood"
    assert not later("SELECT 2025 - 1980").correct
    kept = [json.loads(path.read_bytes())["preview"] for path in (cache / "bird_sql" / "golds").rglob("*.json")]
    assert sorted(kept) == [["45"], ["46"]]
