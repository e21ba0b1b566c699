"""Hostile programs in both sandboxes, on this machine, as an ordinary user, and where the kernel lacks something.

``make test`` runs a few of them, ``make test-thorough`` all.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from ace_bench.agents.sandbox import REFUSED
from ace_bench.core.confine import NEEDED
from ace_bench.core.errors import ConfigError
from ace_bench.tasks.catalog import make_task
from tests.hostile.corpus import MARKED
from tests.hostile.machines import ran_on

USER = 54321
MACHINES = {
    "as root": {},
    "as an ordinary user": {"user": USER},
    "without user namespaces": {"user": USER, "without": ["namespaces"]},
}


def played(name, tmp_path):
    if os.getuid() and name != "as an ordinary user":
        pytest.skip("only root can play other machines")
    return playable({**MACHINES[name], "home": str(tmp_path)} if os.getuid() == 0 else {})


def playable(about):
    if ran_on(about, ["true"]).returncode:
        pytest.skip("root may not mount or filter here, as in most containers")
    return about


@pytest.fixture(params=MACHINES)
def machine(request, tmp_path):
    return played(request.param, tmp_path)


@pytest.fixture
def world(tmp_path):
    """The mini-world, where a user of another machine has it."""
    try:
        root = make_task("appworld", source="sample", sample_allowed=True).root
    except ConfigError as error:
        pytest.skip(str(error))
    shutil.copytree(root, tmp_path / "cache" / "appworld" / root.name)
    return str(tmp_path / "cache")


def report_on(about, kind, *names, cache=""):
    environment = {"ACE_BENCH_CACHE": cache} if cache else {}
    done = ran_on(about, [sys.executable, "-m", "tests.hostile.run", kind, *names], **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def assert_held(report, about, number):
    if not set(report["layers"]) >= NEEDED:
        pytest.skip("this machine cannot confine code")
    expected = set(NEEDED)
    if "namespaces" not in about.get("without", ()):
        expected.add("namespaces")
    if "user" not in about and os.getuid() == 0:
        expected.add("user")
    assert set(report["layers"]) <= expected
    assert report["problems"] == []
    assert report["ran"] >= number


@pytest.mark.slow
@pytest.mark.parametrize("name", ["as root", "without user namespaces"])
def test_the_cheatsheets_sandbox_holds(name, tmp_path):
    machine = played(name if os.getuid() == 0 else "as an ordinary user", tmp_path)
    assert_held(report_on(machine, "cheatsheet", *MARKED["quick"]), machine, len(MARKED["quick"]))


@pytest.mark.thorough
def test_the_cheatsheets_sandbox_holds_against_all(machine):
    assert_held(report_on(machine, "cheatsheet"), machine, 250)


@pytest.mark.thorough
def test_appworlds_sandbox_holds_against_all(machine, world):
    assert_held(report_on(machine, "appworld", cache=world), machine, 250)


@pytest.mark.thorough
def test_the_programs_get_out_where_nothing_confines_them(tmp_path):
    tmux = ("connecting: tmux",) if shutil.which("tmux") else ()
    (tmp_path / "mine").touch()
    report = report_on(
        {"user": USER, "home": str(tmp_path)} if os.getuid() == 0 else {}, "unconfined", *MARKED["unconfined"]
    )
    assert set(report["problems"]) >= {*MARKED["unconfined"]} - {"reading: by_handle"}
    assert set(tmux) <= set(report_on({}, "unconfined", *tmux)["problems"]) or not tmux


CHEATSHEET = """
from ace_bench.agents.sandbox import Sandbox
box = Sandbox(seconds=1, memory_mib=256, output_chars=400)
box.start(print)
print(box.run("print('r' + 'an')"), box.layers)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can play other machines")
@pytest.mark.parametrize("lacking", ["landlock", "seccomp"])
def test_where_code_cannot_be_confined_the_cheatsheet_does_not_run_it(lacking):
    done = ran_on(playable({"without": [lacking]}), [sys.executable, "-c", CHEATSHEET])
    assert done.stdout.splitlines() == [
        "Code of the generator is not run: this machine cannot confine it. See docs/methods/dynamic_cheatsheet.md",
        f"{REFUSED} None",
    ]


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can play other machines")
@pytest.mark.parametrize("confinement", [pytest.param("required"), pytest.param("none", marks=pytest.mark.thorough)])
def test_appworld_refuses_to_run_code_that_cannot_be_confined_unless_told_to(confinement, world, tmp_path):
    command = [sys.executable, "run.py", "task=appworld", "task.source=sample", "method=base", "backbone=embedded"]
    settings = [
        f"task.confinement={confinement}",
        "limit={test: 1}",
        f"results={tmp_path}/results",
        "agent.max_steps=2",
    ]
    done = ran_on(playable({"without": ["landlock"]}), [*command, *settings], ACE_BENCH_CACHE=world)
    finished = [*Path(tmp_path, "results").rglob("metrics.json")]
    if confinement == "required":
        assert done.returncode == 2
        assert "cannot confine" in done.stderr
        assert "task.confinement=none" in done.stderr
        assert not finished
    else:
        assert done.returncode == 0, done.stderr
        assert "agent code can do what you can do" in done.stdout
        layers = json.loads(finished[0].read_text())["confinement"]
        assert layers == ["calls", "namespaces", "user"]
        assert json.loads(finished[0].with_name("environment.json").read_text())["confinement"] == layers
        assert "code confined by" in finished[0].with_name("summary.txt").read_text()
