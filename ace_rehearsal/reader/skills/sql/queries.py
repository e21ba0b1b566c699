"""SQLite queries as trees: read them, bring them to a normal form, take them to pieces.

The parser is loaded with the first query: only reflectors and judges meet one, and loading takes a while.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot import exp

_FENCE = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)
_LONGEST = 6_000


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A query in pieces, as SQL with the names of tables in place of their aliases.

    ``simple`` is false where a piece would mean nothing outside of its query: tables used twice, set operations.
    """

    shown: tuple[str, ...]
    conditions: tuple[str, ...]
    order: str
    tables: tuple[str, ...]
    simple: bool


def same_query(first: str, second: str) -> bool:
    """Whether two queries differ in nothing but white space, case, aliases, quoting and the order of conditions."""
    one, other = _normal(first), _normal(second)
    return bool(one) and one == other


@lru_cache(maxsize=1_024)
def _normal(sql: str) -> str:
    tree = read_query(sql)
    if tree is None:
        return " ".join(unwrapped(sql).lower().split())
    return _written(_normalised(_unaliased(tree)))


def unwrapped(sql: str) -> str:
    """Take off a code fence and the final semicolon."""
    fenced = _FENCE.match(sql)
    return (fenced[1] if fenced else sql).strip().rstrip(";").strip()


def read_query(sql: str) -> exp.Expr | None:
    """Parse one query; ``None`` for anything else."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    text = unwrapped(sql)
    if not text or len(text) > _LONGEST:
        return None
    try:
        found = sqlglot.parse(text, read="sqlite")
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, IndexError, KeyError):
        return None  # the parser's own bugs on broken text included
    return found[0] if len(found) == 1 and isinstance(found[0], exp.Query) else None


def _written(tree: exp.Expr) -> str:
    try:
        return tree.sql(dialect="sqlite", comments=False)
    except (RecursionError, ValueError):
        return ""


@lru_cache(maxsize=512)
def plain_query(sql: str) -> str:
    """Return a query on one line, tables in place of aliases where each stands once; "" for what is no query."""
    tree = read_query(sql)
    return "" if tree is None else _written(_unaliased(tree))


@lru_cache(maxsize=512)
def take_query_apart(sql: str) -> Parts | None:
    """Name what a query shows, asks for and orders by; ``None`` for what is no query."""
    from sqlglot import exp

    tree = read_query(sql)
    if tree is None:
        return None
    tree = _unaliased(tree)
    tables = tuple(table.name for table in tree.find_all(exp.Table))
    simple = isinstance(tree, exp.Select) and len(list(tree.find_all(exp.Select))) == 1
    simple = simple and len({table.lower() for table in tables}) == len(tables)
    if not simple:
        return Parts(shown=(), conditions=(), order="", tables=tables, simple=False)
    if len(tables) == 1:
        for column in tree.find_all(exp.Column):
            if not column.table:
                column.set("table", exp.to_identifier(tables[0]))
    where, order = tree.args.get("where"), tree.args.get("order")
    first = order.expressions[0] if order and len(order.expressions) == 1 and tree.args.get("limit") else None
    return Parts(
        shown=tuple(_written(shown.unalias()) for shown in tree.expressions),
        conditions=tuple(_written(part) for part in _conjuncts(where.this)) if where else (),
        order=f"{_written(first.this)} {'DESC' if first.args.get('desc') else 'ASC'}" if first else "",
        tables=tables,
        simple=True,
    )


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    from sqlglot import exp

    waiting: list[Any] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.And):
            waiting.extend((part.right, part.left))
        elif isinstance(part, exp.Paren) and isinstance(part.this, exp.And):
            waiting.append(part.this)
        else:
            yield part


def _unaliased(tree: exp.Expr) -> exp.Expr:
    """Put tables in place of their aliases, where a table stands only once in the query."""
    from sqlglot import exp

    tables = list(tree.find_all(exp.Table))
    counts = Counter(table.name.lower() for table in tables)
    names: dict[tuple[int, str], exp.Expr] = {}
    for table in tables:
        if table.alias and counts[table.name.lower()] == 1:
            names[id(table.parent_select), table.alias.lower()] = table.this
            table.set("alias", None)
    for column in tree.find_all(exp.Column):
        select, alias = column.parent_select, column.table.lower()
        while alias and select is not None:
            if (id(select), alias) in names:
                column.set("table", names[id(select), alias].copy())
                break
            select = select.parent_select
    return tree


def _normalised(tree: exp.Expr) -> exp.Expr:
    """Lower the case of names, quote all, sort conditions, drop names of results and words that may be left out."""
    from sqlglot import exp

    for join in tree.find_all(exp.Join):
        if join.args.get("kind") == "INNER":
            join.set("kind", None)
    for ordered in tree.find_all(exp.Ordered):
        ordered.set("desc", ordered.args.get("desc") or None)
    used = {column.name.lower() for column in tree.find_all(exp.Column)}
    if isinstance(tree, exp.Select):
        kept = [shown if shown.alias.lower() in used else shown.unalias() for shown in tree.expressions]
        tree.set("expressions", kept)
    alone = len(list(tree.find_all(exp.Table))) == 1
    for column in tree.find_all(exp.Column):
        if alone:
            column.set("table", None)
    for name in tree.find_all(exp.Identifier):
        name.set("this", name.name.lower())
        name.set("quoted", True)
    for where in list(tree.find_all(exp.Where, exp.Having)):
        where.set("this", exp.and_(*sorted(_conjuncts(where.this), key=_written), copy=False))
    return tree
