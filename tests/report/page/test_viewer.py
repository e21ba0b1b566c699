"""What the viewer serves over HTTP, and whom; what it writes as a static site."""

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import zlib
from statistics import fmean

import msgspec
import pytest

from ace_bench.cli.main import main
from ace_bench.report.page import content
from ace_bench.report.page.content import write_site
from ace_bench.report.page.results import Results
from ace_bench.report.records import find_runs, read_run
from ace_bench.report.statistics import compare, mean_score
from ace_bench.store.processes import read_processes
from benchmarks.results import make_runs
from tests.launching import ROOT
from tests.report.page.runs import metrics_of, permissions_count, unfinished_copy, viewing


def fetched(server, name, query=""):
    with urllib.request.urlopen(f"{server.address}data/{name}.bin{query}", timeout=10) as reply:
        return json.loads(zlib.decompress(reply.read()))


def listed(server):
    found = fetched(server, "runs")
    return found, {row["folder"]: row for row in found["runs"]}


def events(server):
    """Yield what the server sends."""
    with urllib.request.urlopen(f"{server.address}events", timeout=10) as stream:
        name = ""
        for line in stream:
            if line.startswith(b"event: "):
                name = line[7:].decode().strip()
            if line.startswith(b"data: "):
                yield name, json.loads(line[6:])


def test_the_list_holds_results_and_the_settings_in_which_runs_differ(viewer, shelf):
    found, by_folder = listed(viewer)
    assert found["settings"] == [["method", "method"], ["mode.epochs", "epochs"], ["seed", "seed"]]
    assert found["common"] == "finer · embedded · offline · labels=gold · limit=5"
    assert found["live"] is True
    folder, metrics = shelf.again.relative_to(shelf.root).as_posix(), metrics_of(shelf.again)
    row, base = by_folder[folder], by_folder[shelf.base.relative_to(shelf.root).as_posix()]
    headline = metrics["headline"]
    files = [shelf.again / name for name in ("identity.json", "metrics.json", "environment.json", "status.json")]
    assert row["result"]["sampled"] == base["result"]["sampled"]
    about = {name: metrics[name] for name in ("task", "method", "backbone", "mode", "labels", "seed", "source")}
    assert row == {
        "key": row["key"], "folder": folder, "label": "ace · epochs=1 · seed 1",
        "values": ["ace", "1", "1"], "live": None, "tags": [], "note": "", "model": "embedded",
        "seeds": metrics["digest"][:12],
        "date": read_processes(shelf.again)[0].at.timestamp(),
        "gain": {"points": headline["after"] - headline["before"], "over": "its own score before"},
        "about": {**about, "simulated": True, "state": "finished", "reason": "", "attempt": 1},
        "changed": max(file.stat().st_mtime_ns for file in files) / 1e9,
        "result": {
            **metrics["headline"], "sampled": row["result"]["sampled"], "faults": 0, "context": metrics["context"],
            "steps": 5, "calls": sum(sum(roles.values()) for roles in metrics["calls"].values()),
            **metrics["tokens"]["total"], "cached": metrics["cache"]["total"]["cached_tokens"], "usd": 0.0,
            "wall": pytest.approx(sum(metrics["timing"][stage]["wall_s"] for stage in ("adapt", "evaluate"))),
        },
    }  # fmt: skip
    assert by_folder["other/seed0"]["result"] is None
    (unreadable,) = found["unreadable"]
    assert unreadable["folder"] == "x"
    assert "identity.json" in unreadable["reason"]
    assert len(found["runs"]) == 4


def test_folders_of_several_roots_are_shown_whole_and_those_that_may_not_be_entered_are_named(shelf, tmp_path):
    (tmp_path / "theirs").mkdir(mode=0)
    with permissions_count():
        found = Results(shelf.base.parent, tmp_path).listing()
        alone = Results(tmp_path).listing()
    (tmp_path / "theirs").chmod(0o700)
    assert [row["folder"] for row in found["runs"]] == [str(shelf.base)]
    assert [[one["folder"] for one in part["unreadable"]] for part in (found, alone)] == [
        [str(tmp_path / "theirs")],
        ["theirs"],
    ]


def test_a_run_is_served_with_the_prompts_of_one_rollout_at_a_time(viewer, shelf):
    key = listed(viewer)[1][shelf.ace.relative_to(shelf.root).as_posix()]["key"]
    run = fetched(viewer, f"run-{key}")
    assert len(run["rollouts"]) == sum(metrics_of(shelf.ace)["rollouts"].values())
    session = run["rollouts"][0]["key"]
    found = fetched(viewer, f"calls-{key}", f"?session={session}")
    assert [run["calls"][call["place"]]["session"] for call in found["calls"]] == [session]
    assert found["calls"][0]["reply"]


def test_the_seeds_of_chosen_runs_are_one_side_and_the_base_comes_first(viewer, shelf, tmp_path, monkeypatch):
    keys = {run.folder: key for key, run in viewer.results.runs().items()}
    ace, again, base, unfinished = (keys[one] for one in (shelf.ace, shelf.again, shelf.base, shelf.unfinished))
    found = fetched(viewer, "comparison", f"?runs={ace},{base},{again},gone")
    assert found["sides"] == [
        {"key": base, "runs": [base], "seeds": 1, "of": 1}, {"key": ace, "runs": [ace, again], "seeds": 2, "of": 2}
    ]  # fmt: skip
    points = {run: read_run(run).points("accuracy") for run in (shelf.ace, shelf.again, shelf.base)}
    assert found["scores"] == {
        base: {sample: point.score for sample, point in points[shelf.base].items()},
        ace: {
            sample: fmean(points[run][sample].score for run in (shelf.ace, shelf.again)) for sample in points[shelf.ace]
        },
    }
    sides = {0: points[shelf.ace], 1: points[shelf.again]}, {0: points[shelf.base]}
    tested = msgspec.to_builtins(compare(*sides, base_adapts=False))
    del tested["estimate"]
    assert found["pairs"] == [json.loads(json.dumps({"ours": ace, "base": base, **tested}))]
    (pair,) = fetched(viewer, "comparison", f"?runs={unfinished},{base}")["pairs"]
    assert pair == {"ours": unfinished, "base": base, "problem": "it is not finished"}
    assert len(fetched(viewer, "comparison")["sides"]) == 2
    monkeypatch.setattr(content, "MOST_COMPARED", 2)
    assert len(fetched(viewer, "comparison", f"?runs={ace},{base}")["pairs"]) == 1
    refused = {"scores": {}, "pairs": [], "problem": "more than 2 runs have finished"}
    assert fetched(viewer, "comparison", f"?runs={ace},{again},{base}") == refused
    assert write_site(Results(shelf.root), tmp_path / "site", tables="") == [
        "paired tests, as more than 2 runs have finished; ace-bench view makes them"
    ]


def answer_of(server, path, host=None):
    """The status of an answer, and its text if that says why there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("GET", path, headers={"Host": host} if host else {})
    reply = connection.getresponse()
    text = reply.read().decode() if reply.status >= 400 else ""
    connection.close()
    return reply.status, text


def test_another_sites_page_that_points_here_is_refused_and_a_tunnel_is_not(viewer):
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", " ", "[::1", "evil.example@127.0.0.1",
                 "evil.example:1@localhost:2", "localhost.", "127.0.0.1:", "127.0.0.1:80/", "localhost#", "0.0.0.0",
                 "127.1"):  # fmt: skip
        refused = (403, "Open the viewer by the address that it printed.")
        assert [answer_of(viewer, path, host) for path in ("/", "/data/runs.bin", "/events")] == [refused] * 3, host
    for host in ("localhost", "localhost:9000", "127.0.0.1", "[::1]:1"):
        assert [answer_of(viewer, path, host)[0] for path in ("/", "/index.html")] == [200, 200]
    with socket.create_connection(("127.0.0.1", viewer.server_port), timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n")
        assert connection.recv(64).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(("path", "scripts"), [("/", 1), ("/data/runs.bin", 0), ("/nothing", 0), ("/events", 0)])
def test_every_answer_has_a_policy_that_lets_nothing_else_run(viewer, path, scripts):
    connection = http.client.HTTPConnection("127.0.0.1", viewer.server_port, timeout=10)
    connection.request("GET", path)
    policy = connection.getresponse().getheader("Content-Security-Policy")
    connection.close()
    assert policy.startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in policy
    assert policy.count("script-src 'sha256-") == scripts
    assert "unsafe" not in policy


def test_no_path_leads_to_a_file(viewer):
    files = ("../x/identity.json", "%2e%2e/x/identity.json", "/etc/passwd")
    names = ("run-../../x.bin", "run-000000000000.bin", "calls-.bin")
    for path in (*(f"/data/{name}" for name in (*files, *names)), "/x/identity.json", "//etc/passwd"):
        reason = "There is no such run any more." if "-" in path else "Not found."
        assert answer_of(viewer, path) == (404, reason), path


def test_the_first_event_says_how_far_each_unfinished_run_is(viewer, shelf):
    (key,) = [key for key, run in viewer.results.runs().items() if run.folder == shelf.unfinished]
    name, changed = next(events(viewer))
    assert (name, [*changed]) == ("progress", [key])


def test_runs_made_for_measurements_are_whole_and_a_run_that_comes_is_listed(shelf, tmp_path):
    make_runs([shelf.ace, shelf.base], tmp_path / "made", 12)
    found = find_runs(tmp_path / "made")
    assert (len(found.runs), found.damaged) == (12, ())
    for run in found.runs:
        headline = run.metrics["headline"]
        points = run.points(headline["metric"])
        assert headline["after"] == pytest.approx(mean_score({0: points}))
        assert run.settings["mode"]["epochs"] == run.identity["mode"]["epochs"]
    with viewing(tmp_path / "made") as server:
        found, _ = listed(server)
        assert [name for _, name in found["settings"]] == ["method", "limit", "seed"]
        stream = events(server)
        assert next(stream) == ("progress", {}), "no list is out of date yet"
        shutil.copytree(shelf.again, tmp_path / "made" / "more" / "seed1")
        assert next(value for name, value in stream if name == "runs")
        assert len(listed(server)[0]["runs"]) == 13


@pytest.mark.slow
def test_a_run_under_way_is_followed_by_events(shelf, tmp_path):
    folder = unfinished_copy(shelf.ace, tmp_path / "seed0", lines=9)
    journal = (shelf.ace / "journal.jsonl").read_bytes().splitlines(keepends=True)
    with viewing(tmp_path) as server:
        stream = events(server)
        name, changed = next(stream)
        assert name == "progress"
        (progress,) = changed.values()
        steps = [line for line in map(json.loads, journal[:9]) if line["kind"] == "step"]
        assert (progress["stage"], progress["done"], progress["total"]) == ("adapt", len(steps), 5)
        assert progress["items"] == steps[-1]["context_size"]
        with (folder / "journal.jsonl").open("ab") as file:
            file.writelines([*journal[9:], b'{"kind":"unfin'])
        after = next(changed for name, changed in stream if changed)
        (progress,) = after.values()
        metrics = metrics_of(shelf.ace)
        assert (progress["stage"], progress["done"], progress["total"]) == ("evaluate", 5, 5)
        assert progress["score"] == pytest.approx(metrics["headline"]["after"])
        assert progress["calls"] == sum(sum(roles.values()) for roles in metrics["calls"].values())
        shutil.copy(shelf.ace / "metrics.json", folder)
        assert next(value for name, value in stream if name == "runs")
        assert [row["result"]["after"] for row in fetched(server, "runs")["runs"]] == [metrics["headline"]["after"]]


def test_a_static_site_holds_what_the_server_answers(viewer, shelf, tmp_path):
    problems = write_site(Results(shelf.root), tmp_path / "site", tables="")
    assert problems == []
    runs = json.loads(zlib.decompress((tmp_path / "site" / "data" / "runs.bin").read_bytes()))
    assert not runs["live"]
    assert [row["key"] for row in runs["runs"]] == [row["key"] for row in fetched(viewer, "runs")["runs"]]
    for row in runs["runs"]:
        for part in ("run", "calls"):
            name = f"{part}-{row['key']}"
            stored = json.loads(zlib.decompress((tmp_path / "site" / "data" / f"{name}.bin").read_bytes()))
            assert stored == fetched(viewer, name)


def test_the_tables_are_served_beside_the_viewer_that_leads_to_them(viewer):
    pages = []
    for name in ("", "tables.html"):
        with urllib.request.urlopen(f"{viewer.address}{name}", timeout=10) as reply:
            pages.append((reply.read().decode(), reply.headers["Content-Security-Policy"]))
    (listing, _), (tables, policy) = pages
    assert '<a href="tables.html">' in listing
    assert tables == "<p>The tables.</p>"
    assert "script-src" not in policy
    assert policy.startswith("default-src 'none'; style-src")


def test_mistakes_are_one_sentence(shelf, tmp_path, capfd):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for arguments, reason in (
            ([str(tmp_path / "none")], "there is no folder"),
            ([str(shelf.root), "--port", str(taken.getsockname()[1])], "cannot be used"),
            ([str(shelf.root), "--port", "99999"], "is not a port"),
        ):
            assert main(["view", *arguments]) == 2
            (line,) = capfd.readouterr().err.splitlines()
            assert reason in line
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    root = str(shelf.root)
    for arguments, reason in (
        ([root, "--out", str(tmp_path / "full")], "is not empty"),
        ([root, root, "--out", str(tmp_path / "new")], "shows one folder of runs"),
    ):
        assert main(["report", *arguments]) == 2
        assert reason in capfd.readouterr().err.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_one_sentence(sent, shelf):
    command = [sys.executable, "-m", "ace_bench", "view", str(shelf.root), "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("4 runs at http://127.0.0.1:")
        process.send_signal(sent)
        assert process.communicate(timeout=20) == ("The viewer has ended.\n", "")
        assert process.returncode == 0
