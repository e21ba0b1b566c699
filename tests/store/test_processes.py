"""Records of the processes of a run, and of what they run on."""

import json
import os
import platform
import re
import subprocess
from pathlib import Path

import pytest

from ace_bench.store import environment
from ace_bench.store.environment import describe_environment
from ace_bench.store.lines import DiskGuard
from ace_bench.store.processes import FILE, ProcessLog, accepted_code, last_code, read_processes, without_checks
from tests.launching import ROOT

HERE = {"python": "3.11.9", "packages": {"numpy": "2.1"}, "git": {"code": {"commit": "a" * 40, "dirty": False}}}
CHANGED = {"python": "3.12.1", "packages": {"numpy": "2.2"}, "git": {"code": {"commit": "a" * 40, "dirty": True}}}


def worked(folder, environment, how=None):
    """One process: it begins, ends as given (``None``: it is killed), and returns what changed since the last."""
    log = ProcessLog(folder / FILE, DiskGuard())
    changes = log.begin("ace-bench run", environment)
    if how:
        log.end(how, "its reason")
    log.close()
    return changes


def test_each_process_has_its_own_end_and_a_killed_one_has_none(tmp_path):
    assert read_processes(tmp_path) == []
    assert worked(tmp_path, HERE, "stopped") == []
    assert worked(tmp_path, HERE) == []
    changes = worked(tmp_path, CHANGED, "finished")
    assert changes == [
        "commit aaaaaaaaaa to aaaaaaaaaa with uncommitted changes",
        "Python 3.11.9 to 3.12.1",
        "numpy 2.1 to 2.2",
    ]
    stopped, killed, finished = read_processes(tmp_path)
    assert [(one.how, one.reason) for one in (stopped, finished)] == [
        ("stopped", "its reason"),
        ("finished", "its reason"),
    ]
    assert (killed.how, killed.ended) == (None, None)
    assert stopped.at <= stopped.ended
    assert 0 <= stopped.seconds < 60


def test_a_damaged_line_costs_only_its_own_process(tmp_path):
    for how in ("stopped", "finished"):
        worked(tmp_path, HERE, how)
    path = tmp_path / FILE
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1].replace(b"stopped", b"st0pped"), *lines[2:]]))
    assert [process.how for process in read_processes(tmp_path)] == [None, "finished"]


def test_commits_are_those_of_the_code_and_of_a_checkout_that_one_works_in(tmp_path, monkeypatch):
    def git(*words):
        identity = ("-c", "user.name=A", "-c", "user.email=a@b.c")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    monkeypatch.chdir(tmp_path)
    assert describe_environment()["git"]["folder"] == {"commit": None, "dirty": False}
    (tmp_path / "mine.yaml").write_text("a: 1\n")
    git("add", "mine.yaml")
    git("commit", "-q", "-m", "mine")
    (tmp_path / "results").mkdir()  # untracked files are no changes
    clean = describe_environment()["git"]["folder"]
    assert (len(clean["commit"]), clean["dirty"]) == (40, False)
    (tmp_path / "mine.yaml").write_text("a: 2\n")
    assert describe_environment()["git"]["folder"] == {**clean, "dirty": True}
    known = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert (describe_environment()["git"]["code"] or {"commit": ""})["commit"] == known.strip(), "of a checkout"
    monkeypatch.chdir(ROOT)
    assert describe_environment()["git"]["folder"] is None, "it is that of the code"


def test_the_record_does_not_name_the_host_and_what_no_tool_tells_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = describe_environment()
    assert found["git"]["folder"] is None
    assert platform.node() not in json.dumps(found["host"])
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    environment._host.cache_clear()
    host = describe_environment()["host"]
    assert (len(host["id"]), host["gpus"], host["cores"]) == (8, None, len(os.sched_getaffinity(0)))
    assert host["memory_gib"] == pytest.approx(pages / 2**30, abs=0.051)
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    assert host["cpu"] == (models or [platform.processor() or None])[0].strip()


def checked(folder, how, code):
    log = ProcessLog(folder / FILE, DiskGuard())
    log.add_check(how, f"{how} it", "ace-bench run", {"code": {"m": code}})
    log.close()


def test_a_check_of_the_code_is_one_line_and_says_what_a_user_accepted(tmp_path):
    worked(tmp_path, {**HERE, "code": {"m": "1"}}, "finished")
    checked(tmp_path, "accepted", "2")
    processes = read_processes(tmp_path)
    assert last_code(processes) == {"m": "2"}
    assert [process.how for process in without_checks(processes)] == ["finished"]
    assert accepted_code(processes) == "made by other code: accepted it"
    checked(tmp_path, "replayed", "1")
    assert accepted_code(read_processes(tmp_path)) == "", "a replay showed that the present code gives it, too"


def test_a_run_that_other_code_continued_stays_marked(tmp_path):
    worked(tmp_path, {**HERE, "code": {"m": "1"}}, "stopped")
    checked(tmp_path, "accepted", "2")
    assert worked(tmp_path, {**HERE, "code": {"m": "2"}}, "finished") == ["the code of m"]
    checked(tmp_path, "replayed", "3")
    assert accepted_code(read_processes(tmp_path)) == "made by several versions of the code: accepted it"
    assert accepted_code([]) == ""
    assert last_code([]) == {}
