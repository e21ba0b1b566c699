"""What the tests of reproducing results share: the command and its runs in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ace_bench.cli.main import start
from ace_bench.cli.reproducing import reproduction, session
from ace_bench.core.resources import config_folders
from ace_bench.report.experiments import load_experiments
from ace_bench.report.paper.tables import Experiment
from ace_bench.report.tables.results_index import ResultsIndex
from ace_bench.runners.planning import Composer
from ace_bench.runners.workers import Outcome, Workers

EXPERIMENTS = load_experiments()
compose = Composer(config_folders())

Reproduce = Callable[..., tuple[int, str]]


def refs(table: Experiment) -> list[str]:
    """Return the references of all numbers in a table, line by line."""
    theirs = [row for row, line in table.rows.items() if not line.ours]
    cells = [table.cell(row, column) for row in theirs for column in table.printed]
    return [cell.ref for cell in cells if cell.value is not None]


@pytest.fixture
def one_composer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose each configuration once for all tests."""

    def indexed(**settings: Any) -> ResultsIndex:
        return ResultsIndex(**settings | {"compose": compose, "experiments": EXPERIMENTS})

    for module in (session, reproduction):
        monkeypatch.setattr(module, "ResultsIndex", indexed)


@pytest.fixture
def reproduce(one_composer: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Reproduce:
    """Call the command with results in ``tmp_path``; returns its exit status and what it printed."""

    def run(*arguments: str) -> tuple[int, str]:
        status = start("reproduce", [*arguments, f"results={tmp_path}"])
        output = capsys.readouterr()
        return status, output.out + output.err

    return run


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch, one_warm_engine: None) -> None:
    """Make runs one by one, because they share one warm engine of AppWorld. All else is as in `ace-bench run`."""
    one_at_a_time = threading.Lock()
    make_one = Workers._make_one

    def make(workers: Workers, words: tuple[str, ...]) -> Outcome:
        with one_at_a_time:
            return make_one(workers, words)

    monkeypatch.setattr(Workers, "_make_one", make)


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Commands on folders of made-up runs; each folder is made, and each command called, once."""
    from tests.report.paper.made_runs import Commands

    return Commands(tmp_path_factory.mktemp("made"))
