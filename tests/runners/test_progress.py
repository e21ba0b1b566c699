"""The progress of a run on a terminal and in a log, with a clock that the test sets."""

import re
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from ace_bench.core.types import Attempt, Completion, Fault, Grade, Stage, Usage
from ace_bench.runners import progress
from ace_bench.runners.board import Board, short_names
from ace_bench.runners.host import reporting
from ace_bench.runners.progress import ProgressCounter, make_display
from ace_bench.store.call_log import Ledger
from ace_bench.store.journal import RolloutRecord
from tests.playbook.making import playbook

TERMINAL = {"force_terminal": True, "no_color": True, "legacy_windows": False}


class Run:
    """A run that the test takes through its phases."""

    def __init__(self, monkeypatch, **console):
        self.now, self.output, self.ledger = 100.0, StringIO(), Ledger()
        monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.display = make_display(Console(file=self.output, **console))
        self.counter = ProgressCounter(ledger=self.ledger, observers=(self.display,))

    def finish(self, seconds, *scores, context=None, fault=None, replayed=False):
        """Finish a unit with rollouts of these scores after some seconds."""
        self.now += seconds
        for trial, score in enumerate(scores):
            usage = Usage(prompt=1_000, completion=200, cached=0, usd=0.25)
            reply = Completion(text="", usage=usage, seconds=1.0, retries=trial)
            self.ledger.add(Stage.ADAPT, "generator", reply, at=self.now)
            grade = Grade(score=score, correct=score == 1, observed="", gold="")
            about = {"split": "test", "sample": "s", "context": "c", "calls": 1, "seconds": 1.0}
            record = RolloutRecord(
                key="k", stage=Stage.ADAPT, trial=trial, attempt=Attempt(answer=""), grade=grade, fault=fault, **about
            )
            self.counter.count_rollout(record)
        self.counter.advance(context, replayed=replayed)


def take_through(run):
    run.counter.enter("adapt", 4)
    run.finish(0, replayed=True)
    run.finish(9.9, 0.5)
    assert run.counter.seconds_left() == pytest.approx(2 * 9.9)
    run.finish(30.1, 1.0, 0.0, context=playbook("one", "two"))
    run.counter.enter("adapt", 9)  # it is under way
    run.finish(1, 1.0, fault=Fault(owner="model", kind="content_filter", message="no"))
    assert run.counter.seconds_left() == 0
    run.counter.enter("evaluate test", 2)
    assert run.counter.seconds_left() == float("inf")
    run.finish(125)


def test_a_log_has_a_line_each_ten_seconds_and_a_terminal_one_for_each_phase(snapshot, monkeypatch):
    """The second unit comes within ten seconds of the first one; a replayed unit is not counted in what is left."""
    shown = []
    for width, about in ((20, {}), (79, TERMINAL), (80, TERMINAL)):
        run = Run(monkeypatch, width=width, **about)
        take_through(run)
        run.display.close()
        lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", run.output.getvalue()).splitlines()
        assert not about or [one.split()[0] for one in lines[-2:]] == ["adapt", "evaluate"]
        shown += lines[-1:] if about else lines
    assert "".join(f"{line}\n" for line in shown) == snapshot


def test_lines_of_a_run_are_printed_as_they_are(capsys):
    with reporting() as report:
        report.host.say("results/:key:/[red]1")
    assert capsys.readouterr().out == "results/:key:/[red]1\n"


def test_a_board_says_how_each_run_ends_and_how_many_are_left_without_control_characters():
    out = StringIO()
    names = short_names([("task=finer", "seed=0"), ("task=finer", "seed=1")])
    board = Board(Console(file=out, width=500), 2, names)
    with board.shown():
        display = board.run(("task=finer", "seed=1"))
        display.close()
        board.end("seed=1", "accuracy 50.0, 3 calls")
        board.end("seed=0", "failed with status 2")
    first, second = out.getvalue().splitlines()
    assert first.startswith("[1/2] seed=1: accuracy 50.0, 3 calls (about ")
    assert second == "[2/2] seed=0: failed with status 2"
    assert "\r" not in out.getvalue()
