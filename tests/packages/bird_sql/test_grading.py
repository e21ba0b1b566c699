"""What counts as right, what the environment says, and what the metrics sum up."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing

import pytest

from ace_bench.core.errors import RolloutFault
from ace_bench.core.task import Confining, Judged, Lifecycle, Task
from ace_bench.core.types import Labels, reveal
from ace_bird_sql.questions import format_question, orders, parts_of, sql_by_stream_bench, sql_of
from ace_bird_sql.task import METRICS
from tests.packages.bird_sql.conftest import SCRIPT, build
from tests.packages.bird_sql.replies import GOLDS, draw_replies

COUNT = 400
EMPTY = "SELECT name FROM people WHERE age > 99"


def test_replies_get_the_points_of_the_rules_in_plain_python(tmp_path, grading):
    """``bird_ex``, ``execution`` and ``execution_corrected`` over replies of real shapes, hostile and broken ones, too.

    ``make test-official`` has BIRD's and StreamBench's own code.
    """
    database = build(tmp_path / "plain" / "people.sqlite", SCRIPT)

    def read(sql, decode):
        """Return the rows as Python reads them; a text without a query has none."""
        with closing(sqlite3.connect(database)) as connection:
            connection.text_factory = decode
            cursor = connection.execute(sql)
            return cursor.fetchall(), cursor.description

    def compare(rule, *queries, decode=bytes.decode):
        try:
            return rule(*(read(sql, decode) for sql in queries))
        except (sqlite3.Error, ValueError):  # SQL that fails, NUL, half a surrogate pair, text that is not UTF-8
            return False

    def bird_ex(given, gold):
        return set(given[0]) == set(gold[0])

    def execution(given, gold):
        return bool(given[0]) and set(given[0]) == set(gold[0])

    def corrected(given, gold):
        rows = [[tuple(map(rounded, row)) for row in found] for found, _ in (given, gold)]
        return given[1] is not None and (set(rows[0]) == set(rows[1]))

    def rounded(cell):
        return float(f"{cell:.12g}") if isinstance(cell, float) and not cell.is_integer() else cell

    def kept(text):
        return text.decode("utf-8", "surrogateescape")

    grade, points = grading(*GOLDS), dict.fromkeys(METRICS, 0.0)
    for gold, reply in draw_replies(COUNT, seed=1):
        detail = grade(reply, gold).detail
        queries = sql_of(reply), gold
        assert detail["bird_ex"] == compare(bird_ex, *queries), (gold, reply)
        assert detail["execution"] == compare(execution, *queries, decode=kept), (gold, reply)
        if not orders(gold):
            assert detail["execution_corrected"] == compare(corrected, *queries, decode=kept), (gold, reply)
        points = {name: count + detail.get(name, 0.0) for name, count in points.items()}
    assert COUNT / 10 < points["streambench_ex"] < points["execution"] != points["bird_ex"]


NEARLY_EQUAL = [  # gold, answer, by the official rule, by the corrected one
    ("SELECT 'a', 'b'", "SELECT 'a,b'", False, False),
    ("SELECT name, age FROM people", "SELECT age, name FROM people", False, False),
    (EMPTY, "SELECT id FROM people WHERE age < 0", False, True),
    # Order: only where the gold query fixes it.
    ("SELECT id FROM people ORDER BY id DESC", "SELECT id FROM people ORDER BY id", True, False),
    ("SELECT id FROM people ORDER BY id DESC", "SELECT 4 - id FROM people", True, True),
    ("SELECT age FROM people ORDER BY age", "SELECT DISTINCT age FROM people ORDER BY age", True, True),
    ("SELECT id FROM (SELECT id FROM people ORDER BY id DESC)", "SELECT id FROM people", True, True),
    # Reals: officially to the last bit, else at 12 digits.
    ("SELECT 0.1 + 0.2", "SELECT 0.3", False, True),
    ("SELECT 0.1234567890121", "SELECT 0.1234567890122", False, True),
    ("SELECT 0.123456789011", "SELECT 0.123456789012", False, False),
    ("SELECT 1234567890123", "SELECT 1234567890124", False, False),
    ("SELECT 9007199254740993", "SELECT 9007199254740992.0", False, False),
    ("SELECT 9e999", "SELECT -9e999", False, False),
    # Bytes that are no UTF-8, blobs beside texts.
    ("SELECT CAST(x'c328' AS TEXT)", "SELECT x'c328'", False, False),
    ("SELECT CAST(x'c328' AS TEXT)", "SELECT CAST(x'c329' AS TEXT)", False, False),
]


def test_results_that_nearly_equal(workers, database):
    pool = workers(timeout=30)
    for gold, answer, official, corrected in NEARLY_EQUAL:
        expected, outcome = pool.run(database, gold), pool.run(database, answer)
        equal = outcome.same(expected), outcome.same_corrected(expected, ordered=orders(gold))
        assert equal == (official, corrected), (gold, answer)


def test_what_each_level_of_labels_shows(grading):
    gold = "SELECT max(age) + 59 FROM people"
    grade = grading(gold)
    for answer, said in {
        "SELECT id, name FROM people WHERE id = 1": "returned 1 row of 2 columns. First rows:\n1, 'Ann'",
        "SELECT id FROM people": "returned 3 rows of 1 column.",
        EMPTY: "ran and returned no rows",
        "SELECT salary FROM people": "failed: no such column: salary",
        None: "no query in the answer",
    }.items():
        found = grade(answer)
        assert said in found.observed
        assert reveal(found, Labels.NONE).message == found.observed
        assert "not correct" in reveal(found, Labels.CORRECTNESS).message
        assert reveal(found, Labels.CORRECTNESS).gold is None
        assert reveal(found, Labels.GOLD).gold == gold
        assert gold not in found.observed
        assert "99" not in found.observed, "nothing of the gold result"
    long = grade("SELECT hex(zeroblob(90000)), p.* FROM people p, people, people q").observed
    assert "27 rows" in long
    assert len(long) < 500
    json.dumps(long)


@pytest.mark.parametrize(
    ("answer", "sql"),
    [
        (" SELECT 1;\n", "SELECT 1;"),
        ("Here it is:\n```SQL\nSELECT 1;\n```\nDone.", "SELECT 1;"),
        ("```sqlite\nSELECT 1```", "SELECT 1"),
        ("```\nSELECT 1\n```", "SELECT 1"),
        ("```python\nprint()\n```\n```sql\nSELECT 1\n```", "SELECT 1"),
        ("```sql\nSELECT 1\n```\n```sql\nSELECT 2\n```", "SELECT 1"),
        ("```sql\nSELECT 1", "SELECT 1"),
        ("WITH a AS (SELECT 1)\nSELECT * FROM a", "WITH a AS (SELECT 1)\nSELECT * FROM a"),
        ("```", ""),
        (None, ""),
    ],
)
def test_the_query_in_an_answer(answer, sql):
    assert sql_of(answer) == sql


@pytest.mark.parametrize(
    ("reply", "sql"),
    [
        ("```sql\nSELECT 1\n```", "SELECT 1"),
        ("So: ```sql\nSELECT 1\n``` Done.", "SELECT 1"),
        ("```SQL\nSELECT 1\n``` done", "SELECT 1\n done"),
        ("```sql\nSELECT 1\n```\n```sql\nSELECT 2\n```", "SELECT 1\n```\n```sql\nSELECT 2"),
        ("select 1", "SELECT select 1"),
        ("name FROM people", "SELECT name FROM people"),
    ],
)
def test_the_query_that_stream_bench_reads(reply, sql):
    assert sql_by_stream_bench(reply) == sql


@pytest.mark.parametrize(
    ("sql", "fixed"),
    [
        ("select a from t order\n by a limit 1", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False),
        ("SELECT rank() OVER (ORDER BY a) FROM t", False),
        ("SELECT 'ORDER BY a' FROM t", False),
        ('SELECT "order by" FROM t', False),
        ("SELECT a FROM t -- ORDER BY a", False),
        ("SELECT a FROM t /* ORDER BY a */", False),
        ("SELECT [ORDER BY] FROM t ORDER -- x\n BY 1", True),
        ("SELECT `order` FROM t", False),
        ("(", False),
    ],
)
def test_when_a_query_fixes_the_order(sql, fixed):
    assert orders(sql) is fixed


def test_the_layout_can_be_read_back():
    schema = "CREATE TABLE a (\n  b TEXT\n)\n\nCREATE TABLE c (d)"
    plain, with_evidence = (format_question(schema, evidence, "How?") for evidence in ("", "b is d"))
    assert plain == f"Database schema:\n{schema}\n\nUser question: How?"
    assert with_evidence == f"Database schema:\n{schema}\n\nExternal knowledge: b is d\n\nUser question: How?"
    assert parts_of(plain) == (schema, "How?")
    assert parts_of(with_evidence) == (schema, "How?\n\n(External knowledge: b is d)")


def test_metrics_over_all_and_by_difficulty(make):
    task = make()
    right, wrong = [], []
    for sample in task.samples("test"):
        with task.open(sample) as session:
            wrong.append(session.grade(None))
            right.append(session.grade(wrong[-1].gold))
    scores = task.score(right)
    assert set(scores.values()) == {100.0}
    levels = ("", "_simple", "_moderate", "_challenging")
    assert set(scores) == {f"{metric}{level}" for metric in METRICS[:-1] for level in levels}, "and no judge: unasked"
    mixed = [r if "simple" in r.detail else w for r, w in zip(right, wrong, strict=True)]
    simple = sum("simple" in grade.detail for grade in right)
    assert task.score(mixed)["execution"] == pytest.approx(100 * simple / len(right))
    assert task.score(mixed)["execution_simple"] == 100
    assert task.score(mixed)["execution_challenging"] == 0
    assert task.score([task.failing_grade(task.samples("test")[0])])["execution"] == 0
    assert task.score([]) == {}


@pytest.mark.parametrize("metric", METRICS)
def test_the_headline_decides_what_is_correct(metric, grading):
    assert grading(EMPTY, metric=metric)(EMPTY).correct is (metric in ("bird_ex", "execution_corrected", "judge"))


def test_a_gold_query_that_fails_is_said_once_and_never_matched(grading, caplog):
    gold = "SELECT salary FROM people"
    grade = grading(gold)
    for answer in (gold, f"{gold} "):
        assert grade(answer).detail["execution"] == grade(answer).detail["execution_corrected"] == 0
    assert caplog.text.count("no such column: salary") == 1


def test_gold_results_are_kept_by_the_databases_checksum(grading, tmp_path, cache):
    gold, golds = "SELECT count(*) FROM people", cache / "bird_sql" / "golds"
    assert grading(gold)("SELECT 3").correct
    (entry,) = golds.rglob("*.json")
    content = entry.read_bytes()
    for damage in (b"", b"{}", b"\xff", content[: len(content) // 2], content.replace(b'"rows"', b'"rose"')):
        entry.write_bytes(damage)
        assert grading(gold)("SELECT 3").correct
        assert entry.read_bytes() == content, "a broken entry is made anew"
    entry.write_text(json.dumps(json.loads(content) | {"exact": hashlib.sha256().hexdigest()}))
    assert not grading(gold)("SELECT 3").correct, "what is kept is used"
    database = tmp_path / "data" / "dev_databases" / "people" / "people.sqlite"
    database.write_bytes(database.read_bytes() + b"\0" * 4096)
    assert grading(gold)("SELECT 3").correct
    assert len(list(golds.rglob("*.json"))) == 2


def test_satisfies_the_protocols(make):
    task: Task = make()
    assert (task.name, task.prompt_group, task.source, task.headline) == ("bird_sql", "qa", "sample", "execution")
    assert isinstance(task, Lifecycle)
    assert isinstance(task, Confining)
    assert task.confinement is None
    assert isinstance(task, Judged)
    said: list[str] = []
    task.start(said.append)
    assert "confined by: " in said[0]
    assert task.confinement is not None
    task.close()
    task.close()
    with task.open(task.samples("test")[0]) as session:
        assert session.grade(f"{session.grade(None).gold} -- again").correct
        with pytest.raises(RolloutFault):
            session.step("SELECT 1")
