"""The packages in examples/: installing them, and running commands beside them."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.launching import ROOT

EXAMPLES = ROOT / "examples"


def install(name: str, site: Path) -> None:
    """Install an example in the folder ``site``, from a copy, since building leaves files behind."""
    if int(version("setuptools").partition(".")[0]) < 77:
        pytest.skip("this environment's setuptools cannot build a wheel: pip install -e '.[dev]'")
    source = site.with_name(f"source_{name}")
    shutil.copytree(EXAMPLES / name, source, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", site, source], check=True)


def output_of(*command: str, site: Path, folder: Path, status: int = 0) -> str:
    """Run a command where the packages in ``site`` are installed; return its output without the lines of tables."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "COLUMNS": "200",
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    return plain(done.stdout + done.stderr)


def plain(output: str) -> str:
    return " ".join(re.sub("[│┃|]", " ", output).split())
