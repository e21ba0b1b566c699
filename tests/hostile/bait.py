"""What hostile programs are after: files, sockets and processes of the user, watched for any trace of success."""

from __future__ import annotations

import hashlib
import os
import resource
import secrets
import select
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Bait:
    """``facts`` is what programs know of it as ``B``; ``mark`` is in all that they must not read."""

    folder: Path
    mark: str
    name: str
    facts: dict[str, Any]
    listeners: dict[str, socket.socket]
    before: dict[str, object]

    def traces(self) -> list[str]:
        """Say what has happened to it."""
        readable, _, _ = select.select(list(self.listeners.values()), [], [], 0)
        reached = [f"{name} was reached" for name, listener in self.listeners.items() if listener in readable]
        now = _state(self.folder, self.name)
        changed = [f"{key} changed" for key in self.before.keys() | now.keys() if self.before.get(key) != now.get(key)]
        return reached + changed


@contextmanager
def laid(*, limit_mib: int) -> Iterator[Bait]:
    """Lay out bait that nothing protects but the sandbox, as far as the harness's user can."""
    mark, name = secrets.token_hex(8), secrets.token_hex(8)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bait-")))
        folder.chmod(0o777)
        _make_files(folder, mark)
        listeners = {name: stack.enter_context(listener) for name, listener in _listeners(folder, name).items()}
        stack.enter_context(_tmux(folder / "tmux"))
        facts = {
            "name": name,
            "limit_mib": limit_mib,
            "pid": os.getpid(),
            "home": os.environ["HOME"],
            "folder": str(folder),
            "now": time.time(),
            **{name: str(folder / name) for name in ("secret", "target", "stream", "datagram", "tmux")},
            **{name: listeners[name].getsockname()[1] for name in ("tcp", "udp")},
        }
        yield Bait(folder=folder, mark=mark, name=name, facts=facts, listeners=listeners, before=_state(folder, name))


def _make_files(folder: Path, mark: str) -> None:
    (folder / "secret").write_text(mark)
    (folder / "secret").chmod(0o600 if os.getuid() else 0o644)  # root's code has another user: only the box is to help
    (folder / "target").write_text("kept")
    (folder / "target").chmod(0o666)
    with suppress(OSError):
        os.setxattr(folder / "target", "user.kept", b"1")
    (folder / "module.py").write_text(f"SECRET = {mark!r}\n")
    (folder / "empty").mkdir(mode=0o777)
    with sqlite3.connect(folder / "database.db") as database:
        database.execute("CREATE TABLE t AS SELECT ? AS secret", (mark,))
    database.close()


def _listeners(folder: Path, name: str) -> dict[str, socket.socket]:
    stream, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for listener, address in ((stream, f"{folder}/stream"), (abstract, f"\0{name}"), (datagram, f"{folder}/datagram")):
        listener.bind(address)
    udp.bind(("127.0.0.1", 0))
    for listener in (stream, abstract):
        listener.listen()
    for path in (folder / "stream", folder / "datagram"):
        path.chmod(0o777)
    tcp = socket.create_server(("127.0.0.1", 0))
    return {"stream": stream, "abstract": abstract, "datagram": datagram, "tcp": tcp, "udp": udp}


@contextmanager
def _tmux(path: Path) -> Iterator[None]:
    """Run a tmux server of the user where there is one: whoever can talk to it can do what the user can."""
    if shutil.which("tmux") is None:
        yield
        return
    command = ["tmux", "-S", str(path), "-f", "/dev/null"]
    # In several words it is started without a shell, which might start it after our look at what runs.
    subprocess.run([*command, "new-session", "-d", "sleep", "3600"], check=True)
    try:
        yield
    finally:
        subprocess.run([*command, "kill-server"], check=True)


def _state(folder: Path, name: str) -> dict[str, object]:
    """Return everything that a program might change."""
    state: dict[str, object] = {}
    for path in (folder, *folder.rglob("*")):
        about = path.lstat()
        text = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        times = (about.st_mtime_ns, about.st_ctime_ns) if path.name != "tmux" else ()
        state[str(path)] = (about.st_mode, about.st_uid, about.st_gid, about.st_size, times, text, os.listxattr(path))
    for place in ("/tmp", "/dev/shm", os.environ["HOME"]):
        state[place] = [entry for entry in os.listdir(place) if name in entry]
    return state | {
        "the harness's priority": os.getpriority(os.PRIO_PROCESS, 0),
        "the harness's processors": os.sched_getaffinity(0),
        "the harness's scheduler": os.sched_getscheduler(0),
        "the harness's limits": [resource.getrlimit(kind) for kind in range(16)],
        "the host's name": socket.gethostname(),
    }
