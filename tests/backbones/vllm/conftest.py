"""A stand-in for the `vllm` executable, and a way to see whether its processes are gone."""

import json
import os
import stat
import sys
import time
from pathlib import Path

import pytest

from ace_bench.backbones.vllm.command import Serve

FAKE = Path(__file__).with_name("fake_vllm.py")


class Fake:
    """Settings of a server that is not vLLM, and what became of it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.executable = folder / "vllm"
        self.executable.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} "$@"\n')
        self.executable.chmod(self.executable.stat().st_mode | stat.S_IXUSR)
        self._pids = folder / "pids.json"

    def serve(self, behaviour: str = "", says: str = "", **settings) -> Serve:
        env = {
            "FAKE_VLLM": behaviour,
            "FAKE_VLLM_SAYS": says,
            "FAKE_VLLM_PIDS": str(self._pids),
            **settings.pop("env", {}),
        }
        defaults = {"executable": str(self.executable), "log_dir": str(self.folder / "logs"), "stop_timeout": 0.5}
        return Serve(**{**defaults, **settings}, env=env)

    def pids(self) -> list[int]:
        until = time.monotonic() + 10
        while not self._pids.exists() and time.monotonic() < until:
            time.sleep(0.02)
        return json.loads(self._pids.read_text())

    def all_gone(self, within: float = 10.0) -> bool:
        until = time.monotonic() + within
        while any(map(alive, self.pids())) and time.monotonic() < until:
            time.sleep(0.05)
        return not any(map(alive, self.pids()))


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


@pytest.fixture
def fake(tmp_path):
    return Fake(tmp_path)
