"""The figures that the README prints for `make run` are those of `make run`."""

import re
import subprocess
import sys

import pytest

from tests.launching import ROOT

FRAME = re.compile(r"[\s│]+")
DIGEST = re.compile(r"\b[0-9a-f]{12}\b")  # of the settings: new settings change it


def plain(text: str) -> str:
    return DIGEST.sub("DIGEST", FRAME.sub(" ", text))


@pytest.mark.slow
def test_the_first_run_ends_as_the_readme_says(tmp_path):
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = page.partition("`make run` ends with this")[2].partition("```text\n")[2].partition("```")[0]
    command = [sys.executable, ROOT / "run.py", "task=finer", "method=ace"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    printed = plain(ended.stdout + ended.stderr)
    lines = shown.splitlines()
    assert len(lines) == 7
    for line in lines:
        assert plain(line.removesuffix("...")).strip() in printed
