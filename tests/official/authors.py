"""The authors' side: their own loop, run in a process of its own, and what it did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "OFFICIAL"
_TIMEOUT = 300


def checkout(name: str) -> Path:
    """Return the folder of the authors' ``ace`` or ``ace-appworld``; without it, the test is skipped."""
    given = os.environ.get(VARIABLE)
    if not given:
        pytest.skip(
            f"the authors' code is needed: make test-official {VARIABLE}=DIR with checkouts of ace and ace-appworld"
        )
    folder = Path(given).expanduser().resolve() / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing: put a checkout of ace-agent/{name} there")
    return folder


@dataclass(frozen=True)
class AuthorsRun:
    """What the authors' code did: see ``authors_finance.py`` for the fields."""

    calls: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    evaluations: list[dict[str, Any]]
    files: dict[str, str]

    def result(self, name: str) -> Any:
        """Return one of the result files that their run wrote."""
        return json.loads(self.files[name])


def run_finance(code: Path, folder: Path, url: str, *options: str) -> AuthorsRun:
    """Run ``finance/run.py`` of a checkout in a folder made by ``Finance.write``, one test worker, in order."""
    script = Path(__file__).with_name("authors_finance.py")
    command = [sys.executable, str(script), str(code), str(folder), url, "--test_workers", "1", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    if done.returncode:
        raise AssertionError(f"the authors' code failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return AuthorsRun(**json.loads((folder / "record.json").read_text(encoding="utf-8")))
