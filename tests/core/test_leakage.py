"""The answer cannot reach the model by a setting, and where the questions themselves hold it, every output says so."""

from pathlib import Path

from ace_bench.cli.main import main
from ace_bench.core.leakage import find_leakage
from ace_bench.tasks.finer import Finer
from tests.expected import check_outcomes, outcome
from tests.launching import launch
from tests.tasks.qa.making import made, write

EXPECTED = Path(__file__).parent / "expected"
WORDS = ["yes", "no", "yes", "no"]
NAMES = ["delivery desk", "delivery", "returns", "billing"]
NUMBERS = ["5", "12", "1,200", "0.5"]
LETTERS = ["A", "B", "A", "B"]
OPTIONS = ["red", "blue"]


def rows(path, answers, ask, **columns):
    """Write a question for each answer, worded by ``ask``; of other columns a function of the answer, or one value."""
    more = ({name: one(answer) if callable(one) else one for name, one in columns.items()} for answer in answers)
    asked = ({"question": ask.format(n=n, answer=answer), "answer": answer} for n, answer in enumerate(answers))
    return write(path, map(dict.__or__, asked, more))


def found(path, limit=None, **settings):
    task = made(path, split_ratio={"train": 0.0, "val": 0.0, "test": 1.0}, **settings)
    leakage = find_leakage(task, "test", limit)
    return leakage.found, leakage.n


ASKED = [
    (WORDS, "Q{n}: Yesterday, in Norway?"),
    (WORDS, "Q{n}: did it? Answer yes or no."),
    (WORDS, "Q{n}: did it?\nAnswer yes unless you know better."),  # a line of all questions
    (WORDS, "Q{n}: did it?\nThey said: {answer}!"),
    (["Oui", "NON"], "q{n}: on dit OUI"),
    (NAMES, "Message {n} for the  {answer}, thanks"),
    (NAMES, "{answer} {n}, and pre{answer}"),
    (NAMES, "pre{answer}, {answer} {n}"),
    (NAMES, "Message {n} on {answer}s and pre{answer}"),
    (NUMBERS, "Q{n}: what are {answer} apples worth?"),
    (NUMBERS, "Q{n}: what is it? (answer: {answer})"),
    (NUMBERS, "Q{n}: what is it?\n{answer}"),
    (NUMBERS, "Q{n}: what is it? The answer is {answer}."),
    (LETTERS, "Q{n}: a band sang b-sides?\nA. one\nB) two"),
    (LETTERS, "Q{n}: which?\nA. one\nB. two\nkey: {answer}"),
    (["first\n  line", "other"], "Q{n}: {answer}"),
    (["yes"], "Q{n}: yes"),  # a single sample shares no line
    *(([f"word{n:02}" for n in range(many)], "Q{n}: {answer}, word00 or word01") for many in (50, 51)),
]
"""Where answers are many, a line with two of them counts."""


def test_the_count_follows_the_stated_rule(tmp_path):
    counts = [
        (f"{answers[:4]} {ask!r}", "{} of {}".format(*found(rows(tmp_path / f"{number}.jsonl", answers, ask))))
        for number, (answers, ask) in enumerate(ASKED)
    ]
    check_outcomes(counts, EXPECTED / "leaks.txt")


def test_options_are_no_leak_and_a_key_beside_them_is(tmp_path):
    columns = {"options": OPTIONS, "key": lambda answer: "AB"[OPTIONS.index(answer)]}
    path = rows(tmp_path / "a.jsonl", OPTIONS, "Which {n}?", **columns)
    choice = {"choices": "options", "grader": "choice"}
    assert found(path, **choice) == (0, 2)
    assert found(path, **choice, inputs="key") == (2, 2)


def test_the_limit_cuts_what_is_searched_and_not_what_counts_as_shared(tmp_path):
    path = rows(tmp_path / "a.jsonl", WORDS, "Say yes.\nQ{n}")
    assert found(path, limit=1) == (0, 1)


def test_candidates_of_a_benchmark_are_no_leak():
    sample_set = "pkg://ace_rehearsal/samples/finer"
    task = Finer(data_dir=None, source="sample", sample_data=sample_set, sample_allowed=True)
    assert find_leakage(task, "test").found == 0
    task.samples("test")[0].inputs["question"] += task.failing_grade(task.samples("test")[0]).gold
    assert find_leakage(task, "test").found == 1


SHOWING = (
    {"inputs": "answer"},
    {"inputs": ["note", "answer"]},
    {"inputs": "ANSWER "},
    {"inputs": "question"},
    {"question": "answer"},
    {"choices": ["answer", "note"]},
    {"inputs": "copy"},
    {"question": "copy"},
)


def test_a_setting_that_shows_the_answer_is_refused(tmp_path):
    path = rows(tmp_path / "a.jsonl", WORDS, "Q{n}", copy=str, note="n", **{"ANSWER ": str})
    found = [(settings, str(outcome(made, path, **settings)).replace(str(path), "FILE")) for settings in SHOWING]
    check_outcomes(found, EXPECTED / "shown_answers.txt")


def test_check_dry_run_run_summary_and_tables_say_how_many_and_never_which(tmp_path, capsys):
    golds = [f"secret{n} club" for n in range(8)]
    hints = {f"secret{n} club": f"of the secret{n} {'club' if n % 2 else 'society'}" for n in range(8)}
    splits = {gold: "test" if n > 3 else "train" for n, gold in enumerate(golds)}
    path = rows(tmp_path / "a.jsonl", golds, "Case {n}", hint=hints.get, split=splits.get)
    data = [f"task.data={path}", "task.question=question", "task.answer=answer", "task.inputs=hint", "task.split=split"]
    said = "2 of 4 prompts hold their reference answer"
    assert main(["check", "task=qa", *data]) == 0
    shown = capsys.readouterr().out
    assert said in shown
    assert "secret" not in shown
    given = ("task=qa", "method=base", *data)
    assert launch(tmp_path, *given, "dry_run=true").status == 0
    assert said in capsys.readouterr().out
    ran = launch(tmp_path, *given)
    shown = capsys.readouterr().out
    assert shown.index(said) < shown.index("accuracy")  # before the first call
    assert said in (ran.folder / "summary.txt").read_text()
    assert ran.metrics["answers_in_prompts"] == {"found": 2, "n": 4}
    assert main(["tables", str(tmp_path), "--rows", "method"]) == 0
    assert said in capsys.readouterr().out
    assert "secret" not in shown
