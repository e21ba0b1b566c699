"""Graders by name: what is right, what is wrong, and data they cannot use."""

import sys

import pytest

from ace_bench.core.errors import ConfigError, DataError
from tests.outcomes import outcomes_by_name
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


LONG = ["1" * 100_000, "1," * 50_000, "(" * 100_000, "answer" + " " * 100_000 + "x", "[" * 100_000, "\ud83d", "\x00"]

CHOSEN = [
    "B",
    "b",
    "(B)",
    "B.",
    "**B**",
    "B. Paris",
    "B) paris",
    "Paris",
    "The answer is (B).",
    "Option B",
    "A",
    "D",
    "A. Paris",
    "A or B",
    "Lyon or Paris",
    "B. Lyon",
    "the answer is A or B",
    "Bordeaux",
    "1",
]
"""Answers to a question with OPTIONS, the same for each way to write the reference."""


# Grader, its settings, the reference, and answers with their points; no answer and hostile ones are wrong everywhere.
GRADERS = {
    "grades": [
        (
            "exact",
            {},
            "The Café, Paris",
            [" the  café, paris ", "The Cafe, Paris", "Café Paris", "The Café, Parisian"],
        ),
        (
            "exact",
            LENIENT,
            "The Café, Paris",
            ["cafe paris", "a café... Paris!", "cafe of paris"],
        ),
        (
            "exact",
            STRICT,
            "The Café, Paris",
            ["The Café, Paris", "the Café, Paris", "The Café,  Paris"],
        ),
        ("exact", {"ignore": {"punctuation": True}}, "?!", ["?!", "!", "."]),
        ("exact", {}, ["NYC", "New York"], ["nyc", "New York", "York"]),
        ("exact", {}, 2.0, ["2", "2.0"]),
        (
            "numeric",
            {},
            "1,234.5",
            [
                "1234.5",
                "$1,234.50",
                "1234.5.",
                "1.2345e3",
                "The total is 1,234.5 dollars.",
                "+1234.5",
                "USD 1234.5",
                "1234",
                "12345",
                "1,23,4.5",
                "1234.5 or 7",
                "one",
                "nan",
                "inf",
                "1e999",
                "1234.5.6",
                "v1234.5",
            ],
        ),
        ("numeric", {}, -7, ["−7", "(7)", "-$7", "$-7", "(-7)", "7", "(7", "7)", "(+7)"]),
        ("numeric", {}, "12%", ["12%", "12", "0.12", "12 %", "0.12%", "1200"]),
        ("numeric", {}, "0.5", ["50%", "0.5", ".5", "50"]),
        ("numeric", {"tolerance": {"relative": 0.01}}, 200, ["202", "198", "202.1"]),
        ("numeric", {"tolerance": {"absolute": 0.5}}, 0, ["0.5", "-0.6"]),
        (
            "choice",
            OPTIONS,
            "B",
            CHOSEN,
        ),
        (
            "choice",
            OPTIONS,
            "b",
            CHOSEN,
        ),
        (
            "choice",
            OPTIONS,
            "Paris",
            CHOSEN,
        ),
        (
            "choice",
            OPTIONS,
            "paris ",
            CHOSEN,
        ),
        (
            "choice",
            OPTIONS,
            1,
            CHOSEN,
        ),
        (
            "choice",
            OPTIONS,
            [0, "C"],
            ["A", "c", "lyon", "C) Nice", "B", "D. Nice", "E"],
        ),
        ("contains", {}, "no", ["The answer is No.", "I know", "nope"]),
        ("contains", {}, ["no", "never again"], ["Never  again, I say", "never, again"]),
        ("contains", {}, "C++", ["I use C++.", "C+"]),
        ("f1", {}, ["the red cat", "a dog"], ["A red cat!", "The dog.", "bird"]),
        ("judge", {}, "5", ["5"]),
    ],
    # References that a grader cannot use, and functions that cannot grade.
    "grader": [
        ("exact", {}, [None, ""]),
        ("numeric", {}, "many"),
        ("choice", OPTIONS, "Rome"),
        ("choice", OPTIONS, "D"),
        ("choice", OPTIONS, "@"),
        ("choice", OPTIONS, 3),
        ("choice", OPTIONS, -1),
        ("choice", OPTIONS, True),
        ("choice", {}, "B"),
        # Functions of a module that cannot grade.
        ("python:my_grading.nothing", {}, "5"),
        ("python:my_grading.number", {}, "5"),
        ("python:no_such_module.f", {}, "5"),
        ("python:f", {}, "5"),
        ("python:my_grading.words", {}, "5"),
        ("python:my_grading.many", {}, "5"),
        ("python:my_grading.nan", {}, "5"),
        ("python:my_grading.none", {}, "5"),
        ("python:my_grading.raises", {}, "5"),
        ("python:my_grading.one", {}, "5"),
        ("likeness", {}, "5"),
    ],
}


def test_what_each_grader_counts_and_what_it_cannot_use_is_as_recorded(snapshot, tmp_path, module):
    module(FUNCTIONS)

    def grade_all(case):
        """Points of each answer; no answer is wrong everywhere, and so is a hostile one, which never raises."""
        name, settings, reference, answers = case
        grade = grader(tmp_path, reference, name, **settings)
        assert {grade(answer).score for answer in (None, "", " \n", *LONG)} == {0}
        return {answer: grade(answer).score for answer in answers}, grade(None).gold

    cases = {"grades": grade_all, "grader": lambda case: grader(tmp_path, case[2], case[0], **case[1])}
    assert outcomes_by_name(cases, GRADERS, {str(tmp_path): "FOLDER"}) == snapshot


def test_f1_counts_common_words_and_pass_from_decides(tmp_path):
    grade = grader(tmp_path, ["the red cat", "a dog"], "f1", pass_from=0.6)
    assert grade("red dog").score == pytest.approx(2 / 3)
    assert [grade(answer).correct for answer in ("red dog", "a red big bad cat", "bird")] == [True, True, False]
    assert [grader(tmp_path, "the", "f1")(answer).score for answer in ("the", "cat")] == [1, 0]


UNSEEN = "\ufeff{0}\u200b", "\u200f{0}\u00ad", "\u3000{0}\u00a0", "{0}\u2060\r\n"
"""What surrounds an answer that looks the same."""


@pytest.mark.parametrize(
    ("name", "reference", "wide", "wrong"),
    [
        ("exact", "Café 12", "Ｃafe\u0301\u00a0１２", "Cafe 12"),
        ("contains", "Café 12", "it is Ｃafe\u0301\u2009１２!", "it is Café 123"),
        ("numeric", "12.5", "１２．５", "13"),
        ("choice", "red", "Ｂ", "Ａ"),
        ("f1", "Café 12", "“Cafe\u0301” １２。", "tea"),
        ("judge", "Café 12", "Cafe\u0301 １２", "Cafe 12"),
    ],
)
def test_what_nobody_sees_decides_in_no_grader(name, reference, wide, wrong, tmp_path):
    columns = {"row": {"options": ["blue", "r\u200bed"]}, "choices": "options"} if name == "choice" else {}
    for form in ("{0}", *UNSEEN):
        grade = grader(tmp_path, form.format(reference), name, **dict(columns))
        answers = [reference, wide, *(one.format(reference) for one in UNSEEN)]
        assert [grade(answer).score for answer in answers] == [1] * len(answers), (form, answers)
        assert grade(wrong).score == 0


def test_case_still_decides_where_it_should(tmp_path):
    grade = grader(tmp_path, "US", "contains", **STRICT)
    assert [grade(answer).score for answer in ("the ＵＳ", "the us")] == [1, 0]


def test_accents_are_ignored_and_voices_and_vowel_signs_are_not(tmp_path):
    for reference, same, other in (("café", "cafe", "cafd"), ("がく", "がく", "かく"), ("กำ", "กำ", "ก")):
        grade = grader(tmp_path, reference, **LENIENT)
        assert [grade(answer).score for answer in (same, other)] == [1, 0]


@pytest.mark.parametrize("reference", ["AB", "option 27", 27])
def test_options_have_letters_beyond_z(reference, tmp_path):
    options = {"row": {"options": [f"option {place}" for place in range(60)]}, "choices": "options"}
    grade = grader(tmp_path, reference, "choice", **options)
    right = ("AB", "ab", "(AB)", "AB.", "AB) option 27", "option 27", "The answer is AB.", "ＡＢ")
    assert [grade(answer).score for answer in right] == [1] * len(right)
    wrong = ("A", "B", "AA", "[", "AB. option 28", "option 2", "the answer is AB or AC", "ABCD", "no")
    assert [grade(answer).score for answer in wrong] == [0] * len(wrong)
    assert grade(None).gold == "AB. option 27"


def test_f1_counts_the_words_of_all_scripts(tmp_path):
    assert grader(tmp_path, "北京", "f1")("北京。").score == 1
    assert grader(tmp_path, "北京", "f1")("答案是北京").score == pytest.approx(4 / 7)


def test_an_answer_that_nobody_sees_is_missing(tmp_path):
    with pytest.raises(DataError, match="none of 1 rows have an answer"):
        grader(tmp_path, "\u200b", "contains")


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


def test_a_module_that_cannot_be_imported(module, tmp_path):
    module("1 / 0")
    with pytest.raises(ConfigError, match="my_grading cannot be imported: ZeroDivisionError"):
        grader(tmp_path, "5", "python:my_grading.f")


def test_answers_that_are_one_of_a_few_labels_are_counted_right_or_wrong(tmp_path):
    rows = [{"question": f"q{number}", "answer": ("red", "green")[number % 2]} for number in range(4)]
    task = made(write(tmp_path / "labels.jsonl", rows), split_ratio={"train": 0, "val": 0, "test": 1})
    answers = ("RED ", "red", "blue", None)
    grades = []
    for sample, answer in zip(task.samples("test"), answers, strict=True):
        with task.open(sample) as session:
            grades.append(session.grade(answer))
    assert task.score(grades)["in_form"] == 50.0
    assert task.score([task.failing_grade(task.samples("test")[0])])["in_form"] == 0.0
    other = made(write(tmp_path / "texts.jsonl", rows[:3]), split_ratio={"train": 0, "val": 0, "test": 1})
    assert "in_form" not in other.score(grades)
