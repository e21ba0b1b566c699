"""Setting up, with stand-ins for the engine's command and for pip, which need a network, and the health check."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from ace_bench.cli.appworld import check, download, install
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.tasks.appworld.engine import VERSION


@pytest.fixture
def programs(tmp_path):
    """Make an engine's folder with programs that are shell scripts."""
    folder = tmp_path / "engine"
    (folder / "bin").mkdir(parents=True)

    def make(**scripts):
        for name, script in scripts.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / "bin" / name).chmod(0o755)
        return folder

    return make


def said_by(work):
    console = Console(file=io.StringIO(), width=1000)
    work(console)
    return console.file.getvalue()


def test_an_engine_is_installed_and_described(programs, tmp_path):
    described = json.dumps([VERSION, {"venmo": "Pays.", "admin": "Rules.", "gmail": "Writes."}])
    python = f"echo \"$@\" >> {tmp_path}/asked\n[ $1 = -m ] || echo '{described}'"
    folder = programs(python=python, appworld=f"echo $@ $APPWORLD_CACHE >> {tmp_path}/asked")
    (folder / "pyvenv.cfg").write_text("")
    said = said_by(lambda console: install(folder, console))
    assert said == f"installing appworld {VERSION}\nunpacking its apps\n"
    facts = {"version": VERSION, "apps": {"gmail": "Writes.", "venmo": "Pays."}}
    assert (folder / "engine.json").read_text() == json.dumps(facts, indent=1) + "\n"
    pip, unpacked, _ = (tmp_path / "asked").read_text().splitlines()
    assert pip.endswith(f"constraints.txt appworld=={VERSION}")
    assert unpacked == f"install {folder}/cache"
    for script, reason in {"echo a; echo why >&2; exit 3": "why", "echo a; echo b; exit 3": "b", "exit 3": ""}.items():
        with pytest.raises(ConfigError, match=f"^python ended with status 3: {reason}$"):
            install(programs(python=script), Console(file=io.StringIO()))


def test_the_health_check_runs_a_reference_solution(task, monkeypatch):
    assert check(task, Console(file=io.StringIO())) > 0
    truth = task._catalogue.truth
    wrong = "def solution(apis, requester): print('idle')"
    monkeypatch.setattr(task._catalogue, "truth", lambda name: replace(truth(name), solution=wrong))
    with pytest.raises(ConfigError, match=r"the reference solution of appworld-train-.* fails: idle\n"):
        check(task, Console(file=io.StringIO()))


def test_a_download_finds_its_way_through_a_proxy_and_gets_no_keys(programs, tmp_path, monkeypatch):
    ways = {"HTTPS_PROXY": "http://proxy.example:1", "no_proxy": "localhost", "REQUESTS_CA_BUNDLE": "/certificates"}
    for name, value in {**ways, "OPENAI_API_KEY": "sk-planted"}.items():
        monkeypatch.setenv(name, value)
    target = tmp_path / "data" / "appworld"
    folder = programs(appworld="mkdir -p data/datasets\nenv > data/datasets/seen")
    assert (
        said_by(lambda console: download(folder, target, console)) == f"downloading the official data into {target}\n"
    )
    seen = (target / "data" / "datasets" / "seen").read_text().splitlines()
    assert {f"{name}={value}" for name, value in ways.items()} <= set(seen)
    assert "planted" not in "".join(seen)
    again = said_by(lambda console: download(folder, target, console))
    assert again == f"the official data is already in {target}; move it away to download it again\n"


FAILED = {
    "echo x; echo '403'": "403",
    "echo '403' >&2; exit 1": "appworld ended with status 1: 403",
    "": "nothing came",
}


@pytest.mark.parametrize("script", FAILED)
def test_a_download_that_fails_says_why_and_leaves_nothing(programs, tmp_path, script):
    target = tmp_path / "data" / "appworld"
    with pytest.raises(
        DataError, match=rf"^the official data cannot be downloaded: {FAILED[script]}\. On a machine that"
    ):
        download(programs(appworld=script), target, Console(file=io.StringIO()))
    assert list(target.parent.iterdir()) == []
