"""The commands of docs/own-data.md that run environments, run as they are printed, with the files that it prints."""

import re
import shlex

import pytest

from tests.launching import ROOT, launch
from tests.pages.reading import PLAYS_ENVIRONMENT, commands

PAGE = "docs/own-data.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
NEEDED = {"inspect": "inspect_ai", "verifiers": "verifiers"}


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
    monkeypatch.chdir(tmp_path)
    ran = launch(tmp_path / "results", *words)
    assert ran.status == 0
    if "dry_run=true" not in words:
        assert not any(ran.metrics["faults"].values())
