"""CONTRIBUTING.md: its commands do what it says, its code is that of the package beside it, and that package's parts
do what they promise."""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ace_bench.core.errors import BackboneUnavailable, RolloutFault
from ace_bench.core.types import Message
from ace_rehearsal.server.faults import Faults
from ace_rehearsal.server.serve import ReaderServer
from tests.backbones.serving import running
from tests.launching import ROOT

GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "tests" / "plugin_package"
CONFIGS = ("--config-dir", str(PACKAGE / "capital_cities" / "configs"))
QUESTION = [Message(role="user", content="Which is red? Options: blood, grass.")]


def fences(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def plain(output: str) -> str:
    return " ".join(re.sub("[│┃|]", " ", output).split())


def run(folder: Path, *command: str, path: Path = PACKAGE) -> str:
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(path), str(folder), str(folder / "packages")]),
        "COLUMNS": "160",
    }
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_commands_do_what_the_guide_says(tmp_path):
    for name in ("tests", "run.py"):
        (tmp_path / name).symlink_to(ROOT / name)
    (commands,), (shown,) = fences("bash"), fences("text")
    printed = ""
    for line in commands.splitlines():
        variable, program, *words = shlex.split(line)
        assert (variable, program) == ("PYTHONPATH=tests/plugin_package", "python")
        printed += run(tmp_path, sys.executable, *words)
    rest = plain(printed)
    for line in shown.splitlines():
        assert line in rest, f"not in the output, or not in this order: {line}\n{rest}"
        rest = rest.partition(line)[2]


def test_code_in_the_guide_is_that_of_the_package():
    files = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*") if path.suffix in (".py", ".toml")]
    blocks = [*fences("python"), *fences("toml")]
    assert len(blocks) == 2
    for block in blocks:
        assert any(block in file for file in files), block


def test_files_and_names_in_the_guide_exist():
    for path in re.findall(r"`((?:ace_bench|packages|tests|configs|prompts|scripts)/[\w./]+\w)`", GUIDE):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"\(`(\w+\.py)`\)", GUIDE):
        assert list(PACKAGE.rglob(name)), name


def served(**chances):
    return running(ReaderServer(host="127.0.0.1", port=0, faults=Faults(chances=chances)))


@pytest.mark.slow
def test_the_backbone_gives_the_same_replies_and_an_unknown_price(tmp_path):
    with served() as server:
        words = ("experiment=capital_notes", "backbone=urllib_chat", f"backbone.url={server.address}")
        command = (sys.executable, str(ROOT / "run.py"), *CONFIGS, *words, "backbone.simulated=true")
        run(tmp_path, *command, f"results={tmp_path}")
    (file,) = tmp_path.rglob("metrics.json")
    made = json.loads(file.read_text())
    assert (made["headline"]["before"], made["headline"]["after"]) == (25.0, 100.0)
    assert made["usd"]["total"] is None
    assert made["tokens"]["total"]["in"] > 0


def test_requests_that_keep_failing_are_faults_of_the_backbone_and_a_dead_server_stops_the_run(monkeypatch):
    monkeypatch.syspath_prepend(str(PACKAGE))
    urllib_chat = importlib.import_module("capital_cities.urllib_chat")
    monkeypatch.setattr(urllib_chat, "PAUSES_S", (0.0, 0.0))

    def ask(url, model="embedded"):
        backbone = urllib_chat.UrllibChat(url=url, model=model, temperature=0.0, key_variable=None, simulated=True)
        return backbone.complete(QUESTION, role="generator", session="s")

    for fault in ("http_500", "http_429", "drop", "truncate"):
        with served(**{fault: 1.0}) as server, pytest.raises(RolloutFault) as caught:
            ask(server.address)
        assert caught.value.fault.owner == "backbone"
    with served() as server, pytest.raises(BackboneUnavailable, match="404"):
        ask(server.address, model="other")
    with pytest.raises(BackboneUnavailable, match="cannot be reached"):
        ask(server.address)
