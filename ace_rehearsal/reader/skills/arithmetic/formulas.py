"""A tiny language of formulas: parsed by hand, evaluated with limits, never by ``eval``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?|exp|[a-z]|\*\*|[-+*/()^])")
_LONGEST = 240
_DEEPEST = 40
_LARGEST = 1e15


@dataclass(frozen=True)
class Node:
    """An expression: a number, a letter, or an operator over its operands."""

    kind: str
    value: float = 0.0
    left: Node | None = None
    right: Node | None = None


class FormulaError(ValueError):
    """The text is no formula, or its value is undefined or out of bounds."""


@lru_cache(maxsize=8_192)
def parse_formula(text: str) -> Node:
    """Parse ``a * (1 + r) ^ t`` and the like; raises ``FormulaError``."""
    if len(text) > _LONGEST:
        raise FormulaError("too long")
    words: list[str] = []
    position = 0
    stripped = text.strip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise FormulaError(f"unreadable at {stripped[position : position + 10]!r}")
        words.append("^" if match[1] == "**" else match[1])
        position = match.end()
    parser = _Parser(words)
    node = parser.sum(0)
    if parser.place != len(words):
        raise FormulaError("text after the end")
    return node


class _Parser:
    def __init__(self, words: list[str]):
        self.words = words
        self.place = 0

    def _peek(self) -> str:
        return self.words[self.place] if self.place < len(self.words) else ""

    def _next(self) -> str:
        word = self._peek()
        self.place += 1
        return word

    def sum(self, depth: int) -> Node:
        node = self._product(depth + 1)
        while self._peek() in {"+", "-"}:
            node = Node(self._next(), left=node, right=self._product(depth + 1))
        return node

    def _product(self, depth: int) -> Node:
        node = self._power(depth + 1)
        while self._peek() in {"*", "/"}:
            node = Node(self._next(), left=node, right=self._power(depth + 1))
        return node

    def _power(self, depth: int) -> Node:
        node = self._atom(depth + 1)
        if self._peek() == "^":
            self._next()
            return Node("^", left=node, right=self._power(depth + 1))
        return node

    def _atom(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise FormulaError("too deep")
        word = self._next()
        if word == "-":
            return Node("-", left=Node("number", 0.0), right=self._power(depth + 1))
        if word in {"(", "exp"}:
            if word == "exp" and self._next() != "(":
                raise FormulaError("exp needs a bracket")
            node = self.sum(depth + 1)
            if self._next() != ")":
                raise FormulaError("a bracket is not closed")
            return node if word == "(" else Node("exp", left=node)
        if word and word[0].isdigit():
            return Node("number", float(word))
        if len(word) == 1 and word.isalpha():
            return Node(word)
        raise FormulaError("an operand is missing")


def evaluate(text: str, values: Mapping[str, float]) -> float:
    """Value of a formula; raises ``FormulaError`` where it has none within bounds."""
    try:
        value = _value(parse_formula(text), values)
    except (ArithmeticError, KeyError, RecursionError, ValueError) as error:
        raise FormulaError(str(error)) from error
    if not math.isfinite(value) or abs(value) > _LARGEST:
        raise FormulaError("out of bounds")
    return value


def _value(node: Node, values: Mapping[str, float]) -> float:
    if node.kind == "number":
        return node.value
    if node.left is None:
        return values[node.kind]
    left = _value(node.left, values)
    if node.right is None:
        return math.exp(left)
    return _OPERATORS[node.kind](left, _value(node.right, values))


def _power(base: float, exponent: float) -> float:
    # A fractional power of a negative number would be complex: no quantity of a question is.
    if base < 0 and exponent != int(exponent):
        raise FormulaError("no real value")
    return float(base**exponent)


_OPERATORS: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": _power,
}


def letters(text: str) -> tuple[str, ...]:
    """Letters of a formula in order of first use."""
    found = re.findall(r"(?<![a-z])[a-z](?![a-z])", text)
    return tuple(dict.fromkeys(found))
