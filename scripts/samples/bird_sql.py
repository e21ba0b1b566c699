"""BIRD-like samples: two small databases and questions with terms that must be learnt.

The ``.sql`` files hold the tables, ``bird_sql.txt`` the questions: no schema defines "active" or "revenue", but the
queries of the training split show their meaning. Test questions use the same terms with other constants and, half of
them, other wordings.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from scripts.samples.draw import SIZES, WORDINGS, Draw, read_blocks

_FOLDER = Path(__file__).parent

CITIES = ("Alderton", "Brimley", "Corvale", "Dunhaven", "Elmsworth", "Foxmere")
HALLS = ("north", "south", "swimming", "climbing", "tennis", "archery")
SPECIALTIES = ("yoga", "rowing", "boxing", "running", "swimming", "fencing")
COUNTRIES = ("Norway", "Portugal", "Austria", "Ireland", "Estonia", "Greece")
CATEGORIES = ("seeds", "tools", "pots", "furniture", "lighting", "paving")
YEARS = (2018, 2019, 2020, 2021, 2022, 2023)

CONSTANTS: Mapping[str, Sequence[Any]] = {
    "city": CITIES,
    "hall": HALLS,
    "specialty": SPECIALTIES,
    "country": COUNTRIES,
    "category": CATEGORIES,
    "year": YEARS,
    "birth": tuple(range(1960, 2001)),
    "hours": (0.5, 1, 1.5, 2, 2.5),
    "margin": tuple(range(2, 40)),
}
"""The values that the slots of a question may take."""

_FIRST = ("Ada", "Bo", "Cleo", "Dario", "Edda", "Finn", "Gwen", "Hugo", "Iris", "Jonas", "Kira", "Lars", "Mona", "Nils")
_LAST = ("Abel", "Brandt", "Costa", "Dahl", "Egger", "Frost", "Galli", "Holm", "Ivens", "Jansen", "Krog", "Lund")
_GOODS = ("Aster", "Birch", "Clover", "Drift", "Ember", "Fern", "Grove", "Heath")
_KINDS = ("Classic", "Compact", "Deluxe", "Garden", "Patio")


Maker = Callable[[Draw, int], tuple[Any, ...]]


def _person(draw: Draw) -> str:
    return f"{draw.one(_FIRST)} {draw.one(_LAST)}"


def _date(draw: Draw) -> str:
    return f"{draw.one(YEARS)}-{draw.number(1, 12):02d}-{draw.number(1, 28):02d}"


def _product(draw: Draw, row: int) -> tuple[Any, ...]:
    price = draw.number(300, 9_900) / 100
    title = f"{_GOODS[row % len(_GOODS)]} {_KINDS[row // len(_GOODS)]}"
    return title, draw.one(CATEGORIES), price, round(price * draw.number(40, 90) / 100, 2)


_PLANS = (
    ("Basic", "S", 19.0),
    ("Daytime", "S", 24.5),
    ("Family", "P", 59.0),
    ("Gold", "P", 75.0),
    ("Student", "S", 12.0),
)

ROWS: Mapping[str, Mapping[str, tuple[int, Maker]]] = {
    "sports_club": {
        "plans": (len(_PLANS), lambda _, row: _PLANS[row]),
        "members": (
            90,
            lambda draw, _: (
                _person(draw),
                draw.one(CITIES),
                draw.number(1955, 2004),
                draw.one((1, 2, 2, 2, 3, 3, 4)),
                draw.number(1, len(_PLANS)),
            ),
        ),
        "visits": (
            300,
            lambda draw, _: (draw.number(1, 90), draw.one(HALLS), _date(draw), 5 * draw.number(3, 30)),
        ),
        "trainers": (
            20,
            lambda draw, row: (_person(draw), SPECIALTIES[row % len(SPECIALTIES)], draw.number(40, 180) / 2),
        ),
        "training_sessions": (
            200,
            lambda draw, _: (draw.number(1, 20), draw.number(1, 90), draw.number(1, 6) / 2, draw.number(1, 5)),
        ),
    },
    "garden_shop": {
        "customers": (60, lambda draw, _: (_person(draw), draw.one(COUNTRIES), draw.one("BCC"))),
        "products": (len(_GOODS) * len(_KINDS), _product),
        "orders": (
            200,
            lambda draw, _: (draw.number(1, 60), _date(draw), draw.one("WSP"), draw.one((1, 2, 4, 4, 4, 7))),
        ),
        "order_items": (
            450,
            lambda draw, _: (
                draw.number(1, 200),
                draw.number(1, len(_GOODS) * len(_KINDS)),
                draw.number(1, 14),
                draw.one((0, 0, 0.05, 0.1, 0.2)),
            ),
        ),
    },
}
"""How many rows a table has, and how one is drawn; the first column, its key, counts from 1."""


class Kind(NamedTuple):
    """A kind of question: its database, its three wordings and its query."""

    database: str
    level: str
    wordings: list[str]
    sql: str


@cache
def script(database: str) -> str:
    """Return the SQL that makes a database."""
    draw = Draw(f"bird_sql-{database}")
    parts = [_FOLDER.joinpath(f"{database}.sql").read_text(encoding="utf-8")]
    for table, (count, make) in ROWS[database].items():
        values = ",\n".join(f"({', '.join(map(_literal, (row + 1, *make(draw, row))))})" for row in range(count))
        parts.append(f"INSERT INTO {table} VALUES\n{values};\n")
    return "".join(parts)


def files() -> dict[str, str]:
    """Return the databases by their file names."""
    return {f"{database}.sql": script(database) for database in ROWS}


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def kinds() -> list[Kind]:
    """Return the kinds of questions of ``bird_sql.txt``."""
    blocks = ((head.split(), wordings, sql) for head, *wordings, sql in read_blocks("bird_sql.txt"))
    return [Kind(database, level, wordings, sql) for (database, level), wordings, sql in blocks]


@cache
def _splits() -> dict[str, list[dict[str, str]]]:
    """Draw all splits, every kind once before any repeats; no query occurs twice."""
    taken: set[str] = set()
    splits: dict[str, list[dict[str, str]]] = {}
    for split, size in SIZES.items():
        draw = Draw(f"bird_sql-{split}")
        rows: list[dict[str, str]] = []
        while len(rows) < size:
            drawn = [_question(kind, split, draw, taken) for kind in draw.shuffled(kinds())[: size - len(rows)]]
            rows += [row for row in drawn if row is not None]
            taken.update(row["SQL"] for row in rows)
        splits[split] = rows
    return splits


def rows(split: str) -> list[dict[str, str]]:
    """Return a split's questions in the form of the data."""
    return _splits()[split]


def _question(kind: Kind, split: str, draw: Draw, taken: set[str]) -> dict[str, str] | None:
    """Draw a question with unused constants and a non-empty result; ``None`` if none are left."""
    slots = sorted(set(re.findall(r"\{(\w+)\}", kind.sql)))
    wording = kind.wordings[draw.one(WORDINGS[split])]
    for values in draw.shuffled(list(itertools.product(*(CONSTANTS[slot] for slot in slots)))):
        constants = dict(zip(slots, values, strict=True))
        sql = kind.sql.format_map(constants)
        if sql not in taken and _finds_something(kind.database, sql):
            question = wording.format_map(constants)
            return {"question": question, "SQL": sql, "db_id": kind.database, "difficulty": kind.level}
    return None


@cache
def _open_database(database: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(script(database))
    return connection


def _finds_something(database: str, sql: str) -> bool:
    rows = _open_database(database).execute(sql).fetchall()
    return bool(rows) and rows[0][-1] not in (None, 0, 0.0)
