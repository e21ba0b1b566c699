"""Checks of what results mean, on runs of the embedded backbone and on models that know the answers."""

import csv
import io
from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ace_bench.api import load_run, load_runs
from ace_validity import command
from ace_validity.asking import Contamination, Judges, kappa
from ace_validity.planning import Request, move_words
from ace_validity.variance import components
from tests import expected
from tests.launching import launch

SMALL = ("task.source=sample", "limit={train: 8, val: 6, test: 12}", "mode.epochs=1", "mode.before=false")
OPTIONS = {"to": [], "other": None, "judge": [], "samplings": 1, "sizes": [4], "base": "base"}


@pytest.fixture
def check(tmp_path, capsys):
    """Runs the command in a folder of its own; returns status, table by first cell, and what was printed."""

    def run(*arguments):
        out = tmp_path / "table.csv"
        out.unlink(missing_ok=True)
        status = command.main([*arguments, *SMALL, f"results={tmp_path}", "--out", str(out)])
        rows = [[*row.values()] for row in csv.DictReader(io.StringIO(out.read_text()))] if out.exists() else []
        return status, {row[0]: row[1:] for row in rows}, capsys.readouterr()

    return run


def test_a_method_without_a_playbook_is_refused_before_its_first_run(check, tmp_path):
    for kind in (("placebo",), ("transfer", "--to", "task=formula")):
        assert "method=base learns no playbook" in check(*kind, "task=finer", "method=base")[2].err
        assert "name a target" in check("transfer", "task=finer")[2].err
    assert not [*tmp_path.iterdir()]


CHECKS = {
    "curve": ("task=formula", "--sizes", "2,8", "seed=0,1"),
    "stream": ("task=formula", "seed=0,1,2"),
    "transfer": ("task=formula", "seed=0", "--to", "backbone=embedded backbone.attention=1"),
    "placebo": ("task=formula", "seed=0"),
    "variance": ("task=formula", "seed=0,1"),
}


@pytest.mark.parametrize(
    "kind", [kind if kind == "stream" else pytest.param(kind, marks=pytest.mark.slow) for kind in CHECKS]
)
def test_runs_are_shown_first_and_a_finished_check_costs_nothing(kind, check, tmp_path):
    """What is printed is compared as a whole: the plan, its cost, the table, and the cost once all is done."""
    words, steps = (kind, *CHECKS[kind]), []
    for options in (("--dry-run",), ("--estimate",), (), ("--estimate",)) if kind == "curve" else ((),):
        status, table, said = check(*words, *options)
        assert (status, bool(table), said.err if options else "") == (0, not options, "")
        assert options or [*tmp_path.glob("validity/*/*/*/metrics.json")]
        steps.append(said.out.replace(str(tmp_path), "RESULTS"))
    expected.check("\n".join(steps), Path(__file__).with_name("expected") / f"{kind}.txt")
    assert check(*words)[2].err == "", "no run was made again"


@pytest.mark.slow
def test_a_placebo_keeps_the_size_and_takes_the_meaning(check, tmp_path):
    status, table, _ = check("placebo", "task=finer", "seed=0", "--other", "formula")
    assert status == 0
    learned = float(table["learned"][1])
    for name in ("shuffled words", "neutral text", "playbook of formula", "empty playbook"):
        assert float(table[name][1]) < learned
        assert float(table[name][3]) == pytest.approx(learned - float(table[name][1]), abs=0.11)
    books = {run.settings["method"]["context"]: run.playbook for run in load_runs(tmp_path, "method=frozen")}
    shapes = Counter(tuple(len(one.content.split()) for one in book.bullets) for book in books.values())
    assert max(shapes.values()) == 3, "learned, shuffled and neutral have the same words per bullet"
    words = Counter(tuple(sorted(w for one in book.bullets for w in one.content.split())) for book in books.values())
    assert max(words.values()) == 3, "learned, shuffled and scattered have the same words"


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (("placebo", "--other", "formula"), 2 + 2 + 2 * 5 + 1),
        (("transfer", "--to", "task=formula", "--to", "backbone=embedded backbone.attention=1"), 2 + 3 * 3),
        (("variance", "--samplings", "3", "backbone=openai_compatible", "backbone.sampling.temperature=1"), 6),
        (("judges", "--judge", "backbone.attention=1"), 3),
    ],
)
def test_a_check_plans_each_run_once(words, runs, check):
    settings = ("backbone.model=m", "seed=0,1") if "variance" in words else ("seed=0,1",)
    said = check(*words, "task=finer", *settings, "--dry-run")[2]
    assert said.out.count("ace-bench run") == runs, said


def test_settings_of_a_task_that_do_not_go_to_another_one_are_named():
    words = {"task": "finer", "task.source": "sample", "task.x": "1", "backbone.model": "m", "seed": "0"}
    found, left_out = move_words(words, {"task": "formula"})
    assert found == {"task": "formula", "task.source": "sample", "backbone.model": "m", "seed": "0"}
    assert left_out == " Not used with task=formula, which has settings of its own: task.x=1."
    found, left_out = move_words(words, {"backbone": "vllm", "backbone.model": "n"})
    assert found == {**words, "backbone": "vllm", "backbone.model": "n"}
    assert left_out == "", "it is set anew"


def test_parts_of_variance_are_those_that_were_planted():
    rng = np.random.default_rng(0)
    orders, items = rng.normal(0, 3, 5), rng.normal(0, 20, 40)
    planted = orders[:, None, None] + items[None, None, :] + np.zeros((5, 3, 40))
    found = {one.name: one for one in components(planted, ("order", "sampling", "items"))}
    assert found["order"].variance == pytest.approx(orders.var(ddof=1))
    assert found["items"].variance == pytest.approx(items.var(ddof=1) / 40)
    assert found["order"].df == pytest.approx(4)
    assert sum(abs(one.variance) for one in found.values()) == pytest.approx(
        found["order"].variance + found["items"].variance
    )
    noisy = planted + rng.normal(0, 8, planted.shape)
    found = {one.name: one.variance for one in components(noisy, ("order", "sampling", "items"))}
    assert found["order x sampling x items"] == pytest.approx(64 / 40, rel=0.25)
    noise = {one.name: one.variance for one in components(noisy - planted, ("order", "sampling", "items"))}
    assert abs(noise["items"] * 40) < 5, "noise of 64 among 15 runs an item is not taken for items"
    assert [one.name for one in components(planted[:, :1], ("order", "sampling", "items"))] == [
        "order", "items", "order x items",
    ]  # fmt: skip


@pytest.mark.slow
def test_parts_of_variance_are_shares_of_one(check):
    status, table, _ = check("variance", "task=finer", "seed=0,1,2")
    assert status == 0
    assert sum(float(row[2].rstrip("%")) for row in table.values()) == pytest.approx(100, abs=2)


def test_kappa_is_the_textbooks():
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    assert kappa(pairs) == pytest.approx(0.4)  # https://en.wikipedia.org/wiki/Cohen's_kappa#Simple_example
    assert kappa([(True, True), (True, False)]) is None


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
        words = {**planned.words, **derived}
        file = words.get("task.data", "").removeprefix("{test: ").removesuffix("}")
        rows = [msgspec.json.decode(line) for line in Path(file).read_text().splitlines()] if file else []
        known = {row["question"]: row["answer"] for row in rows if knows(row)}
        wrap = (lambda inner: Knowing(inner, known)) if file else None
        return load_run(launch(folder, *(f"{key}={value}" for key, value in words.items()), backbone=wrap).folder)

    return make


def request(folder, *words, **options):
    return Request.read([*words, *SMALL[:2], f"results={folder}"], {**OPTIONS, **options})


@pytest.mark.slow
def test_a_model_that_knows_the_test_set_is_found_out(tmp_path):
    study = Contamination(request(tmp_path, "task=finer,formula", "seed=0"))
    rows = [*study.rows(made_by(tmp_path, lambda row: "begins" in row["question"]))]
    assert all(excess == pytest.approx(own - chance, abs=0.11) for _, _, _, own, chance, excess, *_ in rows)
    found = {(task, probe): (own, chance, float(width.split()[0])) for task, probe, _, own, chance, _, width, _ in rows}
    assert len(found) == 6
    for (_, probe), (own, _, low) in found.items():
        known = probe != "answers by number"
        assert (own > 50, low > 0) == (known, known), (probe, own)
    assert found["formula", "answers from a quarter"][1] < 5, "numbers of other questions are other numbers"


def test_judges_are_compared_with_grading_with_each_other_and_with_the_methods_own(tmp_path):
    settings = ("task=formula", "method=reasoning_bank", "labels=none", "mode=online", "limit={test: 8}", "seed=0,1")
    study = Judges(Request.read([*settings, *SMALL[:1], f"results={tmp_path}"], OPTIONS))
    rows = {row[:2]: row for row in study.rows(made_by(tmp_path, lambda _: True))}
    own = rows.pop(("the method's own", "grading"))
    assert set(rows) == {("seed=0", "grading"), ("seed=1", "grading"), ("seed=0", "seed=1")}
    assert all(row[4:6] == ("100%", 1.0) for row in rows.values()), "a judge who knows the grades agrees"
    (run,) = load_runs(tmp_path, "method=reasoning_bank")
    lines = map(msgspec.json.decode, (run.folder / "journal.jsonl").read_text().splitlines())
    said = [event["event"] for line in lines for event in line.get("events", ()) if "judged" in event["event"]]
    assert (own[2], own[3]) == (8, f"{100 * said.count('judged_success') / 8:.0f}%")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["curve", "finer"], "KEY=VALUE"),
        (["curve", "seed=x"], "seed=x must be whole numbers"),
        (["curve", "limit={"], "limit must be a number"),
        (["variance", "--samplings", "2"], "replies are not sampled"),
    ],
)
def test_mistakes_name_the_fix(words, says, capsys):
    assert command.main([*words, "--dry-run"]) == 2
    assert says in capsys.readouterr().err
