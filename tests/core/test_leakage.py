"""The answer cannot reach the model by a setting, and where the questions themselves hold it, every output says so."""

import pytest

from ace_bench.cli.main import main
from ace_bench.core.errors import AceBenchError
from ace_bench.core.leakage import find_leakage
from ace_bench.tasks.finer import Finer
from tests.launching import launch
from tests.tasks.qa.making import made, write

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


@pytest.mark.parametrize(
    ("answers", "ask", "leaks"),
    [
        (WORDS, "Q{n}: Yesterday, in Norway?", 0),
        (WORDS, "Q{n}: did it? Answer yes or no.", 0),
        (WORDS, "Q{n}: did it?\nAnswer yes unless you know better.", 0),  # a line of all questions
        (WORDS, "Q{n}: did it?\nThey said: {answer}!", 4),
        (["Oui", "NON"], "q{n}: on dit OUI", 1),
        (NAMES, "Message {n} for the  {answer}, thanks", 4),
        (NAMES, "{answer} {n}, and pre{answer}", 4),
        (NAMES, "pre{answer}, {answer} {n}", 4),
        (NAMES, "Message {n} on {answer}s and pre{answer}", 0),
        (NUMBERS, "Q{n}: what are {answer} apples worth?", 0),
        (NUMBERS, "Q{n}: what is it? (answer: {answer})", 4),
        (NUMBERS, "Q{n}: what is it?\n{answer}", 4),
        (NUMBERS, "Q{n}: what is it? The answer is {answer}.", 4),
        (LETTERS, "Q{n}: a band sang b-sides?\nA. one\nB) two", 0),
        (LETTERS, "Q{n}: which?\nA. one\nB. two\nkey: {answer}", 4),
        (["first\n  line", "other"], "Q{n}: {answer}", 2),
    ],
)
def test_the_count_follows_the_stated_rule(answers, ask, leaks, tmp_path):
    assert found(rows(tmp_path / "a.jsonl", answers, ask)) == (leaks, len(answers))


@pytest.mark.parametrize(("different", "leaks"), [(50, 0), (51, 51)])
def test_a_line_with_two_answers_counts_where_answers_are_many(different, leaks, tmp_path):
    answers = [f"word{n:02}" for n in range(different)]
    assert found(rows(tmp_path / "a.jsonl", answers, "Q{n}: {answer}, word00 or word01")) == (leaks, different)


def test_a_single_sample_shares_no_line(tmp_path):
    assert found(rows(tmp_path / "a.jsonl", ["yes"], "Q{n}: yes")) == (1, 1)


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


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"inputs": "answer"}, "task.inputs=answer names the column of task.answer=answer"),
        ({"inputs": ["note", "answer"]}, "task.inputs=answer names the column of task.answer=answer"),
        ({"inputs": "ANSWER "}, "task.inputs=ANSWER  names the column of task.answer=answer"),
        ({"inputs": "question"}, "task.inputs=question names the column of task.question=question"),
        ({"question": "answer"}, "task.question=answer names the column of task.answer=answer"),
        ({"choices": ["answer", "note"]}, "task.choices=answer names the column of task.answer=answer"),
        ({"inputs": "copy"}, "column copy equals column answer (task.answer) in all 4 rows"),
        ({"question": "copy"}, "column copy equals column answer (task.answer) in all 4 rows"),
    ],
)
def test_a_setting_that_shows_the_answer_is_refused(settings, said, tmp_path):
    columns = {"copy": str, "note": "n", "ANSWER ": str}
    with pytest.raises(AceBenchError) as caught:
        made(rows(tmp_path / "a.jsonl", WORDS, "Q{n}", **columns), **settings)
    assert said in str(caught.value)


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
