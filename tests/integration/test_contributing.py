"""Disposition CONTRIBUTING.md to the letter in a copy of the project: its files, its commands, what it says to expect.

A fence after a line "`path`:" is that file. Commands stand in ``bash`` fences, and every line of the ``text`` fence
after them must be found in what they print, in that order.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.launching import ROOT

GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PARTS = ("ace_bench", "ace_rehearsal", "configs", "prompts", "scripts", "tests", "run.py", "pyproject.toml")
FENCE = re.compile(
    r"(?:^`(?P<path>[^`\n]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
PORT = "8707"


@dataclass(frozen=True)
class Fence:
    path: str | None
    kind: str
    text: str


def fences(section: str) -> list[Fence]:
    body = GUIDE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [Fence(found["path"], found["kind"], found["text"]) for found in FENCE.finditer(body)]


EXAMPLES = ("Add a task", "Add a method", "Add a backbone")
FILES = [fence for section in EXAMPLES for fence in fences(section) if fence.path]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project with all three examples in it."""
    copy = tmp_path_factory.mktemp("contributing") / "project"
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, copy / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, copy / part)
    for fence in FILES:
        target = copy / fence.path
        assert not target.exists(), f"{fence.path} exists already: choose another name for the example"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(fence.text, encoding="utf-8")
    return copy


def environment(project: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(project), "COLUMNS": "160"}


def run(project: Path, *command: str) -> str:
    done = subprocess.run(
        [*command], cwd=project, env=environment(project), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def as_run_here(line: str) -> list[str]:
    """A command of the guide for this interpreter; make's test target in one process."""
    words = shlex.split(line)
    if words[:2] == ["make", "test"]:
        options = ("-n", "0", "-p", "no:cacheprovider")
        return [sys.executable, "-m", "pytest", *options, *shlex.split(words[2].removeprefix("ARGS="))]
    assert words[0] == "python", f"the guide's command is of no known kind: {line}"
    return [sys.executable, *words[1:]]


def wait_until_it_listens(port: str) -> None:
    for _ in range(200):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the server does not listen")


class Shell:
    """Runs the lines of bash fences: commands, one background server and its end."""

    def __init__(self, project: Path, port: str):
        self._project = project
        self._port = port
        self._server: subprocess.Popen[str] | None = None
        self.outputs: list[str] = []

    def run(self, line: str) -> None:
        if line == "kill %1":
            self.close()
        elif line.endswith("&"):
            command = as_run_here(line.removesuffix("&").replace(PORT, self._port))
            self._server = subprocess.Popen(
                command, cwd=self._project, env=environment(self._project), stdout=subprocess.DEVNULL
            )
            wait_until_it_listens(self._port)
        else:
            command = as_run_here(line)
            if self._server is not None:
                command.append(f"backbone.url=http://127.0.0.1:{self._port}/v1")
            self.outputs.append(run(self._project, *command))

    def close(self) -> None:
        if self._server is not None:
            self._server.terminate()
            assert self._server.wait(timeout=20) == 0
            self._server = None


@pytest.fixture
def shell(project):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shell = Shell(project, port)
    yield shell
    shell.close()


def plain(output: str) -> str:
    return " ".join(re.sub("[│┃|]", " ", output).split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "section", [EXAMPLES[0], *(pytest.param(section, marks=pytest.mark.thorough) for section in EXAMPLES[1:])]
)
def test_commands_do_what_the_guide_says(section, shell, project):
    for fence in fences(section):
        if fence.kind == "bash":
            for line in fence.text.splitlines():
                shell.run(line)
        elif fence.kind == "text":
            rest = plain("\n".join(shell.outputs))
            for line in fence.text.splitlines():
                assert line in rest, f"not in the output, or not in this order: {line}\n{rest}"
                rest = rest.partition(line)[2]
    runs = [output for output in shell.outputs if "simulated, sample data" in output]
    assert runs
    for output in runs:
        folder = project / output.splitlines()[-1]
        assert folder.is_relative_to(project / "results")
        assert json.loads((folder / "metrics.json").read_text())["splits"]["test"]["after"]["n"] == 5


@pytest.mark.slow
def test_the_matrix_takes_a_new_task_up_by_itself(project):
    (line,) = [line for fence in fences("Add a task") for line in fence.text.splitlines() if "test_matrix.py" in line]
    listed = run(project, *as_run_here(line), "--collect-only", "-m", "")
    methods, modes = (len(list((project / "configs" / group).glob("*.yaml"))) for group in ("method", "mode"))
    assert listed.count("test_matrix.py::") == methods * modes


def test_the_copy_is_what_runs(project):
    where = run(project, sys.executable, "-c", "import ace_bench, tests; print(ace_bench.__file__, tests.__file__)")
    assert [Path(path).is_relative_to(project) for path in where.split()] == [True, True]


CONFORMANCE = """
from ace_bench.backbones.urllib_chat import UrllibChat
from ace_bench.contexts.recent import RecentPairs
from ace_bench.core.backbones import Backbone
from ace_bench.core.context import Context
from ace_bench.core.method import Method
from ace_bench.core.task import Task
from ace_bench.methods.recent import Recent
from ace_bench.tasks.capitals import Capitals


def conform(
    a: Capitals, b: Recent, c: RecentPairs, d: UrllibChat
) -> tuple[Task, Method[RecentPairs], Context, Backbone]:
    return a, b, c, d
"""


@pytest.mark.slow
def test_the_examples_pass_the_linters(project):
    written = [fence.path for fence in FILES if fence.path.endswith(".py")]
    modules = [path for path in written if path.startswith("ace_bench/")]
    run(project, sys.executable, "-m", "ruff", "check", "--no-cache", *written)
    run(project, sys.executable, "-m", "ruff", "format", "--no-cache", "--check", *written)
    (project / "conformance.py").write_text(CONFORMANCE, encoding="utf-8")
    run(project, sys.executable, "-m", "mypy", *modules, "conformance.py")
    kept = run(project, str(Path(sys.executable).with_name("lint-imports")), "--no-cache")
    assert "0 broken" in kept


def test_everything_in_the_guide_is_of_a_known_kind():
    kinds = {fence.kind for section in EXAMPLES for fence in fences(section) if fence.path is None}
    assert kinds == {"bash", "text"}
    for path in re.findall(r"`((?:ace_bench|tests|configs|prompts|scripts)/[\w./]+\.\w+)`", GUIDE):
        assert (ROOT / path).exists() or path in {fence.path for fence in FILES}, f"there is no {path}"
