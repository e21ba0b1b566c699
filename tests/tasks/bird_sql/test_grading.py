"""What counts as right, what the environment says, and what the metrics sum up."""

from __future__ import annotations

import hashlib
import json

import pytest

from ace_bench.core.errors import RolloutFault
from ace_bench.core.task import Confining, Judged, Lifecycle, Task
from ace_bench.core.types import Labels, reveal
from ace_bench.tasks.bird_sql.pool import Limits, Workers
from ace_bench.tasks.bird_sql.questions import format_question, orders, parts_of, sql_of
from ace_bench.tasks.bird_sql.task import METRICS
from tests.tasks.bird_sql.conftest import CLOCK, SCRIPT, build

EMPTY = "SELECT name FROM people WHERE age > 99"


@pytest.mark.parametrize(
    ("gold", "answer", "official", "corrected"),
    [
        ("SELECT name FROM people", "SELECT name FROM people ORDER BY age DESC", True, True),
        ("SELECT age FROM people", "SELECT DISTINCT age FROM people", True, True),
        ("SELECT name, age FROM people", "SELECT age, name FROM people", False, False),
        ("SELECT name FROM people", "SELECT name FROM people WHERE id < 3", False, False),
        ("SELECT 2", "SELECT 2.0", True, True),
        ("SELECT 2", "SELECT '2'", False, False),
        ("SELECT NULL", "SELECT NULL", True, True),
        ("SELECT NULL", "SELECT 0", False, False),
        ("SELECT 'a', 'b'", "SELECT 'a,b'", False, False),
        # Empty results: officially never right.
        (EMPTY, EMPTY, False, True),
        (EMPTY, "SELECT id FROM people WHERE age < 0", False, True),
        (EMPTY, "SELECT name FROM people", False, False),
        ("SELECT name FROM people", EMPTY, False, False),
        # Order: only where the gold query fixes it.
        ("SELECT id FROM people ORDER BY id DESC", "SELECT id FROM people ORDER BY id", True, False),
        ("SELECT id FROM people ORDER BY id DESC", "SELECT 4 - id FROM people", True, True),
        ("SELECT age FROM people ORDER BY age", "SELECT DISTINCT age FROM people ORDER BY age", True, True),
        ("SELECT id FROM (SELECT id FROM people ORDER BY id DESC)", "SELECT id FROM people", True, True),
        # Reals: officially to the last bit.
        ("SELECT 0.1 + 0.2", "SELECT 0.3", False, True),
        ("SELECT 0.3", "SELECT 0.30001", False, False),
        ("SELECT 1234567890123", "SELECT 1234567890124", False, False),
        ("SELECT 9007199254740993", "SELECT 9007199254740992.0", False, False),
        ("SELECT 9223372036854775807", "SELECT 9223372036854775807", True, True),
        ('SELECT max(x) FROM "odd ""name"', "SELECT 9e999", True, True),
        ("SELECT 9e999", "SELECT -9e999", False, False),
        # Bytes that are no UTF-8, blobs beside texts.
        ("SELECT name FROM people WHERE id = 2", "SELECT name FROM people WHERE name = 'Bob'", True, True),
        ("SELECT note FROM people WHERE id = 2", "SELECT note FROM people WHERE id = 2 AND 1", True, True),
        ("SELECT CAST(x'c328' AS TEXT)", "SELECT x'c328'", False, False),
        ("SELECT CAST(x'c328' AS TEXT)", "SELECT CAST(x'c329' AS TEXT)", False, False),
        ("SELECT note FROM people WHERE id = 1", "SELECT x'ff00'", True, True),
        # No query, or one that fails.
        ("SELECT 1", None, False, False),
        ("SELECT 1", " \n", False, False),
        ("SELECT 1", "SELECT 1; SELECT 1", False, False),
        ("SELECT 1", "I think it is 1", False, False),
    ],
)
def test_table_of_results(gold, answer, official, corrected, run):
    expected, outcome = run(gold), run(sql_of(answer))
    assert outcome.same(expected) is official
    assert outcome.same_corrected(expected, ordered=orders(gold)) is corrected


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return what runs a query on the database of these tests, in one process for all of them."""
    limits = Limits(timeout=30, rows=1_000, cell_bytes=1_000_000, depth=100, memory_mb=512)
    database = build(tmp_path_factory.mktemp("people") / "db" / "people.sqlite", SCRIPT)
    pool = Workers(count=1, limits=limits, clock=CLOCK, databases=[database])
    yield lambda sql: pool.run(database, sql)
    pool.close()


def questions(*golds, fill=3):
    """A test needs something in train and val, too: other questions with other queries."""
    others = [{"question": f"Filler {n}?", "SQL": f"SELECT {n} + 700"} for n in range(fill)]
    return [{"question": f"Question {n}?", "SQL": gold} for n, gold in enumerate(golds)] + others


def graded(task, answer, gold):
    for split in task.splits:
        for sample in task.samples(split):
            with task.open(sample) as session:
                if session.grade(None).gold == gold:
                    return session.grade(answer)
    raise AssertionError("no such question")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("SELECT id, name FROM people WHERE id = 1", "returned 1 row of 2 columns. First rows:\n1, 'Ann'"),
        ("SELECT id FROM people", "returned 3 rows of 1 column."),
        (EMPTY, "ran and returned no rows"),
        ("SELECT salary FROM people", "failed: no such column: salary"),
        (None, "no query in the answer"),
    ],
)
def test_what_each_level_of_labels_shows(answer, said, make, mini_dev):
    gold = "SELECT max(age) + 59 FROM people"
    task = make(data_dir=str(mini_dev(questions(gold))), mini_dev={"train": 1, "val": 1, "seed": 0})
    grade = graded(task, answer, gold)
    assert said in grade.observed
    assert reveal(grade, Labels.NONE).message == grade.observed
    assert "not correct" in reveal(grade, Labels.CORRECTNESS).message
    assert reveal(grade, Labels.CORRECTNESS).gold is None
    assert reveal(grade, Labels.GOLD).gold == gold
    assert gold not in grade.observed
    assert "99" not in grade.observed, "nothing of the gold result"


def test_long_results_are_shown_by_their_beginning(make, mini_dev):
    task = make(data_dir=str(mini_dev(questions("SELECT 1"))), mini_dev={"train": 1, "val": 1, "seed": 0})
    grade = graded(task, "SELECT hex(zeroblob(90000)), p.* FROM people p, people, people q", "SELECT 1")
    assert "27 rows" in grade.observed
    assert len(grade.observed) < 500
    json.dumps(grade.observed)


@pytest.mark.parametrize(
    ("answer", "sql"),
    [
        ("SELECT 1", "SELECT 1"),
        (" SELECT 1;\n", "SELECT 1;"),
        ("```sql\nSELECT 1\n```", "SELECT 1"),
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
    ("sql", "fixed"),
    [
        ("SELECT a FROM t ORDER BY a", True),
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
    assert format_question(schema, "", "How?") == f"Database schema:\n{schema}\n\nUser question: How?"
    with_evidence = format_question(schema, "b is d", "How?")
    assert with_evidence == f"Database schema:\n{schema}\n\nExternal knowledge: b is d\n\nUser question: How?"
    assert parts_of(format_question(schema, "", "How?")) == (schema, "How?")
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
    assert set(scores) == {f"{metric}{level}" for metric in METRICS[:-1] for level in levels}
    mixed = [r if "simple" in r.detail else w for r, w in zip(right, wrong, strict=True)]
    simple = sum("simple" in grade.detail for grade in right)
    assert task.score(mixed)["execution"] == pytest.approx(100 * simple / len(right))
    assert task.score(mixed)["execution_simple"] == 100
    assert task.score(mixed)["execution_challenging"] == 0
    assert task.score([]) == {}
    assert "judge" not in scores, "a metric nobody was asked about is not 0"


def test_faults_and_forfeits_count_in_full(make):
    task = make()
    sample = task.samples("test")[0]
    assert task.score([task.failing_grade(sample)])["execution"] == 0
    with task.open(sample) as session, pytest.raises(RolloutFault):
        session.step("SELECT 1")


def test_the_headline_decides_what_is_correct(make, mini_dev):
    folder, draw = str(mini_dev(questions(EMPTY))), {"train": 1, "val": 1, "seed": 0}
    right = {"execution": False, "streambench_ex": False, "bird_ex": True, "execution_corrected": True, "judge": True}
    for metric, correct in right.items():
        task = make(data_dir=folder, mini_dev=draw, metric=metric)
        assert graded(task, EMPTY, EMPTY).correct is correct
        assert task.headline == metric
        assert metric in task.score([graded(task, EMPTY, EMPTY)])


def test_a_gold_query_that_fails_is_said_and_never_matched(make, mini_dev, caplog):
    gold = "SELECT salary FROM people"
    task = make(data_dir=str(mini_dev(questions(gold))), mini_dev={"train": 1, "val": 1, "seed": 0})
    grade = graded(task, gold, gold)
    assert grade.detail["execution"] == grade.detail["execution_corrected"] == 0
    assert "no such column: salary" in caplog.text
    assert caplog.text.count("no such column") == 1


def test_gold_results_are_kept_by_the_databases_checksum(make, mini_dev, cache):
    folder, draw = mini_dev(questions("SELECT count(*) FROM people")), {"train": 1, "val": 1, "seed": 0}
    gold = "SELECT count(*) FROM people"
    assert graded(make(data_dir=str(folder), mini_dev=draw), "SELECT 3", gold).correct
    entries = list((cache / "bird_sql" / "golds").rglob("*.json"))
    assert len(entries) == 1
    content = entries[0].read_bytes()
    for damage in (b"", b"{}", b"\xff", content[: len(content) // 2], content.replace(b'"rows"', b'"rose"')):
        entries[0].write_bytes(damage)
        assert graded(make(data_dir=str(folder), mini_dev=draw), "SELECT 3", gold).correct
        assert entries[0].read_bytes() == content, "a broken entry is made anew"
    database = folder / "dev_databases" / "people" / "people.sqlite"
    database.write_bytes(database.read_bytes() + b"\0" * 4096)
    assert graded(make(data_dir=str(folder), mini_dev=draw), "SELECT 3", gold).correct
    assert len(list((cache / "bird_sql" / "golds").rglob("*.json"))) == 2


def test_kept_results_are_used(make, mini_dev, cache):
    folder, draw = mini_dev(questions("SELECT 5")), {"train": 1, "val": 1, "seed": 0}
    assert graded(make(data_dir=str(folder), mini_dev=draw), "SELECT 5 ", "SELECT 5").correct
    (entry,) = (cache / "bird_sql" / "golds").rglob("*.json")
    other = json.loads(entry.read_bytes()) | {"exact": hashlib.sha256().hexdigest()}
    entry.write_text(json.dumps(other))
    assert not graded(make(data_dir=str(folder), mini_dev=draw), "SELECT 5 -- x", "SELECT 5").correct


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
    assert graded_again(task)


def graded_again(task):
    sample = task.samples("test")[0]
    with task.open(sample) as session:
        return session.grade(f"{session.grade(None).gold} -- again").correct
