"""The program as its users get it: a wheel, installed, in a folder without a checkout."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.launching import ROOT

pytest.importorskip("setuptools", minversion="77")  # `make setup` installs it; older ones cannot read pyproject.toml

pytestmark = pytest.mark.slow

FOLDERS = ("ace_bench", "configs", "hydra_plugins", "prompts")
FILES = ("pyproject.toml", "README.md", "LICENSE")


def call(*command: object, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ACE_BENCH_"))}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build from a copy: what an earlier build left in the checkout would enter the wheel."""
    project = tmp_path_factory.mktemp("project")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, project / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy(ROOT / file, project)
    offline = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    call(sys.executable, "-m", "pip", "wheel", *offline, "--wheel-dir", project / "dist", project, cwd=project)
    (built,) = (project / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def commands(wheel, tmp_path_factory):
    """Install it into an environment that has the libraries of this one; return the folder of its commands."""
    place = tmp_path_factory.mktemp("environment")
    call(sys.executable, "-m", "venv", "--without-pip", place, cwd=place)
    python = place / "bin" / "python"
    offline = ("--quiet", "--no-deps", "--no-index")
    call(sys.executable, "-m", "pip", "--python", python, "install", *offline, wheel, cwd=place)
    site = call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=place).strip()
    # A path file adds the libraries, but not the checkout: path files beside them are not read.
    Path(site, "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin"


def test_a_wheel_holds_all_configs_and_prompts(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    files = [path for name in ("configs", "prompts") for path in (ROOT / name).rglob("*") if path.is_file()]
    assert {f"ace_bench/{file.relative_to(ROOT).as_posix()}" for file in files} <= names
    assert "ace_bench/configs/config.yaml" in names


def test_a_wheel_brings_one_import_name_and_what_hydra_must_find(wheel):
    names = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"ace_bench", "hydra_plugins"}


def test_an_installed_wheel_runs_reports_and_makes_tables_in_an_empty_folder(commands, tmp_path):
    ace_bench = commands / "ace-bench"
    output = call(ace_bench, "run", "task=finer", "method=ace", "limit=4", cwd=tmp_path)
    folder = tmp_path / output.splitlines()[-1]
    assert (folder / "metrics.json").is_file()
    assert call(ace_bench, "report", folder, cwd=tmp_path).split() == [str(folder / "report.html")]
    made = call(ace_bench, "tables", "table=2", "backbone=embedded", "limit=4", cwd=tmp_path).splitlines()
    assert (tmp_path / "results" / "tables" / "tables.md").is_file()
    assert all((tmp_path / line).is_file() for line in made)
    output = call(ace_bench, "run", "task=finer", "method=mem_prompt", "mode=online", "limit=4", cwd=tmp_path)
    learnt = json.loads((tmp_path / output.splitlines()[-1] / "metrics.json").read_text())["context"]
    assert (learnt["kind"], learnt["items"]) == ("memory", 4)
    imported = call(commands / "python", "-c", "import ace_bench; print(ace_bench.__file__)", cwd=tmp_path)
    assert Path(imported.strip()).is_relative_to(commands.parent)


def test_help_names_the_command_as_it_was_started(commands, tmp_path):
    assert "ace-bench run task=finer method=ace" in call(commands / "ace-bench", "run", "--help", cwd=tmp_path)
    assert "python run.py task=finer method=ace" in call(sys.executable, ROOT / "run.py", "--help", cwd=tmp_path)
