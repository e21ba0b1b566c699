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


def work(folder, environment, how=None):
    """One process: it begins, ends as given (``None``: it is killed), and returns what changed since the last."""
    log = ProcessLog(folder / FILE, DiskGuard())
    changes = log.begin("ace-bench run", environment)
    if how:
        log.try_end(how, "its reason")
        log.try_end("failed", "after the end")
    log.close()
    return changes


def check_code(folder, how, code):
    log = ProcessLog(folder / FILE, DiskGuard())
    log.add_check(how, f"{how} it", "ace-bench run", {"code": {"m": code}})
    log.close()


def test_each_process_has_its_own_end_and_a_killed_one_or_a_damaged_end_none(tmp_path):
    assert read_processes(tmp_path) == []
    assert work(tmp_path, HERE, "stopped") == work(tmp_path, HERE) == []
    assert work(tmp_path, CHANGED, "finished") == [
        "commit aaaaaaaaaa to aaaaaaaaaa with uncommitted changes",
        "Python 3.11.9 to 3.12.1",
        "numpy 2.1 to 2.2",
    ]
    found = read_processes(tmp_path)
    ends = [("stopped", "its reason"), (None, ""), ("finished", "its reason")]
    assert [(one.how, one.reason) for one in found] == ends
    assert found[0].at <= found[0].ended
    assert (0 <= found[0].seconds < 60, found[1].ended) == (True, None)
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes().replace(b"stopped", b"st0pped"))
    assert [one.how for one in read_processes(tmp_path)] == [None, None, "finished"]


def test_a_check_of_the_code_is_one_line_and_says_what_a_user_accepted(tmp_path):
    assert (accepted_code([]), last_code([])) == ("", {})
    first, other = {**HERE, "code": {"m": "1"}}, {**HERE, "code": {"m": "2"}}
    said = []
    work(tmp_path, first, "finished")
    for how, code in (("accepted", "2"), ("replayed", "1"), ("accepted", "2")):
        check_code(tmp_path, how, code)
        said.append((accepted_code(read_processes(tmp_path)), last_code(read_processes(tmp_path))["m"]))
    assert work(tmp_path, other, "finished") == ["the code of m"]
    check_code(tmp_path, "replayed", "3")
    said.append((accepted_code(read_processes(tmp_path)), "3"))
    made, begun = "made by other code: accepted it", "made by several versions of the code: accepted it"
    assert said == [(made, "2"), ("", "1"), (made, "2"), (begun, "3")], "a replay shows that the code gives the same"
    assert [one.how for one in without_checks(read_processes(tmp_path))] == ["finished"] * 2


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
    for folder in (ROOT, ROOT / "docs"):
        monkeypatch.chdir(folder)
        assert describe_environment()["git"]["folder"] is None, "it is that of the code"


def test_the_record_does_not_name_the_host_and_what_no_tool_tells_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(environment, "_code", environment._code.__wrapped__)
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
