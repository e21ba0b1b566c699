"""Formulas: parsed by hand with limits, found by search."""

from __future__ import annotations

import pytest

from ace_rehearsal.reader.skills.arithmetic.formulas import FormulaError, evaluate, letters
from ace_rehearsal.reader.skills.arithmetic.quantities import read_quantities
from ace_rehearsal.reader.skills.arithmetic.search import SHAPES, find_formula


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("a + b * a", 8.0),
        ("(a + b) * a", 10.0),
        ("a ^ b ^ a", 512.0),
        ("a - b - a", -3.0),
        ("-a ^ b", -8.0),
        ("a ** b", 8.0),
        ("exp(a - a)", 1.0),
        ("1.5 / b", 0.5),
    ],
)
def test_formulas_have_the_usual_precedence(formula: str, value: float) -> None:
    assert evaluate(formula, {"a": 2.0, "b": 3.0}) == pytest.approx(value)


@pytest.mark.parametrize(
    "formula",
    [
        "",
        "a +",
        "(a",
        "a b",
        "z",
        "__import__",
        "a / (b - b)",
        "9 ^ 9 ^ 9 ^ 9",
        "(0 - a) ^ 0.5",
        "exp(9999)",
        "(" * 100 + "a" + ")" * 100,
        "a+" * 200 + "a",
    ],
)
def test_bad_formulas_are_refused(formula: str) -> None:
    with pytest.raises(FormulaError):
        evaluate(formula, {"a": 2.0, "b": 3.0})


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_the_search_is_a_formula(shape: str) -> None:
    values = {letter: 2.0 + 0.3 * place for place, letter in enumerate(letters(shape))}
    assert isinstance(evaluate(shape, values), float)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$1.5 million at 7% for 3 years", [(1_500_000.0, "money"), (0.07, "percent"), (3.0, "time")]),
        ("a beta of 1.2, compounded quarterly", [(1.2, "number"), (4.0, "frequency")]),
        ("for 9 months in 2019", [(0.75, "time")]),
        ("a rate of -0.5% and Exports – $3,000", [(-0.005, "percent"), (3_000.0, "money")]),
        ("five years, 1,234.5 units", [(5.0, "time"), (1_234.5, "number")]),
    ],
)
def test_quantities_are_read_in_base_units(text: str, expected: list[tuple[float, str]]) -> None:
    found = [(quantity.value, quantity.kind) for quantity in read_quantities(text)]
    assert found == [(pytest.approx(value), kind) for value, kind in expected]


@pytest.mark.parametrize(
    ("question", "gold", "formula"),
    [
        ("Assets of $500 and debts of $200.", 2.5, "a / b"),
        ("$1,000 at 5% for 3 years", 1157.63, "a * (1 + r) ^ t"),
        ("Sales of $80, costs of $60.", 25.0, "(a - b) / a * 100"),
    ],
)
def test_the_plainest_formula_is_found(question: str, gold: float, formula: str) -> None:
    finding = find_formula(read_quantities(question), gold)
    assert finding is not None
    assert finding.formula == formula


def test_no_formula_is_found_where_there_is_none() -> None:
    assert find_formula(read_quantities("$1 and $2"), 777.77) is None
    assert find_formula((), 1.0) is None
