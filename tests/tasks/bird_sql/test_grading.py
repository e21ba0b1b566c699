"""What counts as right, what the environment says, and what the metrics sum up."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing

import pytest

from ace_bench.core.task import Judged, Lifecycle
from ace_bench.core.types import Grade, Labels, reveal
from ace_bench.tasks.bird_sql.questions import format_question, orders, parts_of, sql_by_stream_bench, sql_of
from ace_bench.tasks.bird_sql.task import METRICS
from tests.tasks.bird_sql.conftest import SCRIPT, build
from tests.tasks.bird_sql.replies import GOLDS, draw_replies

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


NEARLY_EQUAL = [  # gold, answer; equal by execution, by bird_ex and by execution_corrected
    ("SELECT 'a', 'b'", "SELECT 'a,b'", False, False, False),
    ("SELECT name, age FROM people", "SELECT age, name FROM people", False, False, False),
    (EMPTY, "SELECT id FROM people WHERE age < 0", False, True, True),
    (EMPTY, "-- nothing", False, True, False),
    (EMPTY, "SELECT salary FROM people", False, False, False),
    ("SELECT salary FROM people", "SELECT salary FROM people", False, False, False),
    ("-- nothing", "-- nothing", False, False, False),
    # Order: only where the gold query fixes it.
    ("SELECT id FROM people ORDER BY id DESC", "SELECT id FROM people ORDER BY id", True, True, False),
    ("SELECT id FROM people ORDER BY id DESC", "SELECT 4 - id FROM people", True, True, True),
    ("SELECT age FROM people ORDER BY age", "SELECT DISTINCT age FROM people ORDER BY age", True, True, True),
    ("SELECT id FROM (SELECT id FROM people ORDER BY id DESC)", "SELECT id FROM people", True, True, True),
    # Reals: officially to the last bit, else at 12 digits.
    ("SELECT 0.1 + 0.2", "SELECT 0.3", False, False, True),
    ("SELECT 0.1234567890121", "SELECT 0.1234567890122", False, False, True),
    ("SELECT 0.123456789011", "SELECT 0.123456789012", False, False, False),
    ("SELECT 1234567890123", "SELECT 1234567890124", False, False, False),
    ("SELECT 9007199254740993", "SELECT 9007199254740992.0", False, False, False),
    ("SELECT 9e999", "SELECT -9e999", False, False, False),
    # Bytes that are no UTF-8, blobs beside texts.
    ("SELECT CAST(x'c328' AS TEXT)", "SELECT CAST(x'c328' AS TEXT) -- again", True, False, True),
    ("SELECT CAST(x'c328' AS TEXT)", "SELECT x'c328'", False, False, False),
    ("SELECT CAST(x'c328' AS TEXT)", "SELECT CAST(x'c329' AS TEXT)", False, False, False),
]


def test_results_that_nearly_equal(workers, database):
    pool = workers(timeout=30, rows=3)
    for gold, answer, *equal in NEARLY_EQUAL:
        expected, outcome = pool.run(database, gold), pool.run(database, answer)
        corrected = outcome.same_corrected(expected, ordered=orders(gold))
        assert [outcome.same(expected), outcome.same_python(expected), corrected] == equal, (gold, answer)


Y = "y" * 58
LONG = f"SELECT hex(zeroblob(90000)), '{Y}y', '{Y}', p.* FROM people p, people, people q"
OBSERVED = {
    "SELECT id, name FROM people WHERE id = 1": "The query returned 1 row of 2 columns. First rows:\n1, 'Ann'",
    "SELECT id FROM people": "The query returned 3 rows of 1 column. First rows:\n1\n2\n3",
    EMPTY: "The query ran and returned no rows.",
    "SELECT salary FROM people": "The query failed: no such column: salary",
    "-- nothing": "There is no query in the answer.",
    None: "There is no query in the answer.",
    LONG: "The query returned 27 rows of 7 columns. First rows:\n"
    + "\n".join([f"'{'0' * 59}..., '{Y}y..., '{Y}', 1, 'Ann', 30, b'\\xff\\x00'"] * 3),
}


def test_what_each_level_of_labels_shows(grading):
    gold = "SELECT max(age) + 59 FROM people"
    grade = grading(gold)
    assert {answer: grade(answer).observed for answer in OBSERVED} == OBSERVED
    for found in map(grade, OBSERVED):
        shown = {labels: reveal(found, labels) for labels in Labels}
        assert shown[Labels.NONE].message == found.observed
        assert "not correct" in shown[Labels.CORRECTNESS].message
        assert [shown[labels].gold for labels in Labels] == [
            gold if labels is Labels.GOLD else None for labels in Labels
        ]


SQL_OF = {
    " SELECT 1;\n": "SELECT 1;",
    "Here it is:\n```SQL\nSELECT 1;\n```\nDone.": "SELECT 1;",
    "```sqlite\nSELECT 1```": "SELECT 1",
    "```\nSELECT 1\n```": "SELECT 1",
    "```python\nprint()\n```\n```sql\nSELECT 1\n```": "SELECT 1",
    "```sql\nSELECT 1\n```\n```sql\nSELECT 2\n```": "SELECT 1",
    "```sql\nSELECT 1": "SELECT 1",
    "WITH a AS (SELECT 1)\nSELECT * FROM a": "WITH a AS (SELECT 1)\nSELECT * FROM a",
    "```": "",
    None: "",
}
BY_STREAM_BENCH = {
    "```sql\nSELECT 1\n```": "SELECT 1",
    "So: ```sql\nSELECT 1\n``` Done.": "SELECT 1",
    "```SQL\nSELECT 1\n``` done": "SELECT 1\n done",
    "```sql\nSELECT 1\n```\n```sql\nSELECT 2\n```": "SELECT 1\n```\n```sql\nSELECT 2",
    "select 1": "SELECT select 1",
    "name FROM people": "SELECT name FROM people",
}
ORDERS = {
    "select a from t order\n by a limit 1": True,
    "SELECT a FROM (SELECT a FROM t ORDER BY a)": False,
    "SELECT a FROM (SELECT 1) ORDER BY (a)": True,
    "SELECT rank() OVER (ORDER BY a) FROM t": False,
    "SELECT 'ORDER BY a' FROM t": False,
    'SELECT "order by" FROM t': False,
    "SELECT a FROM t -- ORDER BY a": False,
    "SELECT a FROM t /* ORDER BY a */": False,
    "SELECT [ORDER BY] FROM t ORDER -- x\n BY 1": True,
    "SELECT `order` FROM t": False,
    "(": False,
}


@pytest.mark.parametrize(
    ("read", "table"), [(sql_of, SQL_OF), (sql_by_stream_bench, BY_STREAM_BENCH), (orders, ORDERS)]
)
def test_what_is_read_of_a_text(read, table):
    assert {text: read(text) for text in table} == table


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
    assert all(grade.group for grade in (*wrong, *right)), "questions about one database depend on each other"
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


@pytest.mark.parametrize(
    ("metric", "corrected", "said"),
    [
        ("execution", 1.0, "its query returns no row: execution never gives a point for that"),
        (
            "streambench_ex",
            1.0,
            "its query returns no row, or does not begin with SELECT: streambench_ex never gives a point for that",
        ),
        ("bird_ex", 1.0, None),
        ("execution", 0.0, None),
    ],
)
def test_why_a_gold_query_gets_no_point(metric, corrected, said, make):
    grade = Grade(score=0.0, correct=False, observed="", gold="", detail={"execution_corrected": corrected})
    assert make(metric=metric).expected_loss(grade) == said


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


def test_workers_run_from_the_start_to_the_end_and_again(make):
    task = make()
    assert (task.confinement, isinstance(task, Judged), isinstance(task, Lifecycle)) == (None, True, True)
    said: list[str] = []
    task.start(said.append)
    assert said[0].startswith("bird_sql: up to 30 s a query; confined by: ")
    assert task.confinement is not None
    task.close()
    task.close()
    with task.open(task.samples("test")[0]) as session:
        assert session.grade(f"{session.grade(None).gold} -- again").correct
