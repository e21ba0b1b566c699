"""Queries that mean harm, are broken or run wild, and what is said of each: parts of the message, "|" between.

``{tmp}`` stands for a folder beside the database, ``{other}`` for a database in it that the query has no business with.
"" as the expectation means: refused or harmless, as long as it reaches nothing outside its box.
"""

from __future__ import annotations

from pathlib import Path

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
FOREVER = ENDLESS + "SELECT count(*) FROM n"
_THOUSAND = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000) "

_LATE = "longer than"
_BIG = "too big|out of memory|too large"


def to_be_said(said: str, *queries: str) -> dict[str, str]:
    return dict.fromkeys(queries, said)


REACHING_OUT: dict[str, str] = {}
for _block in Path(__file__).with_name("hostile.txt").read_text().split("\n\n")[1:]:
    _said, *_queries = _block.splitlines()
    REACHING_OUT |= to_be_said(_said, *_queries)

SEVERAL = {
    "SELECT 1; DROP TABLE people": "one statement",
    "SELECT 1; SELECT 2": "one statement",
    "SELECT 1; ATTACH '{tmp}/evil.sqlite' AS evil": "one statement",
    "SELECT 1 /* ; */ ; -- x\n DELETE FROM people": "one statement",
    "": "no query",
    " ;\n;": "no query|one statement",
    "-- DROP TABLE people": "no query",
    "/* open": "no query",
}

ENDS_LATE = to_be_said(
    _LATE,
    FOREVER,
    ENDLESS + "SELECT sum(x) FROM n",
    ENDLESS + "SELECT x FROM n WHERE x < 0",
    ENDLESS + "SELECT max(x) OVER () FROM n WHERE x % 2 = 3",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n",
    "SELECT * FROM people WHERE (SELECT count(*) FROM (" + ENDLESS + "SELECT 1 FROM n)) > 0",
    "SELECT EXISTS (" + ENDLESS + "SELECT 1 FROM n WHERE x < 0)",
    "SELECT count(*) FROM people " + " ".join(f", people p{number}" for number in range(18)),
    "SELECT count(*) FROM people a JOIN people b JOIN (" + ENDLESS + "SELECT x FROM n) ON a.id < 0",
    "VALUES ((" + FOREVER + "))",
)

HUGE = {
    ENDLESS + "SELECT x FROM n": "more than 1000 rows",
    **to_be_said(
        _BIG,
        "SELECT zeroblob(2000000000)",
        "SELECT hex(zeroblob(999999999))",
        "SELECT randomblob(1000000000)",
        "SELECT hex(randomblob(100000000))",
        "SELECT quote(zeroblob(100000000))",
        "SELECT replace(hex(zeroblob(400000)), '0', hex(zeroblob(400000)))",
        "SELECT replace(printf('%.900000c', 'a'), 'a', printf('%.900000c', 'b'))",
        "SELECT '" + "x" * 2_000_000 + "'",
        "SELECT " + " || ".join(["hex(zeroblob(400000))"] * 9),
    ),
    **to_be_said(
        f"{_BIG}|{_LATE}|not authorized",
        _THOUSAND + "SELECT group_concat(hex(zeroblob(100000))) FROM n",
        _THOUSAND + "SELECT group_concat(printf('%.100000c', 'x'), '') FROM n",
        _THOUSAND + "SELECT json_group_array(hex(zeroblob(100000))) FROM n",
        _THOUSAND + "SELECT json_group_object(x, hex(zeroblob(100000))) FROM n",
        _THOUSAND + "SELECT group_concat(hex(zeroblob(400000)), '') OVER (ORDER BY x) FROM n",
        ENDLESS + "SELECT group_concat(x) FROM n",
        ENDLESS + "SELECT json_group_array(x) FROM n",
        "WITH RECURSIVE n(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM n) SELECT length(x) FROM n",
        "WITH RECURSIVE n(x) AS (SELECT zeroblob(900000) UNION ALL SELECT x FROM n) SELECT x FROM n ORDER BY x",
        "WITH RECURSIVE n(x) AS (SELECT '[1]' UNION ALL SELECT json_array(x, x) FROM n) SELECT length(x) FROM n",
    ),
    **to_be_said(
        "",  # late, too big, or with a short result
        "EXPLAIN QUERY PLAN SELECT 1 WHERE (" + FOREVER + ")",
        "SELECT printf('%.2000000000c', 'x')",
        "SELECT printf('%2000000000s', 'x')",
        "SELECT format('%*d', 2147483647, 1)",
        "SELECT printf('%.1000000000f', 1.0)",
        "SELECT printf('%,.900000f', 9e307)",
        "SELECT strftime('" + "%Y" * 40_000 + "', 'now')",
        "SELECT date('now'" + ", '+1 day'" * 100 + ")",
        "SELECT json_extract('" + "[" * 30_000 + "]" * 30_000 + "', '$[0]')",
        "SELECT json('" + '{"a":' * 10_000 + "1" + "}" * 10_000 + "')",
        "SELECT json_set('{}', '$" + ".a" * 20_000 + "', 1)",
        "SELECT json_patch('{}', '{\"a\": 1}') FROM people, people, people",
        "SELECT json_array_length('[" + "1," * 40_000 + "1]')",
        "SELECT hex(zeroblob(400000)) LIKE '" + "%0" * 400 + "1'",
        "SELECT hex(zeroblob(400000)) GLOB '" + "*0" * 400 + "1'",
        "SELECT 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' LIKE '" + "%a" * 20 + "b'",
        "SELECT soundex(hex(zeroblob(400000)))",
        "SELECT trim(hex(zeroblob(400000)), hex(zeroblob(100000)))",
        "SELECT char(" + ", ".join(["1114111"] * 100) + ")",
        "SELECT count(DISTINCT randomblob(1000)) FROM people a, people b, people c, people d, people e, people f",
        _THOUSAND + "SELECT count(*) FROM (SELECT DISTINCT hex(zeroblob(100000 + x)) FROM n)",
        _THOUSAND + "SELECT x FROM n ORDER BY hex(zeroblob(300000 + x))",
        _THOUSAND + "SELECT a.x FROM n a, n b ORDER BY randomblob(100000)",
        _THOUSAND + "SELECT hex(zeroblob(300000 + x)) FROM n",
    ),
}

DEEP = {
    "SELECT " + "(" * 10_000 + "1" + ")" * 10_000: "overflow|too large|depth",
    "SELECT " + "+".join(["1"] * 10_000): "depth",
    "SELECT " + "-" * 20_000 + "1": "no query|depth|overflow|incomplete|column",
    "SELECT " + "NOT " * 20_000 + "1": "depth|overflow",
    "SELECT " + "CASE WHEN 1 THEN " * 2_000 + "1" + " END" * 2_000: "depth|overflow",
    "SELECT * FROM " + "(SELECT * FROM " * 2_000 + "people" + ")" * 2_000: "depth|overflow|too many|too large",
    "SELECT " + ", ".join(["1"] * 10_000): "too many columns",
    "SELECT 1" + " UNION ALL SELECT 1" * 10_000: "too many terms|too large",
    "SELECT 1 IN (" + ", ".join(map(str, range(15_000))) + ")": "",
    "SELECT * FROM people "
    + " ".join(f"JOIN people p{number} USING (id)" for number in range(100)): "at most 64 tables|too large",
    "SELECT coalesce(" + ", ".join(["1"] * 200) + ")": "too many arguments",
    "WITH " + ", ".join(f"t{number} AS (SELECT 1)" for number in range(5_000)) + " SELECT 1": "",
}

BROKEN = {
    "I do not know.": "syntax error",
    "SELECT": "incomplete|syntax",
    "SELECT * FROM nowhere": "no such table",
    "SELECT salary FROM people": "no such column",
    "SELECT ?": "binding",
    "SELECT :a, @b, $c": "binding",
    "SELECT 'a\x00b'": "null character|unrecognized|syntax",
    "SELECT '\udcff'": "codec",
    "SELECT abs(-9223372036854775808)": "integer overflow",
    "SELECT 'a' REGEXP 'b'": "REGEXP",
    "SELECT 'a' MATCH 'b'": "not authorized|unable to use function MATCH",
    "\x00\x01\x02\ufeff": "null character|unrecognized|syntax",
    ".shell id": "syntax",
    ".load /tmp/x.so": "syntax",
}

REFUSED = {**REACHING_OUT, **SEVERAL, **BROKEN}
EXCESSIVE = {**ENDS_LATE, **HUGE, **DEEP}
