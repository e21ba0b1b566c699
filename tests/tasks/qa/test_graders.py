"""Graders by name: what is right, what is wrong, and data they cannot use."""

import json
import sys

import pytest

from ace_bench.core.errors import AceBenchError, ConfigError, DataError, RolloutFault
from tests.tasks.qa.making import made


def grader(tmp_path, answer, grader="exact", **settings):
    """A function that grades answers to one question."""
    path = tmp_path / "one.jsonl"
    row = {"question": "What?", "answer": answer, **settings.pop("row", {})}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    task = made(path, grader=grader, split_ratio={"train": 0, "val": 0, "test": 1}, **settings)
    (sample,) = task.samples("test")

    def grade(given):
        with task.open(sample) as session:
            return session.grade(given)

    return grade


def points(grade, *answers):
    return [grade(answer).score for answer in answers]


def test_no_answer_is_wrong_for_every_grader(tmp_path):
    for name in ("exact", "numeric", "contains", "regex", "f1", "json", "judge"):
        assert points(grader(tmp_path, "5", name), None, "", " \n") == [0, 0, 0], name


def test_exact_ignores_what_it_is_told_to(tmp_path):
    usual = grader(tmp_path, "The Café, Paris")
    assert points(usual, " the  café, paris ", "The Cafe, Paris", "Café Paris", "The Café, Parisian") == [1, 0, 0, 0]
    lenient = grader(tmp_path, "The Café, Paris", ignore={"punctuation": True, "articles": True, "accents": True})
    assert points(lenient, "cafe paris", "a café... Paris!", "cafe of paris") == [1, 1, 0]
    strict = grader(tmp_path, "The Café, Paris", ignore={"case": False, "whitespace": False})
    assert points(strict, "The Café, Paris", "the Café, Paris", "The Café,  Paris") == [1, 0, 0]
    assert points(grader(tmp_path, "?!", ignore={"punctuation": True}), "?!", "!", ".") == [1, 0, 0]
    assert points(grader(tmp_path, ["NYC", "New York"]), "nyc", "New York", "York") == [1, 1, 0]
    assert grader(tmp_path, 2.0)("2").gold == "2"
    with pytest.raises(DataError, match="line 1: the list of accepted answers is empty"):
        grader(tmp_path, [None, ""])


def test_numeric_reads_numbers_as_people_write_them(tmp_path):
    grade = grader(tmp_path, "1,234.5", "numeric")
    right = ["1234.5", "$1,234.50", "1234.5.", "1.2345e3", "The total is 1,234.5 dollars.", "+1234.5", "USD 1234.5"]
    wrong = ["1234", "12345", "1,23,4.5", "1234.5 or 7", "one", "nan", "inf", "1e999", "1234.5.6", "v1234.5"]
    assert points(grade, *right) == [1] * len(right)
    assert points(grade, *wrong) == [0] * len(wrong)
    assert points(grader(tmp_path, -7, "numeric"), "−7", "(7)", "-$7", "$-7", "7") == [1, 1, 1, 1, 0]
    assert points(grader(tmp_path, "12%", "numeric"), "12%", "12", "0.12", "12 %", "0.12%", "1200") == [
        1,
        1,
        1,
        1,
        0,
        0,
    ]
    assert points(grader(tmp_path, "0.5", "numeric"), "50%", "0.5", ".5", "50") == [1, 1, 1, 0]


def test_numeric_has_an_absolute_and_a_relative_tolerance(tmp_path):
    assert points(grader(tmp_path, 200, "numeric", tolerance={"relative": 0.01}), "202", "198", "202.1") == [1, 1, 0]
    assert points(grader(tmp_path, 0, "numeric", tolerance={"absolute": 0.5}), "0.5", "-0.6") == [1, 0]
    with pytest.raises(DataError, match=r"line 1: the answer 'many' is not one number"):
        grader(tmp_path, "many", "numeric")


def test_a_choice_is_a_letter_or_a_text(tmp_path):
    row = {"row": {"options": ["Lyon", "Paris", "Nice"]}, "choices": "options"}
    for reference in ("B", "Paris", "paris ", 1):
        grade = grader(tmp_path, reference, "choice", **row)
        right = ["B", "b", "(B)", "B.", "**B**", "B. Paris", "B) paris", "Paris", "The answer is (B).", "Option B"]
        wrong = ["A", "D", "A. Paris", "A or B", "Lyon or Paris", "B. Lyon", "the answer is A or B", "Bordeaux", "1"]
        assert points(grade, *right) == [1] * len(right), reference
        assert points(grade, *wrong) == [0] * len(wrong), reference
        assert grade("A").gold == "B. Paris"
    with pytest.raises(DataError, match="neither one of the 3 choices nor the letter of one"):
        grader(tmp_path, "Rome", "choice", **row)
    with pytest.raises(DataError, match=r"name their column by task\.choices"):
        grader(tmp_path, "B", "choice")


def test_contains_looks_for_whole_words(tmp_path):
    grade = grader(tmp_path, ["no", "never again"], "contains")
    assert points(grade, "The answer is No.", "Never  again, I say", "I know", "nope", "never, again") == [
        1,
        1,
        0,
        0,
        0,
    ]
    assert points(grader(tmp_path, "C++", "contains"), "I use C++.", "C+") == [1, 0]


def test_regex_searches_the_answer(tmp_path):
    grade = grader(tmp_path, r"^\d{4}-\d\d$", "regex")
    assert points(grade, "2024-05", "in 2024-05", r"^\d{4}-\d\d$") == [1, 0, 1]
    with pytest.raises(DataError, match=r"line 1: the answer '\(' is not a regular expression"):
        grader(tmp_path, "(", "regex")
    slow = grader(tmp_path, "(a|aa)+$", "regex")
    with pytest.raises(
        RolloutFault, match=r"the pattern '\(a\|aa\)\+\$' was searched for over 1 s in an answer; write"
    ):
        points(slow, "a" * 60 + "b")


def test_f1_counts_common_words_as_squad_does(tmp_path):
    grade = grader(tmp_path, ["the red cat", "a dog"], "f1", pass_from=0.6)
    assert points(grade, "A red cat!", "red dog", "bird", "The dog.") == [1, pytest.approx(2 / 3), 0, 1]
    assert [grade(answer).correct for answer in ("red dog", "a red big bad cat", "bird")] == [True, True, False]
    assert points(grader(tmp_path, "the", "f1"), "the", "cat") == [1, 0]


def test_json_is_compared_by_value(tmp_path):
    grade = grader(tmp_path, {"a": [1, 2.0], "b": True}, "json")
    right = ['{"b": true, "a": [1.0, 2]}', '```json\n{"a": [1, 2], "b": true}\n```']
    wrong = ['{"a": [2, 1], "b": true}', '{"a": [1, 2], "b": 1}', '{"a": [1, 2]}', "{", "[" * 100_000, "NaN"]
    assert points(grade, *right, *wrong) == [1, 1, 0, 0, 0, 0, 0, 0]
    assert points(grader(tmp_path, [1, 2], "json"), "[1, 2]", "1") == [1, 0]
    assert points(grader(tmp_path, [3], "json"), "[3]", "3") == [1, 0]
    assert points(grader(tmp_path, [], "json"), "[]", "null") == [1, 0]
    assert points(grader(tmp_path, '"x"', "json"), '"x"', "x") == [1, 0]
    with pytest.raises(DataError, match="line 1: the answer 'x' is not JSON"):
        grader(tmp_path, "x", "json")


@pytest.mark.parametrize("name", ["exact", "numeric", "choice", "contains", "regex", "f1", "json"])
def test_hostile_answers_are_graded_as_wrong(name, tmp_path):
    row = {"row": {"options": ["5", "6"]}, "choices": "options"} if name == "choice" else {}
    grade = grader(tmp_path, "5", name, **row)
    long = [
        "1" * 100_000,
        "1," * 50_000,
        "(" * 100_000,
        "answer" + " " * 100_000 + "x",
        "[" * 100_000,
        "\ud83d",
        "\x00",
    ]
    assert points(grade, *long) == [0] * len(long)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module of the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(text):
        (tmp_path / "my_grading.py").write_text(text)
        monkeypatch.delitem(sys.modules, "my_grading", raising=False)
        sys.path_importer_cache.pop(str(tmp_path), None)

    yield write
    sys.modules.pop("my_grading", None)


def test_a_function_of_ones_own_gives_points(module, tmp_path):
    module("def share(answer, gold):\n    return len(set(answer) & set(gold)) / len(set(gold))\n")
    before = list(sys.path)
    grade = grader(tmp_path, "abcd", "python:my_grading.share")
    assert points(grade, "ab", "xyz", None) == [0.5, 0, 0]
    assert [grade(answer).correct for answer in ("ab", "dcba")] == [False, True]
    assert sys.path == before


WRONG_FUNCTIONS = {
    "python:my_grading.nothing": "module my_grading has no function nothing",
    "python:my_grading.number": "is a int, not a function",
    "python:no_such_module.f": "no_such_module cannot be imported: ModuleNotFoundError",
    "python:f": "must name a function: python:MODULE.FUNCTION",
    "python:my_grading.words": "returned 'right'; it must return true, false, or a number from 0 to 1",
    "python:my_grading.many": "returned 5; it must return",
    "python:my_grading.nan": "returned nan; it must return",
    "python:my_grading.none": "returned None; it must return",
    "python:my_grading.raises": "raised KeyError: 'x' (tried on the reference answer of ",
    "python:my_grading.one": "raised TypeError",
    "likeness": "grader=likeness must be one of exact, numeric, choice, contains, regex, f1, json, judge, or python:",
}


@pytest.mark.parametrize("name", WRONG_FUNCTIONS)
def test_a_function_that_cannot_grade_is_refused_at_once(name, module, tmp_path):
    module(
        "number = 5\ndef words(a, b): return 'right'\ndef many(a, b): return 5\ndef nan(a, b): return float('nan')\n"
        "def none(a, b): pass\ndef raises(a, b): return {}['x']\ndef one(a): return 1\n"
    )
    with pytest.raises(ConfigError) as caught:
        grader(tmp_path, "5", name)
    assert WRONG_FUNCTIONS[name] in str(caught.value)


def test_a_module_that_cannot_be_imported(module, tmp_path):
    module("1 / 0")
    with pytest.raises(AceBenchError, match="my_grading cannot be imported: ZeroDivisionError"):
        grader(tmp_path, "5", "python:my_grading.f")


def test_a_function_that_raises_on_an_answer_is_a_fault_of_the_task(module, tmp_path):
    module("def picky(answer, gold):\n    assert answer == gold\n    return 1\n")
    grade = grader(tmp_path, "5", "python:my_grading.picky")
    with pytest.raises(RolloutFault) as caught:
        grade("6")
    assert caught.value.fault.owner == "task"
    assert "raised AssertionError" in caught.value.fault.message
