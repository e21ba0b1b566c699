"""Machines under bubblewrap: what their Dockerfile makes, and what confined commands can reach. They need no Harbor."""

import asyncio
import socket
from contextlib import contextmanager

import pytest

from ace_environments.bubblewrap import Machine, reason_against
from tests.packages.environments.machine_tasks import write_tasks

REASON = reason_against()
pytestmark = [pytest.mark.skipif(REASON is not None, reason=str(REASON))]


@contextmanager
def machine_of(folder, workdir=None, **files):
    """Yield a function that runs a command and returns what it printed, its errors and its status."""
    machine = Machine(write_tasks(folder / "tasks", ("a",), **files) / "a" / "environment")
    machine.make(workdir)

    def run(command, *, seconds=60, **more):
        settings = {"folder": None, "variables": {}, "memory": 512, **more}
        return asyncio.run(machine.run(command, seconds=seconds, **settings))

    try:
        yield machine, run
    finally:
        machine.remove()
    assert not machine.root.exists()


def test_a_dockerfile_makes_folders_files_and_variables(tmp_path):
    lines = (
        *("# a comment", "FROM debian", "env PLACE=here  OTHER='a b'", "EXPOSE 80", "WORKDIR /srv", "WORKDIR work"),
        *("COPY notes.txt data/ ./", "COPY data/more.csv /root/table.csv", "COPY \\", "  notes.txt /tmp", ""),
    )
    files = {"dockerfile": "\n".join(lines), "notes.txt": "a note", "data/more.csv": "1"}
    with machine_of(tmp_path, **files) as (_, run):
        shown = run("pwd; ls -A; cat notes.txt /root/table.csv /tmp/notes.txt; echo $PLACE $OTHER $HOME $LANG $MORE")
        assert shown == ("/srv/work\nmore.csv\nnotes.txt\na note1a notehere a b /root C.UTF-8\n", "", 0)
        assert run("pwd; echo $MORE; exit 3", folder="/tmp", variables={"MORE": "more"}) == ("/tmp\nmore\n", "", 3)
    for folder, dockerfile, said in ((None, "", "/app"), ("sub", "WORKDIR /srv", "/srv/sub"), ("/logs", "", "/logs")):
        with machine_of(tmp_path / said[1:], workdir=folder, dockerfile=dockerfile) as (_, run):
            assert run("pwd; ls /logs") == (f"{said}\nagent\nartifacts\nverifier\n", "", 0)
    with pytest.raises(FileNotFoundError, match=r"the Dockerfile copies none\.txt, which is not in"):
        Machine(write_tasks(tmp_path / "b", ("a",), dockerfile="COPY none.txt .") / "a" / "environment").make(None)


@pytest.mark.parametrize(
    "line",
    [
        "RUN apt-get update",
        "COPY ../tests /app/",
        "COPY --from=x a b",
        'COPY ["a", "b"]',
        "ENV PLACE here",
        "VOLUME /x",
    ],
)
def test_a_dockerfile_that_needs_a_container_is_refused(line, tmp_path):
    folder = write_tasks(tmp_path, ("a",), dockerfile=f"FROM x\n{line}\n") / "a" / "environment"
    with pytest.raises(ValueError, match="which machine=bubblewrap cannot do: choose machine=docker") as caught:
        Machine(folder)
    assert f"its Dockerfile has {line!r}" in str(caught.value)
    (folder / "Dockerfile").write_text("FROM x")
    Machine(folder)
    (folder / "docker-compose.yaml").touch()
    with pytest.raises(ValueError, match=r"needs a Dockerfile, and no docker-compose\.yaml"):
        Machine(folder)
    with pytest.raises(ValueError, match="needs a Dockerfile"):
        Machine(tmp_path)


def test_commands_reach_neither_this_system_nor_the_network_nor_each_other(tmp_path, monkeypatch):
    monkeypatch.setenv("PLANTED_API_KEY", "planted")
    with machine_of(tmp_path) as (machine, run), socket.create_server(("127.0.0.1", 0)) as listening:
        shown, errors, _ = run(f"ls / /tests /solution {tmp_path}; cat /etc/shadow; touch /usr/x /etc/x; env")
        assert "planted" not in shown
        assert errors.count("No such file or directory") == 4
        assert errors.count("Read-only file system") == 1
        assert not (machine.root / "etc").exists()
        assert run(f"echo > /dev/tcp/127.0.0.1/{listening.getsockname()[1]}")[2] == 1
        run("touch kept; (sleep 60; rm kept) & echo $!")
        assert run("ls; ls /proc | grep -c '^[0-9]'")[0].startswith("kept\n")
        assert len(run("head -c 2M /dev/zero")[0]) == 1 << 20
        assert run("ulimit -v; ulimit -f; ulimit -c", memory=100)[0] == f"{100 << 10}\n{256 << 10}\n0\n"
        with pytest.raises(TimeoutError):
            run("exec > /dev/null 2>&1; sleep 30", seconds=0.2)


def test_links_bring_nothing_in_or_out(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("1")
    with machine_of(tmp_path, dockerfile="WORKDIR /app\nCOPY . .", linked="x") as (machine, run):
        run(f"cd /logs/agent; echo 1 > kept; ln -s {secret} file; ln -s {tmp_path} folder; ln -s {tmp_path} /tmp/out")
        machine.copy_out("/logs/agent", tmp_path / "fetched")
        machine.copy_out("/logs/agent/kept", tmp_path / "one")
        assert [path.name for path in (tmp_path / "fetched").iterdir()] == ["kept"]
        assert (tmp_path / "one").read_text() == "1\n"
        machine.copy_in(secret, "/tests/secret")
        assert run("cat /tests/secret")[0] == "1"
        for act in (
            lambda: machine.copy_out("/tmp/out", tmp_path / "fetched"),
            lambda: machine.copy_in(secret, "/tmp/out/Dockerfile"),
            lambda: machine.copy_in(secret, "/logs/agent/file"),
            lambda: machine.copy_in(secret, "/usr/x"),
        ):
            with pytest.raises(ValueError, match=r"leads out of|belongs to this system"):
                act()


def test_a_system_that_cannot_confine_says_why(monkeypatch, tmp_path):
    assert reason_against() is None
    (tmp_path / "prlimit").write_text("#!/bin/sh\necho no >&2; exit 1\n")
    (tmp_path / "prlimit").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert reason_against() == "there is no program bwrap (Debian has it in bubblewrap and util-linux)"
    (tmp_path / "bwrap").touch(0o755)
    assert reason_against() == "bwrap cannot confine a command here: no"
