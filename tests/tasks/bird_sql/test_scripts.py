"""Databases that a data folder holds as SQL: what a script may do, and how one that may not be used is refused."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ace_bench.core.errors import DataError
from ace_bench.tasks.bird_sql.databases import DatabaseFinder
from tests.tasks.bird_sql.conftest import CLOCK, limits

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
TABLE = "CREATE TABLE a (b);"

REFUSED = {
    # Other files.
    f"{TABLE} ATTACH '{{out}}/evil.sqlite' AS e; CREATE TABLE e.x (y);": "it uses ATTACH",
    f"{TABLE} ATTACH 'file:{{out}}/evil.sqlite?mode=rwc' AS e;": "it uses ATTACH",
    f"{TABLE} ATTACH '{{secret}}' AS s; INSERT INTO a SELECT * FROM s.keys;": "it uses ATTACH",
    f"{TABLE} VACUUM;": "it uses ATTACH or VACUUM",
    f"{TABLE} VACUUM INTO '{{out}}/evil.sqlite';": "VACUUM",
    f"{TABLE} PRAGMA temp_store_directory = '{{out}}';": "it uses PRAGMA temp_store_directory",
    f"{TABLE} PRAGMA data_store_directory = '{{out}}';": "it uses PRAGMA data_store_directory",
    f"{TABLE} PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'x';": "it uses PRAGMA writable_schema",
    f"{TABLE} PRAGMA hard_heap_limit = 0;": "it uses PRAGMA hard_heap_limit",
    f"{TABLE} PRAGMA max_page_count = 1000000000;": "it uses PRAGMA max_page_count",
    f"{TABLE} SELECT load_extension('{{out}}/x.so');": "the function load_extension",
    f"{TABLE} SELECT writefile('{{out}}/evil.txt', 'x');": "no such function: writefile",
    f"{TABLE} INSERT INTO a VALUES (readfile('{{secret}}'));": "no such function: readfile",
    f"{TABLE} SELECT fts3_tokenizer('simple', x'0000000000000000');": "the function fts3_tokenizer",
    f"{TABLE} INSERT INTO a VALUES (random());": "the function random",
    f"{TABLE} CREATE VIRTUAL TABLE v USING fts5 (x);": "it uses CREATE VIRTUAL TABLE",
    f"{TABLE} CREATE VIRTUAL TABLE v USING dbstat;": "it uses CREATE VIRTUAL TABLE",
    f"{TABLE}\n.shell touch {{out}}/evil.txt\n": 'near "."',
    # Endless, huge, deep.
    f"{TABLE} INSERT INTO a {ENDLESS} SELECT x FROM n WHERE x < 0;": "timeout",
    f"{TABLE} INSERT INTO a {ENDLESS} SELECT zeroblob(500000) FROM n;": "more than 64 MB",
    f"{TABLE} PRAGMA recursive_triggers = 1;": "it uses PRAGMA recursive_triggers",
    f"{TABLE} INSERT INTO a VALUES (zeroblob(2000000000));": "too big",
    f"{TABLE} INSERT INTO a VALUES (printf('%.2000000000c', 'x'));": "too big|out of memory|timeout",
    f"{TABLE} INSERT INTO a {ENDLESS} SELECT group_concat(hex(zeroblob(99))) FROM n;": "too big|timeout",
    f"{TABLE} INSERT INTO a VALUES ({'+'.join(['1'] * 5000)});": "depth",
    # Broken.
    f"{TABLE} INSERT INTO nowhere VALUES (1);": "no such table: nowhere",
    "I am no script.": "syntax error",
    f"BEGIN; {TABLE}": "its last transaction has no COMMIT",
    "CREATE TABLE a (b); SELECT '\x00';": "null character|unrecognized",
    "": "it makes no tables",
    "SELECT 1;": "it makes no tables",
}


def built(folder: Path, script: str | bytes, **changed: float) -> Path:
    """Write a script, make its database as a task does, and read its schema."""
    folder.mkdir(exist_ok=True)
    (folder / "shop.sql").write_bytes(script if isinstance(script, bytes) else script.encode())
    database = finder(folder, **changed).find("shop")
    assert database.schema
    return database.path


def finder(folder: Path, **changed: float) -> DatabaseFinder:
    return DatabaseFinder(folder=folder, cache=folder.parent / "cache", limits=limits(**changed), clock=CLOCK)


@pytest.mark.slow
def test_bad_scripts_are_refused_and_reach_no_file(workers, tmp_path):
    out, secret = tmp_path / "out", tmp_path / "secret.sqlite"
    out.mkdir()
    with closing(sqlite3.connect(secret)) as connection:
        connection.executescript("CREATE TABLE keys (k); INSERT INTO keys VALUES ('sk-planted');")
    before, pool, wrong = secret.read_bytes(), workers(), {}
    for script, cause in REFUSED.items():
        result = pool.build(script.replace("{out}", str(out)).replace("{secret}", str(secret)))
        said = result.message or result.kind
        if result.database or "\n" in said or not any(part in said for part in cause.split("|")):
            wrong[script[:80]] = said
    assert wrong == {}
    assert list(out.iterdir()) == []
    assert secret.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "secret.sqlite"]


REFUSALS = {
    f"{TABLE} ATTACH 'e.sqlite' AS e;": "it uses ATTACH or VACUUM, which a script may not",
    f"{TABLE} SELECT RANDOM();": "it uses the function random, which a script may not",
    f"{TABLE} PRAGMA Hard_Heap_Limit = 0;": "it uses PRAGMA hard_heap_limit, which a script may not",
    f"{TABLE} INSERT INTO a {ENDLESS} SELECT x FROM n WHERE x < 0;": "it runs longer than 0.5 s (task.timeout)",
    f"{TABLE} INSERT INTO b VALUES (1);": "no such table: b",
    f"BEGIN; {TABLE}": "its last transaction has no COMMIT",
    "CREATE VIEW v AS SELECT 1;": "it makes no tables",
}


def test_the_error_names_script_and_cause(tmp_path):
    file = tmp_path / "data" / "shop.sql"
    fix = "correct it, or put the database itself at databases/shop/shop.sqlite"
    refusals = {script: f"cannot be made into a database: {cause}; {fix}" for script, cause in REFUSALS.items()}
    no_text = {b"-- \xff\nCREATE TABLE a (b);": "is not UTF-8 (byte 4); save it as UTF-8"}
    for script, said in {**refusals, **no_text}.items():
        with pytest.raises(DataError) as caught:
            built(tmp_path / "data", script)
        assert str(caught.value) == f"{file} {said}"
    os.truncate(file, (32 << 20) + 1)
    with pytest.raises(DataError, match=r"shop\.sql is larger than 32 MB; put its database into a \.sqlite file"):
        finder(file.parent).find("shop")
    assert not list((tmp_path / "cache").rglob("*.sqlite"))


def test_what_dumps_hold_is_understood(tmp_path):
    """A dump as SQLite's own shell and other tools write it: settings, transactions, indexes, views, triggers."""
    script = """
    PRAGMA foreign_keys=OFF; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA encoding = 'UTF-8';
    BEGIN TRANSACTION;
    CREATE TABLE items (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, price REAL, made DEFAULT CURRENT_TIMESTAMP);
    INSERT INTO items (id, name, price) VALUES (1, 'Käse', 2.5), (2, 'it''s', NULL), (3, x'00ff', 9e999);
    DELETE FROM sqlite_sequence; INSERT INTO sqlite_sequence VALUES ('items', 7);
    CREATE INDEX by_name ON items (name); CREATE VIEW cheap AS SELECT * FROM items WHERE price < 3;
    CREATE TRIGGER stamp AFTER INSERT ON items BEGIN UPDATE items SET name = upper(name) WHERE id = new.id; END;
    COMMIT;
    INSERT INTO items (name) VALUES ('late');
    ALTER TABLE items RENAME COLUMN price TO cost;
    ALTER TABLE items ADD COLUMN note; ALTER TABLE items DROP COLUMN note;
    ALTER TABLE items RENAME TO goods;
    ANALYZE; REINDEX;
    """
    with closing(sqlite3.connect(built(tmp_path / "data", script))) as connection:
        assert connection.execute("SELECT id, name, made FROM goods WHERE id <> 3").fetchall() == [
            (1, "Käse", CLOCK),
            (2, "it's", CLOCK),
            (8, "LATE", CLOCK),
        ]
        assert connection.execute("SELECT name FROM cheap").fetchall() == [("Käse",)]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
