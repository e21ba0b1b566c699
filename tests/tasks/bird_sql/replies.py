"""Pairs of a gold query and a reply of the shapes that real models write, drawn by a seed, for ``conftest.SCRIPT``."""

from __future__ import annotations

import random
from collections.abc import Iterator

GOLDS = (
    "SELECT name FROM people",
    "SELECT name FROM people ORDER BY age DESC, name",
    "SELECT age FROM people",
    "SELECT DISTINCT age FROM people",
    "SELECT name, age FROM people WHERE age > 30",
    "SELECT count(*) FROM people",
    "SELECT name FROM people WHERE age > 99",  # no row
    "SELECT avg(age) FROM people WHERE age > 99",  # one row of NULL
    "SELECT NULL",
    "SELECT note FROM people WHERE id = 1",  # bytes
    "SELECT note FROM people WHERE id = 2",  # text that is not UTF-8
    "SELECT note FROM people",
    'SELECT x FROM "odd ""name"',  # reals, one infinite
    'SELECT sum(x) FROM "odd ""name" WHERE x < 1',
    "SELECT 2",
    "SELECT CAST(age AS REAL) FROM people",
    "SELECT CAST(age AS TEXT) FROM people",
    "SELECT max(age) / 3.0 FROM people",
    "SELECT 9007199254740993",
    "SELECT 'Ann'",
    "SELECT p.name FROM people p JOIN people q ON p.age = q.age",
    "SELECT salary FROM people",  # fails
)
_WORSE = (
    "SELECT", "", ";", "1", "Ann", "name FROM people", "I do not know.", "SELECT name FRM people",
    "SELECT 1; SELECT 2", "SELECT name FROM people;;", "SELECT name FROM people; -- done", "VALUES (2)",
    "SELECT 2.0", "SELECT '2'", "SELECT 0.1 + 0.2", "SELECT -0.0", "SELECT 0", "SELECT 9007199254740992.0",
    "SELECT 9e999", "SELECT x'ff00'", "SELECT CAST(x'c328' AS TEXT)", "SELECT 'Ann' UNION SELECT 'Bob'", "(SELECT 2)",
    "SELECT name FROM people WHERE age < 0", "SELECT name FROM nobody", "SELECT 'a\x00b'", "SELECT '\ud800'",
)  # fmt: skip
_QUERIES = (
    *["{}"] * 25, "{};", "{};", " {}\n", "{} -- the answer", "/* by age */ {}", "-- by age\n{}", "{} LIMIT 100",
    "{} LIMIT 1", "WITH t AS ({}) SELECT * FROM t", "with t as ({}) select * from t", "SELECT * FROM ({})",
    "select * from ({})", "SELECT * FROM ({}) ORDER BY 1 DESC", "SELECT DISTINCT * FROM ({})", "{} UNION ALL {}",
    "EXPLAIN {}", "{}; {}",
)  # fmt: skip
_FORMS = (
    *["{}"] * 8, *["```sql\n{}\n```"] * 10, "```sql\n{}```", "```SQL\n{}\n```", "```sqlite\n{}\n```",
    "```\n{}\n```", "```sql {}```", "```sql\r\n{}\r\n```", "Here is the query:\n```sql\n{}\n```", "SQL: {}", "`{}`",
    "```sql\n{}\n```\nIt lists what is asked for.", "Rationale: by age.\nAnswer: ```sql\n{}\n```", "\n\n{}\n\n",
    "```sql\n{}\n```\n\n```sql\nSELECT 1\n```", "```sql\n{}", "{}\n```", "```\n```\n{}", '"{}"', "sql\n{}",
    "```SQL\n{}\n``` done", "```sql\nSQL\n{}```", "{}\n\nThis returns ```one``` column.", "SELECT {}",
)  # fmt: skip


def draw_replies(count: int, *, seed: int) -> Iterator[tuple[str, str]]:
    """Yield so many pairs of a gold query and a reply; about half hold the gold query in some form."""
    draw = random.Random(seed)
    for _ in range(count):
        gold = draw.choice(GOLDS)
        query = draw.choices((gold, draw.choice(GOLDS), draw.choice(_WORSE)), (5, 2, 3))[0]
        query = draw.choice(_QUERIES).replace("{}", query)
        query = draw.choices((query, query.lower(), query.replace("SELECT", "Select")), (8, 1, 1))[0]
        yield gold, draw.choice(_FORMS).replace("{}", query)
