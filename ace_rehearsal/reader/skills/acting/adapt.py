"""Fit a program to the task at hand: options it does not ask for go, those it names come, items are filtered."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ace_rehearsal.reader.skills.acting.documentation import Api, Documentation
from ace_rehearsal.reader.skills.acting.statements import (
    UNREADABLE,
    Statement,
    analysed,
    api_name,
    ends_with,
    parsed,
    stems_of,
)
from ace_rehearsal.reader.words import stem

_LENGTH = re.compile(r"\b(longer|shorter) than (\d{1,6}) (minutes|seconds)\b")
_CALLED = re.compile(r"\w+ = [\w.]+\(")
_FACTORS = {"minutes": " * 60", "seconds": ""}
_PERIOD = frozenset(("start", "end"))
"""Names by which lessons call the first and the last day of a period."""


def adapted(statement: Statement, question: str, documentation: Documentation) -> Statement:
    """Return a statement without what the task does not speak of, and with the options that the task names."""
    asked = stems_of(question)
    fitting = _Fitting(statement.cues - asked, asked, documentation)
    try:
        tree = fitting.visit(parsed(statement.code))
        return replace(statement, code=ast.unparse(tree)) if fitting.changed else statement
    except UNREADABLE:
        return statement


class _Fitting(ast.NodeTransformer):
    def __init__(self, absent: frozenset[str], asked: frozenset[str], documentation: Documentation):
        self._absent = absent
        self._asked = asked
        self._documentation = documentation
        self.changed = False

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = api_name(node.func) or next((name for arg in node.args[:1] if (name := api_name(arg))), "")
        api = self._documentation.apis.get(name)
        if api is None or not name.split(".")[-1].startswith(("show_", "search_")):
            return node
        kept = [
            keyword
            for keyword in node.keywords
            if not (isinstance(keyword.value, ast.Constant) and stem(keyword.arg or "") in self._absent)
        ]
        given = {keyword.arg for keyword in kept}
        for option, values in api.options.items():
            named = [value for value in values if stem(value) in self._asked]
            if option not in given and len(named) == 1:
                kept.append(ast.keyword(arg=option, value=ast.Constant(value=named[0])))
        self.changed |= kept != node.keywords
        node.keywords = kept
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        kept = [value for value in node.values if not self._speaks_of_absent(value)]
        if not isinstance(node.op, ast.And) or not kept or len(kept) == len(node.values):
            return node
        self.changed = True
        return kept[0] if len(kept) == 1 else ast.BoolOp(op=node.op, values=kept)

    def _speaks_of_absent(self, condition: ast.expr) -> bool:
        keys = {node.value for node in ast.walk(condition) if isinstance(node, ast.Constant)}
        parts = {stem(part) for key in keys if isinstance(key, str) for part in key.split("_")}
        return any(word == part or ends_with(word, part) for word in self._absent for part in parts)


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A condition on the items of a list, and the names that it needs; ``name`` is the list."""

    name: str
    condition: str
    needs: frozenset[str] = frozenset()

    @property
    def statement(self) -> Statement:
        """The filter as a statement."""
        return analysed(f"{self.name} = [item for item in {self.name} if {self.condition}]")


def filters(
    program: Sequence[Statement], pool: Sequence[Statement], question: str, documentation: Documentation
) -> Iterator[Filter]:
    """Yield conditions of a task that a program does not heed: how long items are, and when they were made."""
    for name, api in _listed(program, documentation):
        length = _LENGTH.search(question)
        if length and "duration" in api.fields:
            sign = ">" if length[1] == "longer" else "<"
            yield Filter(name=name, condition=f'item["duration"] {sign} {length[2]}{_FACTORS[length[3]]}')
        if api.dates and not any(_PERIOD & statement.needs for statement in program) and _period(pool, question):
            made = f'item["{api.dates[0]}"][:10]'
            yield Filter(name=name, condition=f"str(start) <= {made} <= str(end)", needs=_PERIOD)


def _listed(program: Sequence[Statement], documentation: Documentation) -> Iterator[tuple[str, Api]]:
    """Yield the lists that the program goes through in the end, with the API they are from."""
    used = {name for statement in program[-2:] for name in statement.needs}
    for statement in program:
        api = documentation.apis.get(statement.calls[0]) if statement.calls else None
        if statement.name in used and api is not None and api.lists and _CALLED.match(statement.code):
            yield statement.name, api


def _period(pool: Sequence[Statement], question: str) -> bool:
    """Whether lessons hold a period that the task speaks of."""
    asked = stems_of(question)
    return any(part.cues and part.cues <= asked for part in pool if _PERIOD & part.gives)
