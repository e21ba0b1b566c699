"""Agent code against the walls around it. Each way of reaching out is shown to work on what is allowed."""

from __future__ import annotations

import base64
import os
from importlib.resources import files

import pytest

from ace_bench.core.confine import NEEDED
from ace_bench.tasks.appworld import servers
from tests.hostile.bait import laid
from tests.hostile.run import judged, text_of

READERS = {
    "pathlib": "import pathlib\nprint(pathlib.Path({path!r}).read_text())",
    "aliased open": "o = open\nprint(o({path!r}).read())",
    "io.FileIO": "print(__import__('io').FileIO({path!r}).read().decode())",
    "os.open by getattr": (
        "os = __import__('os')\nd = getattr(os, 'posix_' + 'spawn').__self__.__dict__['op' + 'en']({path!r}, 0)\n"
        "print(__import__('io').FileIO(d or {path!r}).read().decode())"
    ),
    "ctypes": (
        "c = __import__('ctypes')\nlibc = c.CDLL(None)\nd = libc.open({path!r}.encode(), 0)\n"
        "b = c.create_string_buffer(9999)\nn = libc.read(d, b, 9999)\nprint(b.raw[:n].decode() if n > 0 else 'failed')"
    ),
}


@pytest.fixture(scope="module")
def secrets(root, task):
    """Files that agent code must not read, each with a text that only it holds."""
    task_id = task.samples("test")[0].id.removeprefix("appworld-test-")
    truth = root / "data" / "tasks" / task_id / "ground_truth"
    builder = files("ace_bench.tasks.appworld") / "miniworld" / "builder.py"
    return {path: path.read_text()[:200] for path in (truth / "evaluation.py", truth / "solution.py", builder)}


@pytest.fixture(scope="module", params=[True, False], ids=["root", "ordinary"])
def world(request, task):
    """A session where the harness is root, and one where it is an ordinary user, as far as it knows."""
    if request.param and os.getuid():
        pytest.skip("only root can give servers users of their own")
    with pytest.MonkeyPatch.context() as patch:
        if not request.param:
            patch.setattr(servers, "own_user", lambda *_: None)
        with task.open(task.samples("test")[0]) as session:
            if not set(session._server.layers) >= NEEDED:
                pytest.skip("this kernel confines too little: see docs/tasks/appworld.md")
            yield session


@pytest.fixture(scope="module")
def bait():
    with laid(limit_mib=4096) as bait:
        yield bait


def run(world, code):
    """Run code that may end in an error; the world goes on."""
    shown = world.step(code)
    assert world.step("print('still ' + 'here')") == "still here\n"
    return shown


@pytest.mark.parametrize("how", READERS)
def test_no_way_of_reading_reaches_ground_truth_or_its_builder(world, secrets, how):
    allowed = world._server.folder / "agent" / "logs" / "environment_io.md"
    world.step("print(1)")
    assert "python" in run(world, READERS[how].format(path=str(allowed))), "the way itself works"
    for path, text in secrets.items():
        shown = run(world, READERS[how].format(path=str(path)))
        assert text.strip()[:40] not in shown
        assert "Permission denied" in shown or "failed" in shown


@pytest.mark.slow
def test_other_episodes_are_out_of_reach(world, task):
    with task.open(task.samples("test")[1]) as other:
        other.step("print('a secret of the other')")
        log = other._server.folder / "agent" / "logs" / "environment_io.md"
        assert "a secret of the other" in log.read_text()
        for how in READERS.values():
            assert "a secret" not in run(world, how.format(path=str(log)))
        listing = "import os\nl = os.scandir\nprint([e.name for e in l({!r})])"
        assert "logs" in run(world, listing.format(str(world._server.folder / "agent")))
        assert "Permission denied" in run(world, listing.format(str(other._server.folder.parent)))
        assert other.step("print(1 + 1)") == "2\n"


def test_no_task_and_no_database_can_be_read(world, task):
    data = world._pool._running.folder / "world" / "data"
    own, other = (data / "tasks" / sample.id.removeprefix("appworld-test-") for sample in task.samples("test")[:2])
    listing = "print([e.name for e in __import__('posix').scandir({!r})])"
    for folder in (data, data / "tasks", data / "base_dbs", own, other):
        assert "PermissionError" in run(world, listing.format(str(folder)))
    assert "venmo.json" in run(world, listing.format(str(data / "api_docs" / "standard")))
    for path in (own / "specs.json", own / "dbs" / "venmo.jsonl", other / "specs.json", data / "base_dbs" / "venmo.db"):
        assert path.is_file()
        assert "PermissionError" in run(world, READERS["pathlib"].format(path=str(path)))


def test_the_world_is_reached_by_the_apis_of_its_apps_only(world):
    call = "print(requester._post({!r}, data={!r}, raise_on_failure=False).text)"
    assert "password" in run(world, call.format("/venmo/auth/token", {"username": "x"}))
    save = {"from_db_home_path": "x", "to_db_home_path": str(world._server.folder / "world")}
    for url in ("/dbs", "/dbs/save", "/seed", "/spotify/../dbs/save", "//dbs", "/%64bs/save", "/admin/balance"):
        assert "No app named" in run(world, call.format(url, save))
    assert "No app named" in run(world, call.format("http://example.com/dbs", save))


@pytest.mark.parametrize(
    "name",
    [
        *("connecting: tcp", "connecting: unix", "connecting: abstract", "connecting: tmux", "reading: other_memory"),
        *("writing: mode", "writing: times", "starting: spawn", "starting: memory_file", "growing: memory_files"),
        *("signalling: kill", "signalling: by_file_owner", "signalling: kill_itself", "kernel: add_key"),
        "kernel: rings",
    ],
)
def test_hostile_programs_do_not_get_out(world, bait, name):
    text = base64.b64encode(text_of(bait, name).encode()).decode()
    shown = run(world, f"exec(__import__('base64').b64decode({text!r}).decode(), {{}})")
    assert list(judged(bait, name, shown)) == []
    assert bait.traces() == []


def test_nothing_can_be_written_but_in_the_episodes_own_folder(world, tmp_path):
    tmp_path.chmod(0o777)
    write = "print(__import__('io').FileIO({!r}, 'w').write(b'x'), 'written')"
    assert "1 written" in run(world, write.format(str(world._server.folder / "agent" / "mine")))
    assert "Permission denied" in run(world, write.format(str(tmp_path / "theirs")))
    specs = world._pool._running.folder / "world" / "data" / "tasks" / world._assignment.task / "specs.json"
    assert specs.is_file()
    assert "Permission denied" in run(world, write.format(str(specs)))
    assert list(tmp_path.iterdir()) == []


def test_no_secret_of_the_users_environment_is_there(world):
    names = run(world, "import os\nprint(sorted(os.environ))")
    assert "TMPDIR" in names
    assert "PLANTED" not in names, "the fixture planted one in the environment and one in a .env file"
    assert "planted" not in run(world, READERS["io.FileIO"].format(path="/proc/self/environ"))


def test_memory_is_limited_and_running_out_is_the_agents_own_error(world):
    assert "MemoryError" in run(world, "x = bytearray(5 << 30)")
