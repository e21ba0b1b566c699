"""Checks of what results mean, on runs of the embedded backbone and on models that know the answers."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ace_bench.api import load_run, load_runs
from ace_bench.contrib.validity import command
from ace_bench.contrib.validity.asking import Contamination
from ace_bench.contrib.validity.gains import Placebo
from ace_bench.contrib.validity.planning import Request, move_overrides
from ace_bench.core.errors import ConfigError
from ace_bench.report.statistics import Point
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
        (("contamination", "task=finer,formula"), 2 * 2),
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


class Planted:
    """A model that replies what a function of the prompt's last message says."""

    simulated = True
    context_length = None

    def __init__(self, inner, reply):
        self._inner, self._reply = inner, reply
        self.name, self.identity, self.count = inner.name, inner.identity, inner.count

    def complete(self, messages, **kwargs):
        return replace(self._inner.complete(messages, **kwargs), text=self._reply(messages[-1].content))


def made_by(folder, reply):
    """Makes planned runs with a model of ``MODELS``."""

    def make(planned):
        file = planned.overrides["task.data"].removeprefix("{test: ").removesuffix("}")
        rows = [msgspec.json.decode(line) for line in Path(file).read_text().splitlines()]
        says = partial(reply, {row["question"]: row["answer"] for row in rows})
        words = (f"{key}={value}" for key, value in planned.overrides.items())
        return load_run(launch(folder, *words, backbone=lambda inner: Planted(inner, says)).folder)

    return make


def shown_half(prompt):
    return prompt.partition(" begins:")[2]


def reciting(references, prompt):
    """The reference of the question in a prompt, else the shown half again."""
    return next((answer for question, answer in references.items() if question in prompt), shown_half(prompt) or "no")


def texts_of(references):
    return {question: answer for question, answer in references.items() if "begins" in question}


def answers_of(references):
    return {question: answer for question, answer in references.items() if "begins" not in question}


def halved(references):
    return dict([*references.items()][::2])


MODELS = {
    "repeats the half": lambda _, prompt: shown_half(prompt) * 2,
    "repeats the prompt": lambda _, prompt: f"The question begins: {prompt} And so on.",
    "lists all answers": lambda references, _: " ".join(references.values()),
    "knows texts": lambda references, prompt: reciting(texts_of(references), prompt),
    "knows half of the texts": lambda references, prompt: reciting(halved(texts_of(references)), prompt),
    "knows answers": lambda references, prompt: reciting(answers_of(references), prompt),
}
"""What a model replies, by the references of all questions of a run and its prompt."""


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("task", ["finer", "formula"])
def test_a_model_knows_the_test_set_if_it_recites_what_it_was_not_shown(task, model, tmp_path):
    words = [f"task={task}", "seed=0", "task.source=sample", "limit={test: 30}", f"results={tmp_path}"]
    study = Contamination(Request.read(words, OPTIONS))
    rows = study.corrected_rows(made_by(tmp_path, MODELS[model]))
    (sentence,) = study.verdict(rows)
    assert ("no sign" not in sentence) is model.startswith("knows"), sentence
    for _, _, _, _, interval, _ in (row.cells for row in rows):
        low, high = map(float, interval.split(" to "))
        assert 0 <= low < high <= 100


@dataclass
class Scored:
    """A finished run with planted scores."""

    seed: int
    scores: list[float]
    items: int = 1

    @property
    def metrics(self):
        return {"headline": {"metric": "accuracy"}, "context": {"items": self.items}}

    def points(self, metric):
        return {f"{index:03}": Point(score=score) for index, score in enumerate(self.scores)}


def worlds(study, content, form, count=40, samples=100):
    """Yield the verdicts in worlds where what a playbook says, and its form, solve these shares of the samples."""
    arms = {"learned": study._learned, **study._arms}
    chances = dict.fromkeys(arms, 0.3 + form) | {"empty playbook": 0.3}
    chances |= dict.fromkeys(("learned", "scattered bullets"), 0.3 + form + content)
    for world in range(count):
        rng = np.random.default_rng(world)
        hardness = rng.uniform(size=samples)
        runs = {
            id(planned): Scored(seed, [float(hard < rng.normal(chances[name], 0.02)) for hard in hardness])
            for name, arm in arms.items()
            for seed, planned in enumerate(arm)
        }
        yield [*study.verdict(study.corrected_rows(lambda planned, runs=runs: runs[id(planned)]))]


def test_placebos_of_an_empty_playbook_are_refused(tmp_path):
    study = Placebo(Request.read(["task=finer", "seed=0,1,2", *SMALL, f"results={tmp_path}"], OPTIONS))
    with pytest.raises(ConfigError, match="no bullet was learned"):
        study.corrected_rows(lambda _: Scored(0, [0.0, 1.0], items=0))


@pytest.mark.parametrize(
    ("content", "form", "helps"), [(0, 0, (0, 0)), (0.2, 0, (1, 0)), (0, 0.2, (0, 1)), (0.2, 0.2, (1, 1))]
)
def test_placebos_tell_what_a_playbook_says_from_its_form(content, form, helps, tmp_path):
    words = ["task=finer", "seed=0,1,2", *SMALL, f"results={tmp_path}"]
    said = [*worlds(Placebo(Request.read(words, OPTIONS)), content, form)]
    for place, expected in enumerate(helps):
        found = sum(not sentences[place].startswith("No sign") for sentences in said) / len(said)
        assert found >= 0.95 if expected else found <= 0.05


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
