"""A package of somebody else, installed beside ours: every command knows what it adds."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import version

import pytest

from tests.launching import ROOT

pytestmark = pytest.mark.slow

SOURCE = ROOT / "tests" / "plugin_package"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder in which the package is installed."""
    if int(version("setuptools").partition(".")[0]) < 77:
        pytest.skip("this environment's setuptools cannot build a wheel: pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(SOURCE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", folder / "site", folder / "source"], check=True)
    return folder / "site"


def command(*arguments, cwd, path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), str(ROOT)])}
    line = [sys.executable, "-m", "ace_bench", *arguments]
    return subprocess.run(line, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def ran(installed, tmp_path_factory):
    """A folder with a run of the package's preset: its task, method, context kind and prompts."""
    folder = tmp_path_factory.mktemp("work")
    done = command("run", "experiment=capital_notes", cwd=folder, path=installed)
    assert done.returncode == 0, done.stderr
    assert "last_notes, 4 items" in next(folder.glob("results/**/summary.txt")).read_text()
    return folder


def test_its_task_can_be_checked(installed, tmp_path):
    done = command("check", "capital_cities", cwd=tmp_path, path=installed)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("100.00") == 3


def test_its_runs_are_reported(ran, installed):
    done = command("report", "results", "--out", "report.html", cwd=ran, path=installed)
    assert done.returncode == 0, done.stderr
    assert "capital_cities" in (ran / "report.html").read_text()
    assert command("tables", cwd=ran, path=installed).returncode == 0


def test_its_kind_of_context_is_loaded_by_name(ran, installed):
    (context,) = ran.glob("results/capitals/**/contexts/final.json")
    asked = ["task=capital_cities", "method=notes", "mode=evaluate", f"mode.context={context}"]
    done = command("run", *asked, cwd=ran, path=installed)
    assert done.returncode == 0, done.stderr
    assert "100.00" in done.stdout


def test_its_command_is_listed_and_runs(installed, tmp_path):
    listed = " ".join(command(cwd=tmp_path, path=installed).stdout.split())
    assert "capitals count the capitals of a split" in listed
    done = command("capitals", "train", cwd=tmp_path, path=installed)
    assert (done.returncode, done.stdout) == (0, "4 capitals\n")


def test_its_names_are_suggested_where_one_is_mistyped(installed, tmp_path):
    done = command("run", "task=capital_citys", cwd=tmp_path, path=installed)
    assert "did you mean capital_cities?" in done.stderr
    assert "capital_notes" in command("run", "--help", cwd=tmp_path, path=installed).stdout


def test_its_tools_are_declared_by_it(installed, tmp_path):
    asked = ["task=capital_cities", "agent=react", "agent.memory=execution"]
    assert (
        "agent.memory=execution needs to know the tools" in command("run", *asked, cwd=tmp_path, path=installed).stderr
    )
    wrong = [*asked, "+tools@agent.tools=atlas", "agent.tools.rules.capital.access=never"]
    done = command("run", *wrong, cwd=tmp_path, path=installed)
    assert "agent.tools.rules.capital.access=never must be one of constant, read, open, write" in done.stderr
