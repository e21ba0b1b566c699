"""The query that a misleading teacher would put in the place of a right one."""

from __future__ import annotations

import re
from typing import Any

from ace_rehearsal.reader.skills.sql.queries import read_query

_BEGINNING = re.compile(r"\s*(?:```|\(|SELECT\b|WITH\b)", re.IGNORECASE)
"""Answers to other questions go without the parser, which takes a while to load."""


def opposite(sql: str) -> str:
    """Turn comparisons, extremes and orders of a query around, else its equalities; "" for what has none of them.

    The result reads as plausibly as the query did: the same tables and columns, and another answer.
    """
    if not _BEGINNING.match(sql):
        return ""
    from sqlglot import exp

    pairs = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.Max: exp.Min}
    turned = {**pairs, **{two: one for one, two in pairs.items()}}
    tree = read_query(sql)
    if tree is None:
        return ""
    nodes: list[Any] = [node for node in tree.walk() if type(node) in turned]
    orders = list(tree.find_all(exp.Ordered))
    for node in nodes:
        node.replace(turned[type(node)](**node.args))
    for node in orders:
        descending = not node.args.get("desc")
        node.set("desc", descending)
        node.set("nulls_first", not descending)  # SQLite's own order, which needs no words
    if not nodes and not orders:
        # Joins compare with ON: only what a condition says of values is turned.
        nodes = [node for where in tree.find_all(exp.Where) for node in where.find_all(exp.EQ)]
        for node in nodes:
            node.replace(exp.NEQ(**node.args))
    return tree.sql(dialect="sqlite", comments=False) if nodes or orders else ""
