"""Episodes on the real engine: fresh worlds, outputs, grades, and what agent code does to itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ace_bench.core.errors import ConfigError, RolloutFault
from ace_bench.core.types import Labels, reveal
from ace_bench.tasks.appworld.engine_side.processes import descendants
from tests.tasks.appworld.conftest import RUN, processes_in, settled, solved

FRESH = """
import json, sys, dotenv
dotenv.load_dotenv = lambda *a, **k: False
from appworld.environment import AppWorld
task, out, codes = sys.argv[1], sys.argv[2], json.load(sys.stdin)
world = AppWorld(task_id=task, experiment_name=out, load_ground_truth=False, random_seed=123)
shown = [world.execute(code) for code in codes]
sys.stdout.write(json.dumps([shown, world.task_completed()]))
"""

PIECES = (
    "print(apis.api_docs.show_app_descriptions())",
    "import random, uuid\nprint(random.random(), random.choice(range(1000)))\nx = 41",
    "words = {one['account_name']: one['password'] for one in apis.supervisor.show_account_passwords()}\n"
    "email = apis.supervisor.show_profile()['email']\n"
    "login = apis.simple_note.login(username=email, password=words['simple_note'])\nprint(login, random.random())",
    "print(apis.spotify.search_songs(query=DateTime.now(), page_limit=-1))",
    "requester.post('/simple_note/notes', data={'title': 10**400, 'content': DateTime.now()})",
    "print(x + 1, DateTime.now(), {'b', 'a', 'c'})",
    "print(apis.spotify.show_song_library())",
    "1 / 0",
    "def f(:",
    "import os; os.system('true')",
    "import requests",
    "from datetime import datetime\nprint(datetime.strptime('May 3', '%B %d'), '\\N{SNOWMAN}')",
    "",
)


@pytest.fixture
def sample(task):
    return task.samples("train")[0]


@pytest.mark.thorough
def test_a_forked_server_is_as_good_as_a_fresh_interpreter(task, sample, engine, root, tmp_path):
    """Two episodes one after the other from one fork server, and one in an interpreter that never forked."""
    key = sample.id.removeprefix("appworld-train-")
    codes = [*PIECES, task.failing_grade(sample).gold + RUN]
    fresh = subprocess.run(
        [str(engine.folder / "bin" / "python"), "-c", FRESH, key, str(tmp_path / "fresh")],
        env=engine.environment(root, tmp_path) | {"PYTHONPATH": ""},
        input=json.dumps(codes),
        capture_output=True,
        text=True,
        check=True,
    )
    expected, completed = json.loads(fresh.stdout)
    assert completed
    for name in ("first", "second"):
        with task.open(sample) as session:
            assert [session.step(code) for code in codes] == expected
            assert session.finished
            session.keep(tmp_path / name)
        for kept in (tmp_path / name / "dbs").iterdir():
            assert kept.read_bytes() == (tmp_path / "fresh" / "tasks" / key / "dbs" / kept.name).read_bytes()
    assert "ZeroDivisionError" in expected[7]


@pytest.mark.slow
def test_what_one_episode_does_to_its_process_no_other_sees(task, sample):
    with task.open(sample) as session:
        session.step("import json, builtins, appworld\nbuiltins.planted = 1\nappworld.__version__ = 'x'")
        session.step("json.dumps = lambda *a, **k: 'HACKED'")
    with task.open(sample) as session:
        assert session.step("import builtins, json\nprint(hasattr(builtins, 'planted'), json.dumps(1))") == "False 1\n"


def test_reference_solutions_pass_and_idle_agents_fail(task):
    samples = [task.samples(split)[0] for split in ("train", "val", "test")]

    def play(sample, act):
        with task.open(sample) as session:
            return act(sample, session), session.grade("done"), session.finished

    with ThreadPoolExecutor(3) as pool:
        passed = list(pool.map(lambda sample: play(sample, lambda s, session: solved(task, s, session)), samples))
    for sample, (shown, grade, finished) in zip(samples, passed, strict=True):
        assert (grade.correct, grade.score, finished) == (True, 1.0, True), shown
        assert grade.group == sample.id.split("-")[-1].split("_")[0]
        assert grade.detail["passes"] == grade.detail["tests"] > 0
        assert grade.detail["interactions"] == 1
    _, idle, finished = play(samples[0], lambda _, session: session.step("print('hm')"))
    assert (idle.correct, finished) == (False, False)
    assert "without marking the task as complete" in idle.observed
    assert "Failed Requirement" in idle.report
    assert "Failed Requirement" not in reveal(idle, Labels.CORRECTNESS).message
    assert "not correct" not in reveal(idle, Labels.NONE).message
    assert "Failed Requirement" in reveal(idle, Labels.GOLD).message
    assert "def solution" in reveal(idle, Labels.GOLD).gold
    scores = task.score([grade for _, grade, _ in passed] + [idle])
    assert scores["tgc"] == 75.0
    assert scores["sgc"] == pytest.approx(100 * 2 / 3)
    assert scores["interactions"] == 1.0
    assert task.headline in scores


def test_no_answer_is_a_forfeit_whatever_the_world_holds(task, sample):
    with task.open(sample) as session:
        solved(task, sample, session)
        assert session.grade(None) == task.failing_grade(sample)
        assert session.grade("done").correct
        assert session.grade("done") == session.grade("again")


@pytest.mark.slow
def test_long_outputs_are_cut_as_the_official_agents_do(task, sample):
    with task.open(sample) as session:
        assert session.step("print('x' * 19_999)") == "x" * 19_999 + "\n"
        assert session.step("print('x' * 30_000)") == "x" * 20_000 + "\n[10001 more characters are not shown]"
        assert session.step("print('x' * (70 << 20))").endswith(
            f"[{(70 << 20) - 19_999} more characters are not shown]"
        )
        assert session.step("print(1)") == "1\n"


def test_code_that_ends_the_interpreter_is_the_agents_own_error_and_the_episode_goes_on(task, sample):
    with task.open(sample) as session:
        for code in ("raise KeyboardInterrupt", "class E(BaseException): pass\nraise E()"):
            assert session.step(code).startswith("Execution failed")
        assert session.step("print('a \\ud800'.encode('utf-8', 'replace'))") == "b'a ?'\n"
        assert not session.finished
        solved(task, sample, session)
        assert session.grade("done").correct


@pytest.mark.parametrize(
    "code",
    [
        "import json\njson.dumps = lambda *a, **k: '{\"output\": [1, 2]}'\nprint(1)",
        "e = __import__('os').__dict__['_ex' + 'it']\nprint(__import__('os').abort())",
        "c = __import__('ctypes')\nc.string_at(0)",
        "__import__('posix').closerange(3, 99)",
        "s = __import__('signal')\ns.raise_signal(s.SIGTERM)\nimport os\nos.abort()",
    ],
)
def test_code_that_breaks_its_own_server_ends_the_episode_without_a_fault(task, sample, code, monkeypatch):
    monkeypatch.setattr("ace_bench.tasks.appworld.session._SETTLE_S", 2.0)
    with task.open(sample) as session:
        assert "broke the environment" in session.step(code)
        assert session.finished
        assert "over" in session.step("print(1)")
        grade = session.grade("done")
        assert not grade.correct
        assert grade.detail["interactions"] == 1


@pytest.mark.slow
def test_code_that_swallows_the_time_limit_is_killed_in_the_end(task, sample, monkeypatch):
    monkeypatch.setattr("ace_bench.tasks.appworld.session.GRACE_S", 2.0)
    monkeypatch.setattr(task, "_timeout", 1)
    with task.open(sample) as session:
        assert "timed out after 1 seconds" in session.step("while True: pass")
        assert not session.finished, "the engine's own limit was enough"
        folder = session._server.folder
        shown = session.step(
            "while True:\n    try:\n        apis.supervisor.show_profile()\n    except Exception: pass"
        )
        assert "shut down" in shown
        assert session.finished
        assert processes_in(folder) == []
        assert not session.grade("done").correct


def test_no_process_can_be_started_that_could_outlive_the_episode(task, sample):
    libc = "libc = __import__('ctypes').CDLL(None, use_errno=True)\n"
    with task.open(sample) as session:
        for way in ("libc.fork()", "libc.vfork()", "libc.syscall(56, 17, 0, 0, 0, 0)", "libc.syscall(435, 0, 0)"):
            assert session.step(f"{libc}print({way})") == "-1\n"
        folder = session._server.folder
        assert len(processes_in(folder)) == 2
    assert processes_in(folder) == []
    assert not folder.exists()


def test_outputs_that_were_tampered_with_are_wrong(task, sample):
    with task.open(sample) as session:
        solved(task, sample, session)
        dbs = session._server.folder / "world" / "out" / "tasks" / session._assignment.task / "dbs"
        (dbs / "supervisor.jsonl").write_text("")
        grade = session.grade("done")
    assert not grade.correct
    assert "cannot be evaluated" in grade.report


def leave_endless_work(session):
    """Append to the saved changes a statement that never ends, and that calls back nothing while it runs."""
    changes = session._server.folder / "world" / "out" / "tasks" / session._assignment.task / "dbs" / "spotify.jsonl"
    endless = (
        "INSERT INTO songs (title) WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
        "SELECT x FROM n WHERE x < 0"
    )
    with changes.open("a") as lines:
        lines.write(json.dumps([endless, [], False]) + "\n")


@pytest.mark.slow
def test_an_evaluation_that_does_not_end_is_killed_and_the_answer_is_wrong(task, sample, monkeypatch):
    monkeypatch.setattr("ace_bench.tasks.appworld.pool.EVALUATION_S", 4)
    with task.open(sample) as session:
        solved(task, sample, session)
        leave_endless_work(session)
        warm = session._pool._running.servers._fork_server._process.pid
        before = set(descendants(warm))
        grade = session.grade("done")
        assert not grade.correct
        assert "more than 4 seconds" in grade.report
        assert set(descendants(warm)) <= before


@pytest.mark.slow
def test_an_evaluation_that_nobody_waits_for_any_more_ends(task, sample, root, tmp_path):
    with task.open(sample) as session:
        solved(task, sample, session)
        leave_endless_work(session)
        session._server.end()
        servers = session._pool._running.servers
        before = set(descendants(servers._fork_server._process.pid))
        order = {
            "task": session._assignment.task,
            "outputs": str(session._server.folder / "world" / "out"),
            "seconds": 600,
        }
        note = tmp_path / "request.json"
        note.write_text(json.dumps({**order, "root": str(root), "memory": 4 << 30}))
        begun = time.monotonic()
        assert servers.score(note, seconds=3) is None
        assert time.monotonic() - begun >= 3  # it ran all the time
        assert settled(lambda: set(descendants(servers._fork_server._process.pid)) <= before)


@pytest.mark.parametrize("which", ["world", "agent", "monitor"])
def test_a_server_killed_from_outside_is_a_fault_of_the_task_and_ends(task, sample, which):
    with task.open(sample) as session:
        session.step("print(1)")
        processes = processes_in(session._server.folder / which.replace("monitor", "world"))
        if which == "monitor":
            (server,) = processes
            processes = [int(Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[1])]
        for process in processes:
            os.kill(process, signal.SIGKILL)
        assert which != "monitor" or settled(lambda: not processes_in(session._server.folder))
        with pytest.raises(RolloutFault, match="was killed" if which == "monitor" else None) as caught:
            session.step("print(2)")
    assert (caught.value.fault.owner, caught.value.fault.kind) == ("task", "server")
    with task.open(sample) as session:
        assert session.step("print(3)") == "3\n"


def test_a_server_that_cannot_be_kept_is_a_fault_at_once(task, sample, monkeypatch):
    monkeypatch.setattr("ace_bench.tasks.appworld.servers.SERVER_S", 30)
    there = task._pool._ensure_running().folder / "episodes"
    away = there.rename(there.with_name("away"))
    try:
        with pytest.raises(RolloutFault, match="watches it failed"), task.open(sample):
            pass
    finally:
        away.rename(there)
    with task.open(sample) as session:
        assert session.step("print(3)") == "3\n"


@pytest.mark.skipif(
    os.getuid() != 0, reason="only servers with users of their own are kept out of a folder by its mode"
)
def test_an_engine_in_a_private_folder_works(engine, task, sample):
    with task.open(sample) as session:
        before = session._server
    mode = engine.folder.stat().st_mode
    engine.folder.chmod(0o700)
    try:
        with task.open(sample) as session:
            assert set(session._server.layers) == {*before.layers} - {"user"}
            solved(task, sample, session)
            assert session.grade("done").correct
    finally:
        engine.folder.chmod(mode)


@pytest.mark.thorough
def test_the_fork_server_may_die_and_sessions_start_a_new_one(task, sample):
    with task.open(sample) as session:
        before = task._pool._running
        os.kill(before.servers._fork_server._process.pid, signal.SIGKILL)
        assert before.servers.ended.wait(30)
        with pytest.raises(RolloutFault, match="killed"):
            session.step("print(1)")
    with task.open(sample) as session:
        solved(task, sample, session)
        assert session.grade("done").correct
    assert not before.folder.exists()


def test_the_start_runs_a_piece_of_code_and_says_what_confines_it(task, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(task._pool, "layers", None)
    task.start(said.append)
    assert said[0] == "AppWorld: loading the engine"
    assert said[1].startswith("AppWorld: agent code is confined by: ")
    monkeypatch.setattr(task, "_check_engine", lambda: pytest.fail("the engine has run code already"))
    task.start(said.append)


def test_a_machine_that_cannot_confine_agent_code_is_refused_unless_that_is_allowed(task, sample, monkeypatch):
    monkeypatch.setattr(task._pool, "_confined", True)
    monkeypatch.setattr("ace_bench.tasks.appworld.pool.missing_layers", lambda _: "it reads files")
    with pytest.raises(ConfigError, match="cannot confine what agents run: it reads files; use"), task.open(sample):
        pass
    monkeypatch.setattr(task._pool, "_confined", False)
    said: list[str] = []
    with task.open(sample):
        task._pool.describe(said.append)
    assert said[1:] == ["AppWorld: agent code can do what you can do (task.confinement=none): it reads files"]
