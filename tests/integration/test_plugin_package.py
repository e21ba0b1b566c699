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


def test_every_command_knows_what_an_installed_package_adds(installed, tmp_path):
    def command(*words, status=0):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), str(ROOT)])}
        line = [sys.executable, "-m", "ace_bench", *words]
        done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return " ".join((done.stdout + done.stderr).split())

    assert "last_notes, 4 items" in command("run", "experiment=capital_notes")
    assert command("check", "capital_cities").count("100.00") == 3
    command("report", "results", "--out", "report.html")
    assert "capital_cities" in (tmp_path / "report.html").read_text()
    command("tables")
    (context,) = tmp_path.glob("results/capitals/**/contexts/final.json")
    asked = ("run", "task=capital_cities")
    assert "100.00" in command(*asked, "method=notes", "mode=evaluate", f"mode.context={context}")
    assert "capitals count the capitals of a split" in command()
    assert command("capitals", "train") == "4 capitals"
    assert "did you mean capital_cities?" in command("run", "task=capital_citys", status=2)
    assert "capital_notes" in command("run", "--help")
    asked += ("agent=react", "agent.memory=execution")
    assert "agent.memory=execution needs to know the tools" in command(*asked, status=2)
    wrong = command(*asked, "+tools@agent.tools=atlas", "agent.tools.rules.capital.access=never", status=2)
    assert "agent.tools.rules.capital.access=never must be one of constant, read, open, write" in wrong
