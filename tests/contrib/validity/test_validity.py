"""Checks of what results mean, on runs of the embedded backbone and on models that know the answers."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from ace_bench.api import load_run, load_runs
from ace_bench.contrib.validity import command
from ace_bench.contrib.validity.asking import Contamination
from ace_bench.contrib.validity.planning import Request, move_overrides
from tests.launching import launch

SMALL = ("task.source=sample", "limit={train: 8, val: 6, test: 12}", "mode.epochs=1", "mode.before=false")
OPTIONS = {"to": [], "other": None}


@pytest.fixture
def check(tmp_path, capsys):
    """Runs the command in a folder of its own; returns its status and what was printed."""
    return lambda kind, *words: (command.main([kind, *SMALL, f"results={tmp_path}", *words]), capsys.readouterr())


CHECKS = {
    "transfer": ("task=formula", "seed=0", "--to", "backbone=embedded backbone.attention=1"),
    "placebo": ("task=finer", "seed=0", "--other", "formula"),
}


def printed(words, each_with, check, tmp_path):
    """What calls with these options print. Each ends well, and all but those that make runs say no word of progress."""
    shown = []
    for options in each_with:
        status, said = check(*words, *options)
        assert (status, said.err if options else "") == (0, "")
        assert bool([*tmp_path.glob("validity/*/*/*/metrics.json")]) == (not options or len(shown) > 2)
        shown.append(said.out.replace(str(tmp_path), "RESULTS"))
    return "\n".join(shown)


def check_that_it_costs_nothing(words, text, check, tmp_path):
    """A check that is finished makes no run again, and writes the table that it printed."""
    out = tmp_path / "table.csv"
    assert check(*words, "--out", str(out))[1].err == "", "no run was made again"
    header = next(line for line in text.splitlines() if line.startswith("| "))
    assert out.read_text().splitlines()[0] == header.strip("| ").replace(" | ", ",")


def test_runs_are_shown_first_and_a_finished_check_costs_nothing(snapshot, check, tmp_path):
    """What is printed is compared as a whole: the plan, its cost, the table, and the cost once all is done."""
    words = ("transfer", *CHECKS["transfer"])
    text = printed(words, (("--dry-run",), ("--estimate",), (), ("--estimate",)), check, tmp_path)
    assert text == snapshot
    check_that_it_costs_nothing(words, text, check, tmp_path)


@pytest.mark.slow
def test_placebos_have_the_words_of_what_was_learned(snapshot, check, tmp_path):
    words = ("placebo", *CHECKS["placebo"])
    text = printed(words, ((),), check, tmp_path)
    assert text == snapshot
    check_that_it_costs_nothing(words, text, check, tmp_path)
    books = {run.settings["method"]["context"]: run.playbook for run in load_runs(tmp_path, "method=frozen")}
    sizes = Counter(tuple(len(one.content.split()) for one in book.bullets) for book in books.values())
    assert max(sizes.values()) == 3, "learned, shuffled and neutral have the same words per bullet"
    held = Counter(tuple(sorted(w for one in book.bullets for w in one.content.split())) for book in books.values())
    assert max(held.values()) == 3, "learned, shuffled and scattered have the same words"


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (("placebo", "--other", "formula"), 2 + 2 + 2 * 5 + 1),
        (("transfer", "--to", "task=formula", "--to", "backbone=embedded backbone.attention=1"), 2 + 3 * 3),
        (("contamination", "task=finer,formula"), 2 * 3),
    ],
)
def test_a_check_plans_each_run_once(words, runs, check):
    said = check(*words, "seed=0,1", "--dry-run")[1]
    assert said.out.count("ace-bench run") == runs, said


def test_settings_of_a_task_that_do_not_go_to_another_one_are_named():
    words = {"task": "finer", "task.source": "sample", "task.x": "1", "backbone.model": "m", "seed": "0"}
    found, left_out = move_overrides(words, {"task": "formula"})
    assert found == {"task": "formula", "task.source": "sample", "backbone.model": "m", "seed": "0"}
    assert left_out == " Not used with task=formula, which has settings of its own: task.x=1."
    found, left_out = move_overrides(words, {"backbone": "vllm", "backbone.model": "n"})
    assert found == {**words, "backbone": "vllm", "backbone.model": "n"}
    assert left_out == "", "it is set anew"


class Knowing:
    """A model that replies with the reference where it knows the question."""

    simulated = True
    context_length = None

    def __init__(self, inner, known):
        self._inner = inner
        self._known = known
        self.name, self.identity, self.count = inner.name, inner.identity, inner.count

    def complete(self, messages, **kwargs):
        text = messages[-1].content
        known = next((answer for question, answer in self._known.items() if question in text), "no")
        return replace(self._inner.complete(messages, **kwargs), text=known)


def made_by(folder, knows):
    """Makes planned runs with a model that knows the references of those that ``knows`` accepts."""

    def make(planned):
        derived = planned.derive([make(one) for one in planned.sources]) if planned.derive else {}
        words = {**planned.overrides, **derived}
        file = words.get("task.data", "").removeprefix("{test: ").removesuffix("}")
        rows = [msgspec.json.decode(line) for line in Path(file).read_text().splitlines()] if file else []
        known = {row["question"]: row["answer"] for row in rows if knows(row)}
        wrap = (lambda inner: Knowing(inner, known)) if file else None
        return load_run(launch(folder, *(f"{key}={value}" for key, value in words.items()), backbone=wrap).folder)

    return make


def test_a_model_that_knows_the_test_set_is_found_out(snapshot, tmp_path):
    """It knows questions and answers, not numbers; eleven others are more than the ten of which chance is taken."""
    words = ["task=formula", "seed=0", *SMALL[:2], f"results={tmp_path}"]
    study = Contamination(Request.read(words, OPTIONS))
    rows = study.rows(made_by(tmp_path, lambda row: "begins" in row["question"]))
    assert [", ".join(map(str, row)) for row in rows] == snapshot


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("transfer", "finer"), "KEY=VALUE"),
        (("transfer", "seed=x"), "seed=x must be whole numbers"),
        (("placebo", "method=base"), "method=base learns no playbook"),
        (("transfer", "method=base", "--to", "task=formula"), "method=base learns no playbook"),
        (("transfer",), "name a target"),
    ],
)
def test_mistakes_name_the_fix_before_the_first_run(words, says, check, tmp_path):
    status, said = check(*words)
    assert (status, said.err[:7], says in said.err, [*tmp_path.iterdir()]) == (2, "error: ", True, [])
