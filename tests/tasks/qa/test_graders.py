"""Graders by name: what is right, what is wrong, and data they cannot use."""

import sys

import pytest

from ace_bench.core.errors import ConfigError, DataError, RolloutFault
from tests.tasks.qa.making import made, write

OPTIONS = {"row": {"options": ["Lyon", "Paris", "Nice"]}, "choices": "options"}
LENIENT = {"ignore": {"punctuation": True, "articles": True, "accents": True}}
STRICT = {"ignore": {"case": False, "whitespace": False}}


def grader(tmp_path, answer, grader="exact", **settings):
    """A function that grades answers to one question."""
    path = write(tmp_path / "one.jsonl", [{"question": "What?", "answer": answer, **settings.pop("row", {})}])
    task = made(path, grader=grader, split_ratio={"train": 0, "val": 0, "test": 1}, **settings)
    (sample,) = task.samples("test")

    def grade(given):
        with task.open(sample) as session:
            return session.grade(given)

    return grade


NUMBERS = ["1234.5", "$1,234.50", "1234.5.", "1.2345e3", "The total is 1,234.5 dollars.", "+1234.5", "USD 1234.5"]
NO_NUMBERS = ["1234", "12345", "1,23,4.5", "1234.5 or 7", "one", "nan", "inf", "1e999", "1234.5.6", "v1234.5"]
CHOSEN = ["B", "b", "(B)", "B.", "**B**", "B. Paris", "B) paris", "Paris", "The answer is (B).", "Option B"]
NOT_CHOSEN = ["A", "D", "A. Paris", "A or B", "Lyon or Paris", "B. Lyon", "the answer is A or B", "Bordeaux", "1"]
JSON = {"a": [1, 2.0], "b": True}
IS_JSON = ['{"b": true, "a": [1.0, 2]}', '```json\n{"a": [1, 2], "b": true}\n```']
NO_JSON = ['{"a": [2, 1], "b": true}', '{"a": [1, 2], "b": 1}', '{"a": [1, 2]}', "{", "[" * 100_000, "NaN"]
GRADED = [  # grader, settings, reference, right answers, wrong answers
    ("exact", {}, "The Café, Paris", [" the  café, paris "], ["The Cafe, Paris", "Café Paris", "The Café, Parisian"]),
    ("exact", LENIENT, "The Café, Paris", ["cafe paris", "a café... Paris!"], ["cafe of paris"]),
    ("exact", STRICT, "The Café, Paris", ["The Café, Paris"], ["the Café, Paris", "The Café,  Paris"]),
    ("exact", {"ignore": {"punctuation": True}}, "?!", ["?!"], ["!", "."]),
    ("exact", {}, ["NYC", "New York"], ["nyc", "New York"], ["York"]),
    ("exact", {}, 2.0, ["2"], ["2.0"]),
    ("numeric", {}, "1,234.5", NUMBERS, NO_NUMBERS),
    ("numeric", {}, -7, ["−7", "(7)", "-$7", "$-7", "(-7)"], ["7", "(7", "7)", "(+7)"]),
    ("numeric", {}, "12%", ["12%", "12", "0.12", "12 %"], ["0.12%", "1200"]),
    ("numeric", {}, "0.5", ["50%", "0.5", ".5"], ["50"]),
    ("numeric", {"tolerance": {"relative": 0.01}}, 200, ["202", "198"], ["202.1"]),
    ("numeric", {"tolerance": {"absolute": 0.5}}, 0, ["0.5"], ["-0.6"]),
    *[("choice", OPTIONS, reference, CHOSEN, NOT_CHOSEN) for reference in ("B", "b", "Paris", "paris ", 1)],
    ("choice", OPTIONS, [0, "C"], ["A", "c", "lyon", "C) Nice"], ["B", "D. Nice", "E"]),
    ("contains", {}, "no", ["The answer is No."], ["I know", "nope"]),
    ("contains", {}, ["no", "never again"], ["Never  again, I say"], ["never, again"]),
    ("contains", {}, "C++", ["I use C++."], ["C+"]),
    ("regex", {}, r"^\d{4}-\d\d$", ["2024-05", r"^\d{4}-\d\d$"], ["in 2024-05"]),
    ("f1", {}, ["the red cat", "a dog"], ["A red cat!", "The dog."], ["bird"]),
    ("json", {}, JSON, IS_JSON, NO_JSON),
    ("json", {}, [1, 2], ["[1, 2]"], ["1"]),
    ("json", {}, [3], ["[3]"], ["3"]),
    ("json", {}, [], ["[]"], ["null"]),
    ("json", {}, '"x"', ['"x"'], ["x"]),
    ("judge", {}, "5", ["5"], []),
]
LONG = ["1" * 100_000, "1," * 50_000, "(" * 100_000, "answer" + " " * 100_000 + "x", "[" * 100_000, "\ud83d", "\x00"]


def test_what_each_grader_counts_as_right(tmp_path):
    """Beside the answers of the table, no answer is wrong, and so is a hostile one, which never raises."""
    for name, settings, reference, right, wrong in GRADED:
        grade = grader(tmp_path, reference, name, **settings)
        scores = {answer: grade(answer).score for answer in (*right, *wrong, None, "", " \n", *LONG)}
        assert scores == dict.fromkeys(scores, 0) | dict.fromkeys(right, 1), (name, reference)


def test_the_reference_is_shown_as_text(tmp_path):
    assert grader(tmp_path, 2.0)("2").gold == "2"
    assert grader(tmp_path, 1, "choice", **OPTIONS)("A").gold == "B. Paris"


def test_f1_counts_common_words_and_pass_from_decides(tmp_path):
    grade = grader(tmp_path, ["the red cat", "a dog"], "f1", pass_from=0.6)
    assert grade("red dog").score == pytest.approx(2 / 3)
    assert [grade(answer).correct for answer in ("red dog", "a red big bad cat", "bird")] == [True, True, False]
    assert [grader(tmp_path, "the", "f1")(answer).score for answer in ("the", "cat")] == [1, 0]


def test_a_search_that_takes_long_is_a_fault_of_the_task(tmp_path):
    with pytest.raises(
        RolloutFault, match=r"the pattern '\(a\|aa\)\+\$' was searched for over 1 s in an answer; write"
    ):
        grader(tmp_path, "(a|aa)+$", "regex")("a" * 60 + "b")


@pytest.mark.parametrize(
    ("name", "reference", "settings", "said"),
    [
        ("exact", [None, ""], {}, "line 1: the list of accepted answers is empty"),
        ("numeric", "many", {}, "line 1: the answer 'many' is not one number"),
        *(
            (
                "choice",
                wrong,
                OPTIONS,
                f"line 1: the answer '{said}' is neither one of the 3 choices nor the letter of one",
            )
            for wrong, said in (("Rome", "Rome"), ("D", "D"), ("@", "@"), (3, "3"), (-1, "-1"), (True, "true"))
        ),
        ("choice", "B", {}, r"name their column by task\.choices"),
        ("regex", "(", {}, r"line 1: the answer '\(' is not a regular expression"),
        ("json", "x", {}, "line 1: the answer 'x' is not JSON"),
    ],
)
def test_a_reference_that_a_grader_cannot_use(name, reference, settings, said, tmp_path):
    with pytest.raises(DataError, match=said):
        grader(tmp_path, reference, name, **settings)


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
    assert [grade(answer).score for answer in ("ab", "xyz", None)] == [0.5, 0, 0]
    assert [grade(answer).correct for answer in ("ab", "dcba")] == [False, True]
    assert sys.path == before


FUNCTIONS = """
number = 5
def words(a, b): return 'right'
def many(a, b): return 1.5
def nan(a, b): return float('nan')
def none(a, b): pass
def raises(a, b): return {}['x']
def one(a): return 1
"""
WRONG_FUNCTIONS = {
    "python:my_grading.nothing": "module my_grading has no function nothing",
    "python:my_grading.number": "is a int, not a function",
    "python:no_such_module.f": "no_such_module cannot be imported: ModuleNotFoundError",
    "python:f": "must name a function: python:MODULE.FUNCTION",
    "python:my_grading.words": "returned 'right'; it must return true, false, or a number from 0 to 1",
    "python:my_grading.many": "returned 1.5; it must return",
    "python:my_grading.nan": "returned nan; it must return",
    "python:my_grading.none": "returned None; it must return",
    "python:my_grading.raises": "raised KeyError: 'x' (tried on the reference answer of ",
    "python:my_grading.one": "raised TypeError",
    "likeness": "grader=likeness must be one of exact, numeric, choice, contains, regex, f1, json, judge, or python:",
}


@pytest.mark.parametrize("name", WRONG_FUNCTIONS)
def test_a_function_that_cannot_grade_is_refused_at_once(name, module, tmp_path):
    module(FUNCTIONS)
    with pytest.raises(ConfigError) as caught:
        grader(tmp_path, "5", name)
    assert WRONG_FUNCTIONS[name] in str(caught.value)


def test_a_module_that_cannot_be_imported(module, tmp_path):
    module("1 / 0")
    with pytest.raises(ConfigError, match="my_grading cannot be imported: ZeroDivisionError"):
        grader(tmp_path, "5", "python:my_grading.f")
