"""run.py as a user meets it: help, mistakes, what it prints, and what it leaves behind."""

import os
import subprocess
import sys

from tests.launching import ROOT

PLANTED = {"OPENAI_API_KEY": "sk-planted-0123456789", "HF_TOKEN": "hf_planted_0123456789"}
SMALL = ("task=formula", "task.source=sample", "limit=3", "mode.epochs=1")


def cli(*arguments, **variables):
    done = subprocess.run(
        [sys.executable, "run.py", *arguments],
        cwd=ROOT,
        env={**os.environ, **PLANTED, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


def test_a_run_from_start_to_summary(tmp_path):
    first = cli(*SMALL, f"results={tmp_path}")
    assert first.returncode == 0
    lines = first.stdout.splitlines()
    folder = tmp_path / os.path.relpath(lines[-1], tmp_path)
    assert (folder / "metrics.json").is_file()
    assert first.stderr == ""
    assert "\x1b" not in first.stdout, "no terminal, so no escape sequences"
    assert "\r" not in first.stdout
    for phase in ("evaluate test, before: 3/3", "adapt: 3/3", "evaluate test, after: 3/3"):
        assert any(line.startswith(phase) for line in lines)
    assert "simulated, sample data: not comparable with published numbers" in lines[0]

    again = cli(*SMALL, f"results={tmp_path}")
    assert again.returncode == 0
    assert "This run is finished; resume=false starts a new one." in again.stdout
    assert "test accuracy" in again.stdout
    assert again.stdout.splitlines()[-1] == lines[-1]

    everything = first.stdout + again.stdout + "".join(p.read_text() for p in folder.rglob("*") if p.is_file())
    assert not [secret for secret in PLANTED.values() if secret in everything]
