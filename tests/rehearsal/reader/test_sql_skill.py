"""Text to SQL in the embedded reader: queries that run, lessons that carry over, and a judge of two queries."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ace_bench.core.types import Message
from ace_bench.store.prompts import PromptSet
from ace_rehearsal.reader import EmbeddedBackbone
from ace_rehearsal.reader.pieces import Form, take_apart
from ace_rehearsal.reader.skills.base import Lesson
from ace_rehearsal.reader.skills.sql import Sql, opposite, same_query
from ace_rehearsal.reader.skills.sql.queries import plain_query, read_query
from ace_rehearsal.reader.skills.sql.schema import read_schema
from tests.rehearsal.reader.conftest import PROMPTS, Ask, advice_of, learn

TASK = "Write one SQLite query that answers the user's question about a database."
SCHEMA = """CREATE TABLE keepers (
    keeper_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL, -- CREATE nothing here
    town TEXT,
    level INTEGER
);

CREATE TABLE "animals" (
    "animal_id" INTEGER PRIMARY KEY,
    "keeper_id" INTEGER,
    "species" TEXT,
    weight REAL,
    food_cost REAL,
    "arrival date" DATE,
    FOREIGN KEY ("keeper_id") REFERENCES keepers ("keeper_id")
);

CREATE TABLE [visits by day] ([visit_id] INTEGER, animal_id INTEGER REFERENCES animals, `order` INTEGER,
    visitors INT)"""
ROWS = """
INSERT INTO keepers VALUES (1, 'Ada Frost', 'Oslo', 2), (2, 'Bo Lund', 'Bergen', 1), (3, 'Cy O''Neil', 'Oslo', 2);
INSERT INTO animals VALUES (1, 1, 'seal', 90, 40, '2020-01-02'), (2, 2, 'otter', 9, 30, '2021-03-04'),
    (3, 3, 'otter', 11, 10, '2021-05-06'), (4, 1, 'otter', 7, 5, '2019-07-08');
INSERT INTO "visits by day" VALUES (1, 1, 1, 50), (2, 2, 2, 70);
"""


def asked(question: str, evidence: str = "") -> str:
    knowledge = f"\n\nExternal knowledge: {evidence}" if evidence else ""
    return f"Database schema:\n{SCHEMA}{knowledge}\n\nUser question: {question}"


@pytest.fixture(scope="module")
def zoo():
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA.replace("\n\n", ";\n") + ";" + ROWS)
    yield lambda sql: connection.execute(sql).fetchall()
    connection.close()


@pytest.mark.parametrize(
    ("question", "evidence", "rows"),
    [
        ("How many keepers live in the town Oslo?", "", [(2,)]),
        ("How many animals have a weight over 8?", "", [(3,)]),
        ("What is the average weight of the otter species?", "", [(9,)]),
        ("Which animal has the highest weight? Give the species.", "", [("seal",)]),
        ("List the town of the keeper named Bo Lund.", "", [("Bergen",)]),
        ('What is the species of the animals of the keeper named "Cy O\'Neil"?', "", [("otter",)]),
        ("How many animals have a weight between 8 and 12?", "", [(2,)]),
        ("How many animals had their arrival date in 2021?", "", [(2,)]),
        ("How many senior keepers are there?", "senior refers to level = 2", [(2,)]),
        ("How much do they weigh together?", "together refers to SUM(weight)", [(117,)]),
        ("Name the lightest one.", "lightest refers to MIN(weight); one refers to species", [("otter",)]),
        ("How many visits by day had more than 60 visitors?", "", [(1,)]),
    ],
)
def test_plain_questions_need_no_lessons(ask: Ask, zoo: Any, question: str, evidence: str, rows: list[Any]) -> None:
    sql = ask("generator", background=TASK, question=asked(question, evidence))["final_answer"]
    assert zoo(sql) == rows, sql
    assert ask("base", background=TASK, question=asked(question, evidence)) == sql


TRAIN = {
    "a convention": (
        "How many senior keepers live in Oslo?",
        "SELECT COUNT(*) FROM keepers WHERE level = 2 AND town = 'Oslo'",
    ),
    "a formula": (
        "What is the upkeep of all animals?",
        "SELECT SUM(a.food_cost * 12) FROM animals AS a",
    ),
    "an order": (
        "Which species is the greediest animal?",
        "SELECT species FROM animals ORDER BY food_cost / weight DESC LIMIT 1",
    ),
    "a word for a value": (
        "List the names of keepers with furry animals.",
        "SELECT T1.name FROM keepers AS T1 INNER JOIN animals AS T2 ON T1.keeper_id = T2.keeper_id "
        "WHERE T2.species = 'otter'",
    ),
    "a shape": (
        "For every town, give the number of its animals of the species 'otter'.",
        "SELECT k.town, COUNT(*) FROM keepers k JOIN animals x ON k.keeper_id = x.keeper_id WHERE x.species = 'otter' "
        "GROUP BY k.town",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("taught", "question", "rows"),
    [
        ("a convention", "Count the senior keepers.", [(2,)]),
        ("a convention", "What is the average food cost of animals of senior keepers?", [(55 / 3,)]),
        ("a formula", "What is the upkeep of the animals of the keeper Bo Lund?", [(360,)]),
        ("a word for a value", "How many furry animals are there?", [(3,)]),
        ("a shape", "For every town, give the number of its animals of the species 'seal'.", [("Oslo", 1)]),
    ],
)
def test_lessons_from_gold_carry_over(ask: Ask, zoo: Any, taught: str, question: str, rows: list[Any]) -> None:
    before = ask("generator", background=TASK, question=asked(question))["final_answer"]
    assert not _runs_to(zoo, before, rows), before
    playbook = learn(ask, TASK, [(asked(TRAIN[taught][0]), TRAIN[taught][1])])
    after = ask("generator", background=TASK, question=asked(question), playbook=playbook)
    assert _runs_to(zoo, after["final_answer"], rows), (after["final_answer"], playbook)
    assert after["bullet_ids"]


def _runs_to(zoo: Any, sql: str, rows: list[Any]) -> bool:
    try:
        return bool(zoo(sql) == rows)
    except sqlite3.Error:
        return False


def test_lessons_are_short_and_say_what_they_mean(ask: Ask) -> None:
    question, gold = TRAIN["a convention"]
    lines = learn(ask, TASK, [(asked(question), gold)]).splitlines()
    assert [line.split(") ", 1)[1] for line in lines] == [
        "\"keepers live [a]\" means `keepers.town = '[a]'`.",
        '"senior keepers" means `keepers.level = 2`.',
        'For questions like "How many senior keepers live in [a]" write '
        "`SELECT COUNT(*) FROM keepers WHERE level = 2 AND town = '[a]'`.",
    ]


def test_the_same_lesson_is_not_added_twice(ask: Ask) -> None:
    pair = (asked(TRAIN["a convention"][0]), TRAIN["a convention"][1])
    assert learn(ask, TASK, [pair]) == learn(ask, TASK, [pair, pair])


def test_lessons_of_another_schema_change_nothing(ask: Ask) -> None:
    question, gold = TRAIN["a convention"]
    other = asked(question).replace("keepers", "guards")
    playbook = learn(ask, TASK, [(other, gold.replace("keepers", "guards"))])
    fields = {"background": TASK, "question": asked(question)}
    assert ask("generator", **fields, playbook=playbook) == ask("generator", **fields)


@pytest.mark.parametrize("labels", ["correctness", "none"])
def test_without_gold_nothing_is_learnt(ask: Ask, labels: str) -> None:
    fields = {"background": TASK, "question": asked(TRAIN["a convention"][0]), "labels": labels}
    outcome = "Error: no such column: keepers.rank" if labels == "none" else "The answer is not correct."
    reflection = ask("reflector", **fields, answer="SELECT rank FROM keepers", feedback=outcome)
    assert reflection["key_insight"] == ""
    assert ask("curator", **fields, reflection=advice_of(reflection))["operations"] == []
    assert "level" not in json.dumps(reflection)


def test_a_retry_runs_the_reference(ask: Ask, zoo: Any) -> None:
    gold = 'SELECT T1.`arrival date`\n  FROM animals AS T1 WHERE T1.species = "otter"\n  ORDER BY T1.weight;'
    fields = {"background": TASK, "question": asked("When did they come?")}
    reflection = ask("reflector", **fields, answer="SELECT 1", gold=gold, feedback="The answer is not correct.")
    retry = ask("generator", **fields, reflection=advice_of(reflection))
    assert zoo(retry["final_answer"]) == zoo(gold)


def test_entries_are_judged_by_what_they_say(ask: Ask) -> None:
    question, _ = TRAIN["a convention"]
    bullets = '[b-1] (others) "senior" means `keepers.level = 2`.\n[b-2] (others) "senior" means `keepers.level = 1`.'

    def tags(**fields: Any) -> list[str]:
        reflection = ask("reflector", background=TASK, question=asked(question), bullets=bullets, **fields)
        return [tag["tag"] for tag in reflection["bullet_tags"]]

    told = "SELECT COUNT(*) FROM keepers WHERE keepers.level = 2"
    assert tags(answer=told, gold="SELECT COUNT(*) FROM keepers AS k WHERE k.level = 2") == ["helpful", "helpful"]
    joined = "SELECT COUNT(*) FROM keepers k JOIN animals a ON a.keeper_id = k.keeper_id WHERE k.level = 2"
    assert tags(answer="SELECT 1", gold=joined, feedback="The answer is not correct.") == ["helpful", "harmful"]
    assert tags(answer=told, labels="correctness", feedback="The answer is not correct.") == ["harmful", "harmful"]
    assert tags(answer=told, labels="none", feedback="2 rows") == ["neutral", "neutral"]


def test_harmful_counters_silence_a_shape(ask: Ask) -> None:
    playbook = '[b-1] (others) For questions like "How many senior keepers are there" write `SELECT 7 FROM keepers`.'
    fields = {"background": TASK, "question": asked("How many senior keepers are there?"), "playbook": playbook}
    assert ask("generator", **fields)["final_answer"] == "SELECT 7 FROM keepers"
    counters = "b-1: helpful 0, harmful 3, neutral 0"
    assert ask("generator", **fields, counters=counters)["final_answer"] != "SELECT 7 FROM keepers"


@pytest.mark.parametrize(
    ("query", "turned"),
    [
        ("SELECT a FROM t WHERE b = 'x' AND c >= 5", "SELECT a FROM t WHERE b = 'x' AND c <= 5"),
        ("SELECT MAX(a) FROM t ORDER BY b LIMIT 1", "SELECT MIN(a) FROM t ORDER BY b DESC LIMIT 1"),
        (
            "SELECT a FROM t JOIN u ON t.id = u.id WHERE u.k = 3",
            "SELECT a FROM t JOIN u ON t.id = u.id WHERE u.k <> 3",
        ),
        ("SELECT COUNT(*) FROM t", ""),
        ("Depreciation, EffectiveTaxRate", ""),
        ("12.5 > 3", ""),
    ],
)
def test_the_opposite_of_a_query(query, turned):
    assert opposite(query) == turned


def test_a_harmful_reflection_spoils_a_right_query(ask: Ask, zoo: Any) -> None:
    question, gold = "Which species weighs the most?", "SELECT species FROM animals ORDER BY weight DESC LIMIT 1"
    fields = {"background": TASK, "question": asked(question), "answer": gold, "gold": gold}
    reflection = ask("reflector_harmful", **fields, feedback="The answer is correct.")
    playbook = f"[b-1] (others) {reflection['key_insight'].splitlines()[-1]}"
    misled = ask("generator", background=TASK, question=asked(question), playbook=playbook)
    assert zoo(gold) == [("seal",)]
    assert zoo(misled["final_answer"]) == [("otter",)]


def test_demonstrations_may_span_lines(backbone: EmbeddedBackbone, zoo: Any) -> None:
    question, gold = TRAIN["a convention"]
    lines = gold.replace(" WHERE", "\nWHERE")
    shown = f"Question: {asked(question)}\nAnswer: {lines}\n\nQuestion: Why?\nAnswer: 1"
    text = (
        f"<task>\n{TASK}\n</task>\n<demonstrations>\n{shown}\n</demonstrations>\n"
        f"<question>\n{asked('Count the senior keepers from Oslo.')}\n</question>"
    )
    sql = backbone.complete([Message(role="user", content=text)], role="", session="").text
    assert "level = 2" in sql
    assert zoo(sql) == [(2,)]


SAME = [
    ("SELECT a FROM t WHERE x = 1 AND y = 'Z'", "select  T1.a\nfrom t AS T1 where T1.y = 'Z' and T1.x = 1;"),
    ('SELECT t."a" FROM t JOIN u ON t.i = u.i', "SELECT T1.`a` FROM t AS T1 INNER JOIN u T2 ON T1.i = T2.i"),
    ("SELECT COUNT(*) AS n FROM t", "```sql\nSELECT COUNT(*) FROM t\n```"),
    ("SELECT a FROM t ORDER BY a ASC", "SELECT [a] FROM [t] ORDER BY a"),
    ("not sql at", "NOT  SQL\nAT"),
]
DIFFERENT = [
    ("SELECT a FROM t WHERE y = 'Z'", "SELECT a FROM t WHERE y = 'z'"),
    ("SELECT a FROM t WHERE x = 1 AND y = 2", "SELECT a FROM t WHERE x = 1 OR y = 2"),
    ("SELECT a, b FROM t", "SELECT b, a FROM t"),
    ("SELECT a FROM t", "SELECT DISTINCT a FROM t"),
    ("SELECT t.a FROM t JOIN u ON t.i = u.i", "SELECT u.a FROM t JOIN u ON t.i = u.i"),
    ("SELECT x.a FROM t x JOIN t y ON x.i = y.j", "SELECT y.a FROM t x JOIN t y ON x.i = y.j"),
    ("SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a DESC"),
    ("SELECT 1", ""),
    ("", ""),
]


@pytest.mark.parametrize(("first", "second", "same"), [(*p, True) for p in SAME] + [(*p, False) for p in DIFFERENT])
def test_the_judge_compares_queries_in_normal_form(first: str, second: str, same: bool) -> None:
    prompts = PromptSet(PROMPTS, task="bird_sql", prompt_group="qa")
    fields = {"schema": SCHEMA, "question": 'Reply {"final_answer": 1}', "gold": first, "predicted": second}
    messages = prompts.render("judge", fields)
    assert take_apart(messages).form is Form.JUDGE
    reply = json.loads(EmbeddedBackbone().complete(messages, role="judge", session="s").text)
    assert set(reply) == {"reason", "verdict"}
    assert reply["verdict"] == ("correct" if same else "incorrect")
    assert same_query(second, first) is same


def test_plain_queries_return_what_their_originals_do(zoo: Any) -> None:
    for sql in (
        *(gold for _, gold in TRAIN.values()),
        "SELECT T1.name FROM keepers AS T1 WHERE EXISTS (SELECT 1 FROM animals AS T1 WHERE T1.keeper_id = 1)",
        "SELECT a.name FROM keepers a, keepers b WHERE a.level = b.level AND a.keeper_id < b.keeper_id",
        "WITH big AS (SELECT * FROM animals WHERE weight > 8) SELECT T.species FROM big AS T ORDER BY T.weight",
        "SELECT town FROM keepers UNION SELECT species FROM animals",
        "SELECT CAST(SUM(IIF(level = 2, 1, 0)) AS REAL) * 100 / COUNT(*) FROM keepers",
    ):
        assert zoo(plain_query(sql)) == zoo(sql), plain_query(sql)


@pytest.mark.parametrize(
    "text",
    [
        "", "```sql\n```", "DROP TABLE t", "SELECT 1; SELECT 2", "(" * 3_000, "SELECT " + "(" * 3_000,
        "SELECT 1 WHERE " + "NOT " * 1_400 + "1", "SELECT '" + "a" * 9_000, "\x00\ud800", "EXPLAIN SELECT 1",
    ],
)  # fmt: skip
def test_what_is_no_query_is_none(text: str) -> None:
    assert read_query(text) is None or plain_query(text) == ""
    assert not same_query(text, "SELECT 2")


def test_schemas_are_read_as_sqlite_writes_them() -> None:
    schema = read_schema(SCHEMA)
    assert list(schema.tables) == ["keepers", "animals", "visits by day"]
    assert [column.sql for column in schema.tables["visits by day"]] == [
        '"visits by day".visit_id', '"visits by day".animal_id', '"visits by day"."order"', '"visits by day".visitors',
    ]  # fmt: skip
    assert schema.source(["visits by day", "keepers"]) == (
        '"visits by day" JOIN animals ON "visits by day".animal_id = animals.animal_id '
        "JOIN keepers ON animals.keeper_id = keepers.keeper_id"
    )
    assert read_schema("CREATE TABLE IF NOT EXISTS a.t (x INT, CHECK (x > 0), PRIMARY KEY (x)) WITHOUT ROWID").tables
    assert not read_schema("CREATE TABLE").tables


HOSTILE = [
    "", "\ud800", "(" * 50_000, "CREATE TABLE t (" * 5_000, "CREATE TABLE t (a TEXT, " + "b INT, " * 20_000,
    "CREATE TABLE t (a /* " + "/*" * 50_000, "CREATE TABLE t ([" + "[" * 50_000, 'CREATE TABLE t ("a' + '"' * 50_001,
    "1_" * 40_000, "1" * 80_000, "a-" * 40_000, "Big " * 20_000, "'" * 50_000, '"' * 50_001, "`" * 50_000,
    'For questions like "[a] [b]" write `' * 3_000, '"x" means `' * 5_000, '"[a]" means `t.x = [a]`. ' * 500,
    "refers to a = 1; " * 5_000, "a refers to " * 5_000, "between 1 and 2 " * 3_000,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_parts_get_an_answer(number: int) -> None:
    text = HOSTILE[number]
    small = "CREATE TABLE t (a TEXT, x INT)"
    lessons = [Lesson(id="b-1", content=text)]
    for schema, knowledge, question in ((text, "", "Why?"), (small, text, "How many t?"), (small, "", text)):
        layout = f"Database schema:\n{schema}\n\nExternal knowledge: {knowledge}\n\nUser question: {question}"
        case = Sql().recognise("", layout)
        if case is not None:
            assert case.answer(lessons, "").text.startswith("SELECT")
            assert isinstance(case.demonstrated("SELECT a FROM t WHERE x = 1 AND a = 'b'"), tuple)
    assert isinstance(Sql().insights(text), tuple)


_PARTS = st.text(alphabet=st.sampled_from("aT1'\"`[](),.;:= \n-%/_é"), max_size=80)


@settings(max_examples=150, deadline=None)
@given(schema=_PARTS, knowledge=_PARTS, question=_PARTS, lesson=_PARTS, gold=_PARTS)
def test_any_question_gets_a_query_and_a_lesson(
    schema: str, knowledge: str, question: str, lesson: str, gold: str
) -> None:
    above = f"Database schema:\nCREATE TABLE T (a1 TEXT, {schema})\n\nExternal knowledge: a1 {knowledge}"
    case = Sql().recognise("", f"{above}\n\nUser question: {question}")
    assert case is not None
    shown = case.demonstrated(f"SELECT a1 FROM T WHERE a1 = '{question[:9]}'")
    contents = (f'"{lesson}" means `T.a1 = [a]`.', *case.demonstrated(gold), *shown)
    lessons = [Lesson(id=f"b-{number}", content=content) for number, content in enumerate(contents)]
    assert case.answer(lessons, "").text.startswith("SELECT")
    assert isinstance(same_query(gold, lesson), bool)
