"""The authors' finance loop and ours: calls, prompts, answers, playbooks and scores are equal, step for step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.official import ours
from tests.official.authors import checkout, run_finance
from tests.official.comparing import Side, compare
from tests.official.data import finance
from tests.official.replies import FinanceReplies, openings
from tests.official.serving import serving

pytestmark = pytest.mark.official


@dataclass(frozen=True)
class Scenario:
    """The options of the authors' command and the overrides of ours that mean the same."""

    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    sizes: tuple[int, int, int]
    playbook: str | None = None
    refused: float = 0.0

    def write(self, folder: Path) -> tuple[list[str], list[str]]:
        """Return both sides' options, with the initial playbook in a file."""
        theirs, overrides = [*self.theirs, "--save_steps", str(ours.SAVE_STEPS)], [*self.ours]
        if self.playbook is not None:
            (folder / "initial.txt").write_text(self.playbook)
            theirs += ["--initial_playbook_path", str(folder / "initial.txt")]
            overrides += [f"method.initial={folder / 'initial.txt'}"]
        return theirs, overrides


OFFLINE = ("--eval_steps", "4"), ("mode.eval_every=4", "mode.epochs=1")
INITIAL = """## STRATEGIES & INSIGHTS
[si-00007] helpful=2 harmful=1 :: name the unit before the amount
  it continues here, with ## in its middle

## FORMULAS & CALCULATIONS
[calc-00003] helpful=0 harmful=0 :: price times shares

## OWN HEADING
some text that is not a bullet
[own-00001] helpful=6 harmful=0 :: check the period

## OTHERS
"""
SCENARIOS = {
    "offline": Scenario(*OFFLINE, (14, 4, 4)),
    "offline without ground truth": Scenario(
        (*OFFLINE[0], "--no_ground_truth"), (*OFFLINE[1], "labels=correctness"), (14, 4, 4)
    ),
    "two epochs": Scenario((*OFFLINE[0], "--num_epochs", "2"), ("mode.eval_every=4", "mode.epochs=2"), (9, 3, 3)),
    "every second step": Scenario(
        (*OFFLINE[0], "--curator_frequency", "2"), (*OFFLINE[1], "method.curator_every=2"), (13, 3, 3)
    ),
    "initial playbook": Scenario(*OFFLINE, (13, 3, 3), playbook=INITIAL),
    "online": Scenario(
        ("--mode", "online", "--online_eval_frequency", "5"), ("mode=online", "mode.window=5"), (0, 0, 17)
    ),
}


@pytest.mark.parametrize("messy", [False, True], ids=["clean", "messy"])
@pytest.mark.parametrize("task", ["finer", "formula"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_each_step_equals_the_authors(tmp_path: Path, name: str, task: str, messy: bool) -> None:
    code, scenario = checkout("ace"), SCENARIOS[name]
    questions = finance(task, **dict(zip(("train", "val", "test"), scenario.sizes, strict=True)))
    data = questions.write(tmp_path)
    theirs, overrides = scenario.write(tmp_path)
    with serving(FinanceReplies(openings(code), questions.targets, messy=messy, seed=name)) as server:
        expected = run_finance(code, tmp_path, server.url, "--task_name", task, *theirs)
        done = ours.run(code, tmp_path, server.url, f"task={task}", f"task.data_dir={data}", *overrides)
    compare(expected, ours.side(done))
    assert expected.steps[0].playbook != expected.steps[-1].playbook, "they learn from the script"


BATCHES = {
    "offline": Scenario(
        ("--eval_steps", "4", "--batch_size", "4"),
        ("mode.eval_every=4", "mode.epochs=1", "mode.batch_size=4"),
        (14, 4, 4),
    ),
    "two epochs, parts of 3": Scenario(
        (*OFFLINE[0], "--num_epochs", "2", "--batch_size", "4", "--curator_batch_size", "3"),
        ("mode.eval_every=4", "mode.epochs=2", "mode.batch_size=4", "method.curator_batch_size=3"),
        (10, 3, 3),
    ),
    "without ground truth or copies": Scenario(
        (*OFFLINE[0], "--batch_size", "3", "--no-augmented_shuffling", "--no_ground_truth"),
        (*OFFLINE[1], "mode.batch_size=3", "method.copies=1", "labels=correctness"),
        (11, 3, 3),
        INITIAL,
    ),
    "online": Scenario(
        ("--mode", "online", "--online_eval_frequency", "5", "--batch_size", "2"),
        ("mode=online", "mode.window=5", "mode.batch_size=2"),
        (0, 0, 13),
    ),
    "calls that fail": Scenario(
        ("--eval_steps", "4", "--batch_size", "4"),
        ("mode.eval_every=4", "mode.epochs=1", "mode.batch_size=4"),
        (24, 4, 4),
        INITIAL,
        refused=0.06,
    ),
}


@pytest.mark.parametrize("messy", [False, True], ids=["clean", "messy"])
@pytest.mark.parametrize("name", BATCHES)
def test_each_batch_of_combee_equals_the_authors(tmp_path: Path, name: str, messy: bool) -> None:
    code, scenario = checkout("ace"), BATCHES[name]
    if not (code / "ace" / "ace_batch.py").exists():
        pytest.skip(f"{code} has no batches: put a checkout of ace-agent/ace at bcb7cea there")
    questions = finance("finer", **dict(zip(("train", "val", "test"), scenario.sizes, strict=True)))
    data = questions.write(tmp_path)
    theirs, overrides = scenario.write(tmp_path)
    script = FinanceReplies(openings(code), questions.targets, messy=messy, seed=name, refused=scenario.refused)
    with serving(script) as server:
        expected = run_finance(code, tmp_path, server.url, "--task_name", "finer", *theirs)
        settings = ("task=finer", f"task.data_dir={data}", *overrides)
        done = ours.run(code, tmp_path, server.url, *settings, method="combee")
    compare(in_any_order(expected), in_any_order(ours.side(done)))
    undone = (done / "journal.jsonl").read_text().count("all of the batch")
    assert undone < len(expected.steps)
    assert undone or messy or not scenario.refused, "an attempt after a batch fails"
    assert expected.steps[0].playbook != expected.steps[-1].playbook, "they learn from the script"


def in_any_order(side: Side) -> Side:
    """Sort the calls: ours attempt all samples of a batch before they reflect, theirs go sample by sample."""
    return replace(side, calls=sorted(side.calls, key=lambda call: (call.role, call.prompt, call.reply)), files={})
