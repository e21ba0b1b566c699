"""One folder for all tests of the viewer: two methods, two seeds, an unfinished run and a broken folder."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from ace_report.page.results import Results
from ace_report.page.server import ViewerServer
from tests.backbones.serving import running
from tests.launching import launch
from tests.packages.report.page.runs import FINER


@dataclass(frozen=True)
class Shelf:
    """A results folder and the names of its runs in it."""

    root: Path
    ace: Path
    again: Path
    base: Path
    unfinished: Path
    broken: Path


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    root = tmp_path_factory.mktemp("viewed")
    ace = launch(root, *FINER, "limit=5", "mode.epochs=1").folder
    again = launch(root, *FINER, "limit=5", "mode.epochs=1", "seed=1").folder
    base = launch(root, *FINER, "limit=5", "method=base").folder
    return Shelf(root, ace, again, base, unfinished_copy(ace, root / "other" / "seed0"), broken_copy(ace, root / "x"))


def unfinished_copy(folder, target, lines=9):
    """A run that is under way: the first lines of its journal, and no result."""
    shutil.copytree(folder, target)
    (target / "metrics.json").unlink()
    (target / "status.json").write_text('{"state": "running", "reason": ""}')
    journal = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (target / "journal.jsonl").write_bytes(b"".join(journal[:lines]))
    return target


def broken_copy(folder, target):
    shutil.copytree(folder, target)
    (target / "identity.json").write_text("{")
    return target


def viewing(root):
    """The viewer of a folder on a free port."""
    return running(ViewerServer(Results(root), 0))


@pytest.fixture(scope="session")
def viewer(shelf):
    with viewing(shelf.root) as server:
        yield server


def metrics_of(folder):
    return json.loads((folder / "metrics.json").read_text())
