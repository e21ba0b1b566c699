"""The commands of docs/own-data.md that run environments, run as they are printed, with the files that it prints."""

import re
import shlex
import shutil

import pytest

from tests.backbones.serving import running
from tests.launching import ROOT, launch
from tests.packages.environments.gym_server import GymServer, write_rows
from tests.packages.environments.machine_tasks import write_tasks
from tests.pages.reading import PLAYS_ENVIRONMENT, commands

PAGE = "docs/own-data.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
NEEDED = {"inspect": "inspect_ai", "verifiers": "verifiers", "harbor": "harbor"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning:harbor")
@pytest.mark.parametrize("text", [*filter(PLAYS_ENVIRONMENT.match, commands(PAGE))])
def test_a_command_runs_as_it_is_printed(text, tmp_path, monkeypatch):
    words = shlex.split(text)[2:]
    task = next(word.partition("=")[2] for word in words if word.startswith("task="))
    if task in NEEDED:
        pytest.importorskip(NEEDED[task], reason=f"needs the extra {task}: make test-environments")
    if "method=gepa" in words:
        pytest.importorskip("dspy")
    for name, code in re.findall(r"`(\w+\.py)`[^`]*?```python\n(.*?)```", TEXT, re.DOTALL):
        (tmp_path / name).write_text(code)
    if "task.machine=bubblewrap" in words and shutil.which("bwrap") is None:
        pytest.skip("needs the program bwrap")
    write_rows(tmp_path, "example.jsonl", tool=False)
    write_tasks(tmp_path / "tasks")
    monkeypatch.chdir(tmp_path)
    with running(GymServer()) as gym:
        ran = launch(tmp_path / "results", *(word.replace("http://127.0.0.1:8000", gym.address) for word in words))
    assert ran.status == 0
    if "dry_run=true" not in words:
        assert not any(ran.metrics["faults"].values())
