"""Numbers in a question, and arithmetic expressions over them.

Expressions are evaluated without ``eval``. A search over common shapes of arithmetic (shares, growth, discounting,
annuities) finds one that gives a known answer; which question needs which shape is recorded in a lesson.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise, permutations

import msgspec

from ace_bench.backbones.embedded.words import content_stems
from ace_bench.core.python_text import read_python

MONEY, PERCENT, TIME, FREQUENCY, PLAIN = "money", "percent", "time", "frequency", "number"

_SCALE = {"thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12}
_FREQUENCIES = {
    "bi-annually": 2.0, "bi-annual": 2.0,
    "semi-annually": 2.0, "semiannually": 2.0, "semi-annual": 2.0, "semiannual": 2.0, "half-yearly": 2.0,
    "biannually": 2.0, "quarterly": 4.0, "bimonthly": 6.0, "monthly": 12.0, "fortnightly": 26.0, "weekly": 52.0,
    "daily": 365.0, "annually": 1.0, "yearly": 1.0, "continuously": 0.0, "continuous": 0.0,
}  # fmt: skip
_SPELLED = {
    "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "seven": 7.0, "eight": 8.0,
    "nine": 9.0, "ten": 10.0, "twelve": 12.0,
}  # fmt: skip
_PERIODS = {"year": 1.0, "yr": 1.0, "month": 1 / 12, "week": 1 / 52, "day": 1.0, "quarter": 1.0, "period": 1.0}
_LENGTHS = "years?|yrs?|months?|weeks?|days?|quarters?|periods?"
_NUMBER = re.compile(
    r"(?P<sign>(?<![\w)])[-−–])?(?P<money>[$€£¥]\s?)?"
    r"(?P<digits>(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?<=\d))"
    r"(?:\s?(?P<scale>thousand|million|billion|trillion|mn|bn|[kKmM])\b)?"
    r"(?P<percent>\s?%|\s(?:percent|per cent)\b)?"
    rf"(?:[\s-]{{1,2}}(?P<period>{_LENGTHS})\b)?"
    rf"|\b(?P<word>{'|'.join([*_FREQUENCIES, *_SPELLED])})\b(?:[\s-](?P<after>{_LENGTHS})\b)?",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[;?!\n]|\.(?=\s|$)|,(?!\d)|\b(?:and|while|whereas|against|versus)\b")
_SPAN = 5
_MOST, _LARGEST = 12, 1e15


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """A number as written: ``value`` in base units (percents as fractions), words before and after it."""

    value: float
    kind: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@lru_cache(maxsize=1_024)
def read_quantities(question: str) -> tuple[Quantity, ...]:
    """All numbers of a question in order, at most a dozen; calendar years are left out."""
    matches = [match for match in _NUMBER.finditer(question) if match["word"] or match["digits"]]
    quantities: list[Quantity] = []
    for index, match in enumerate(matches):
        read = _value(match)
        if read is None or abs(read[0]) > _LARGEST:
            continue
        start = matches[index - 1].end() if index else 0
        end = matches[index + 1].start() if index + 1 < len(matches) else len(question)
        before = _words(_CLAUSE.split(question[start : match.start()])[-1])
        after = _words(_CLAUSE.split(question[match.end() : end])[0])
        quantities.append(Quantity(value=read[0], kind=read[1], before=before[-_SPAN:], after=after[:_SPAN]))
        if len(quantities) == _MOST:
            break
    return tuple(quantities)


def _value(match: re.Match[str]) -> tuple[float, str] | None:
    if match["word"]:
        word, period = match["word"].lower(), (match["after"] or "").lower()
        if word in _FREQUENCIES:
            return _FREQUENCIES[word], FREQUENCY
        return (_SPELLED[word] * _PERIODS[period.rstrip("s")], TIME) if period else None
    value = float(match["digits"].replace(",", ""))
    bare = match["digits"].isdigit() and not (match["money"] or match["scale"] or match["percent"] or match["period"])
    if bare and 1950 <= value <= 2050:
        return None
    value *= _SCALE.get((match["scale"] or "").lower(), 1.0)
    value = -value if match["sign"] else value
    if match["percent"]:
        # Through the decimal text, because 0.07 and 7 / 100 may differ in the last bit.
        return round(value / 100, 10), PERCENT
    if match["period"]:
        return value * _PERIODS[match["period"].lower().rstrip("s")], TIME
    return value, MONEY if match["money"] else PLAIN


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^\W\d][\w'’&-]*", text))


@lru_cache(maxsize=4_096)
def cues(quantity: Quantity) -> Mapping[str, float]:
    """Stems of the words near a number; closer words weigh more."""
    weights: dict[str, float] = {}
    for side in (reversed(quantity.before), quantity.after):
        for distance, key in enumerate(content_stems(side)):
            weights[key] = max(weights.get(key, 0.0), 1.0 / (1.0 + 0.5 * distance))
    return weights


Values = Mapping[str, float]
_LONGEST = 240
_NAME = re.compile(r"\b[a-z]\d*\b(?!\()")
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,  # refuses fractional powers of negative numbers
}

SHAPES: tuple[str, ...] = (
    "a / b", "a * b", "a - b", "a + b", "a / b * 100", "(a - b) / b", "(a - b) / b * 100", "a * (1 + r)",
    "a * (1 - r)", "a / (1 + r)", "a / r", "(a - b) / a", "(a - b) / a * 100", "a * r * t", "a / b * 365",
    "365 / (a / b)", "(1 + r / n) ^ n - 1", "(1 + r / n) ^ n * 100 - 100", "exp(r) - 1", "1 / a", "a / (a + b)",
    "(a - b) / c", "(a - b) / c * 100", "a / (b - c)", "a / (b + c)", "(a + b) / c", "a / b + c", "a + b * (c - a)",
    "a + b * c", "a - b * c", "a * b / c", "a / b * t", "a + b - c", "a + b + c", "a - b - c", "a * b * c",
    "a * (1 + r) / (s - r)", "a * (1 + r) / (1 + s)", "(1 + r) / (1 + s) - 1", "a / b - c", "a / ((b + c) / 2)",
    "a * (1 + r) ^ t", "a / (1 + r) ^ t", "a * (1 - (1 + r) ^ (0 - t)) / r", "a * ((1 + r) ^ t - 1) / r",
    "a * (1 + r / n) ^ (n * t)", "a * exp(r * t)", "a * (1 + r * t)", "(a / b) ^ (1 / t) - 1",
    "a * ((1 + r) ^ t - 1)", "a * r / (1 - (1 + r) ^ (0 - t))", "a * (1 + r * t / 12)", "a / (1 + r) ^ (t / 12)",
    "a - (b + c * (d - b))", "a + b - c + d", "a + b + c + d", "(b + c) / a / t * 365", "(c - a - b) / (a + b)",
    "(a - b - c) / d", "(a - b) / (c - d)", "(a + b - c) / d", "(a + b) / (c + d)", "a / b - c / d",
    "a - b + c / (1 + r) ^ t", "a + b - c / (1 + r) ^ t", "(a - b + c) * (1 + r) ^ t", "a + b - c - d",
    "a + b + c + (d - e)", "a + b * c + d * e", "(a * b + c * d) / e", "a / (a + b) * c + b / (a + b) * d",
    "a / (a + b) * c + b / (a + b) * d * (1 - e)", "(a * c + b * d * (1 - e)) / (a + b)", "a * b + c * d * (1 - e)",
    "a / f * c + b / f * d * (1 - e)", "a / (1 + r) + b / (1 + r) ^ 2",
    "a / (1 + r) + b / (1 + r) ^ 2 + c / (1 + r) ^ 3",
    "a / (1 + r) + b / (1 + r) ^ 2 + c / (1 + r) ^ 3 + d / (1 + r) ^ 4",
    "a / (1 + r) + b / (1 + r) ^ 2 + c / (1 + r) ^ 3 + d / (1 + r) ^ 4 + e / (1 + r) ^ 5",
    "b / (1 + r) + c / (1 + r) ^ 2 - a", "b / (1 + r) + c / (1 + r) ^ 2 + d / (1 + r) ^ 3 - a",
    "b * (1 - (1 + r) ^ (0 - t)) / r - a", "a * (1 - (1 + r) ^ (0 - t)) / r * (1 + r)", "a + b / (1 + r)",
    "a + b / (1 + r) + c / (1 + r) ^ 2", "a + b / (1 + r) + c / (1 + r) ^ 2 + d / (1 + r) ^ 3", "a / b * 90",
)  # fmt: skip
"""Simplest first. The letters are operands: a to f any amount, r and s rates, t times, n periods a year."""
_ALLOWED = {"r": (PERCENT, PLAIN), "s": (PERCENT, PLAIN), "t": (TIME, PLAIN), "n": (FREQUENCY, PLAIN)}
_AMOUNT = (MONEY, PERCENT, PLAIN)
_MAX_TRIES, _MAX_QUANTITIES = 20_000, 8
_UNUSED, _MIXED, _ORDER, _RANK = 2.5, 2.0, 0.15, 0.02


class ExpressionError(ValueError):
    """The text is not an expression, or its value is undefined or out of bounds."""


def evaluate(text: str, values: Values) -> float:
    """Value of an expression such as ``n1 * (1 + n2) ^ n3``; raises ``ExpressionError`` if it has none."""
    try:
        value = _compile(text)(values)
    except (ArithmeticError, KeyError, RecursionError, ValueError) as error:
        raise ExpressionError(str(error)) from error
    if not abs(value) <= _LARGEST:  # NaN included
        raise ExpressionError("out of bounds")
    return value


@lru_cache(maxsize=8_192)
def names_in(text: str) -> tuple[str, ...]:
    """Names of an expression in order of first use."""
    return tuple(dict.fromkeys(_NAME.findall(text)))


@lru_cache(maxsize=8_192)
def _compile(text: str) -> Callable[[Values], float]:
    if len(text) > _LONGEST:
        raise ExpressionError("too long")
    try:
        tree = read_python(lambda: ast.parse(text.strip().replace("^", "**"), mode="eval"))
        return _function(tree.body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ExpressionError("not an expression") from error


def _function(node: ast.expr) -> Callable[[Values], float]:
    match node:
        case ast.Constant(value=int() | float() as number):
            return lambda _: float(number)
        case ast.Name(id=name):
            return lambda values: values[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            operand = _function(inner)
            return lambda values: -operand(values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            apply, first, second = _OPERATORS[type(op)], _function(left), _function(right)
            return lambda values: apply(first(values), second(values))
        case ast.Call(func=ast.Name(id="exp"), args=[inner], keywords=[]):
            exponent = _function(inner)
            return lambda values: math.exp(exponent(values))
    raise ExpressionError("only arithmetic is read")


def matches(value: float, gold: float) -> bool:
    """Whether a value, rounded to two decimals, is the known answer."""
    return abs(round(value, 2) - gold) < 0.0051 if abs(gold) < 1e4 else abs(value - gold) <= 1e-6 * abs(gold) + 0.011


@lru_cache(maxsize=1_024)
def find_expression(quantities: tuple[Quantity, ...], gold: float) -> str:
    """The simplest expression over ``n1``, ``n2``, ... that gives ``gold``, or "".

    ``n1`` is the first quantity. Simple means few operands, of fitting kinds and in the order of the text.
    """
    quantities = quantities[:_MAX_QUANTITIES]
    tries = ((rank, shape, places) for rank, shape in enumerate(SHAPES) for places in _fillings(shape, quantities))
    best, used, best_cost = "", dict[str, int](), math.inf
    for rank, shape, places in islice(tries, _MAX_TRIES):
        if best_cost <= _RANK * rank:
            break  # later shapes are less simple than the one found
        operands = dict(zip(names_in(shape), places, strict=True))
        try:
            value = evaluate(shape, {name: quantities[index].value for name, index in operands.items()})
        except ExpressionError:
            continue
        cost = _RANK * rank + _cost(operands, quantities)
        if cost < best_cost and matches(value, gold):
            best, used, best_cost = shape, operands, cost
    return _NAME.sub(lambda found: f"n{used[found[0]] + 1}", best)


def _fillings(shape: str, quantities: Sequence[Quantity]) -> Iterator[tuple[int, ...]]:
    allowed = [_ALLOWED.get(name, _AMOUNT) for name in names_in(shape)]
    for indices in permutations(range(len(quantities)), len(allowed)):
        if all(quantities[index].kind in kinds for index, kinds in zip(indices, allowed, strict=True)):
            yield indices


def _cost(operands: Mapping[str, int], quantities: Sequence[Quantity]) -> float:
    unused = sum(q.kind != FREQUENCY for index, q in enumerate(quantities) if index not in operands.values())
    amounts = {quantities[index].kind for name, index in operands.items() if name in "abcdef"}
    disorder = sum(first > second for first, second in pairwise(operands.values()))
    return _UNUSED * unused + _MIXED * (len(amounts) - 1) / 2 + _ORDER * disorder
