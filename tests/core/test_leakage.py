"""The answer cannot reach the model by a setting, and where the questions themselves hold it, every output says so."""

import json

from ace_bench.cli.main import main
from ace_bench.core.leakage import find_leakage
from ace_bench.tasks.finer import Finer
from tests.launching import launch
from tests.outcomes import outcome, outcomes
from tests.tasks.qa.making import made, write

WORDS = ["yes", "no", "yes", "no"]
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


def leaks_in(case, folder):
    """Count the prompts that hold their answers; a case is the wording of questions, and their answers."""
    ask, *answers = json.loads(case)
    return "{} of {}".format(*found(rows(folder / "a.jsonl", answers, ask)))


LEAKS = [
    '["Q{n}: Yesterday, in Norway?", "yes", "no", "yes", "no"]',
    '["Q{n}: did it? Answer yes or no.", "yes", "no", "yes", "no"]',
    '["Q{n}: did it?\\nAnswer yes unless you know better.", "yes", "no", "yes", "no"]',
    '["Q{n}: did it?\\nThey said: {answer}!", "yes", "no", "yes", "no"]',
    '["q{n}: on dit OUI", "Oui", "NON"]',
    '["Message {n} for the  {answer}, thanks", "delivery desk", "delivery", "returns", "billing"]',
    '["{answer} {n}, and pre{answer}", "delivery desk", "delivery", "returns", "billing"]',
    '["pre{answer}, {answer} {n}", "delivery desk", "delivery", "returns", "billing"]',
    '["Message {n} on {answer}s and pre{answer}", "delivery desk", "delivery", "returns", "billing"]',
    '["Q{n}: what are {answer} apples worth?", "5", "12", "1,200", "0.5"]',
    '["Q{n}: what is it? (answer: {answer})", "5", "12", "1,200", "0.5"]',
    '["Q{n}: what is it?\\n{answer}", "5", "12", "1,200", "0.5"]',
    '["Q{n}: what is it? The answer is {answer}.", "5", "12", "1,200", "0.5"]',
    '["Q{n}: a band sang b-sides?\\nA. one\\nB) two", "A", "B", "A", "B"]',
    '["Q{n}: which?\\nA. one\\nB. two\\nkey: {answer}", "A", "B", "A", "B"]',
    '["Q{n}: {answer}", "first\\n  line", "other"]',
    '["Q{n}: yes", "yes"]',
]


def test_the_count_follows_the_stated_rule(snapshot, tmp_path):
    assert outcomes(lambda case: leaks_in(case, tmp_path), LEAKS) == snapshot
    for different, leaks in ((50, "0 of 50"), (51, "51 of 51")):  # where answers are many, a line with two counts
        case = ["Q{n}: {answer}, word00 or word01", *(f"word{n:02}" for n in range(different))]
        assert leaks_in(json.dumps(case), tmp_path) == leaks


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
    sample_set = "pkg://ace_bench/tasks/samples/finer"
    task = Finer(data_dir=None, source="sample", sample_data=sample_set, sample_allowed=True)
    assert find_leakage(task, "test").found == 0
    task.samples("test")[0].inputs["question"] += task.failing_grade(task.samples("test")[0]).gold
    assert find_leakage(task, "test").found == 1


SHOWN_ANSWERS = [
    '{"inputs": "answer"}',
    '{"inputs": ["note", "answer"]}',
    '{"inputs": "ANSWER "}',
    '{"inputs": "question"}',
    '{"question": "answer"}',
    '{"choices": ["answer", "note"]}',
    '{"inputs": "copy"}',
    '{"question": "copy"}',
]


def test_a_setting_that_shows_the_answer_is_refused(snapshot, tmp_path):
    path = rows(tmp_path / "a.jsonl", WORDS, "Q{n}", copy=str, note="n", **{"ANSWER ": str})

    def refused(case):
        return str(outcome(made, path, **json.loads(case))).replace(str(path), "FILE")

    assert outcomes(refused, SHOWN_ANSWERS) == snapshot


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
