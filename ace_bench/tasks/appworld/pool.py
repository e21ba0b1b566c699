"""The engine's processes behind a task's sessions: servers, evaluation of what they saved, and the official metrics.

Saved files are first copied to a folder that agent code cannot reach. The world's process wrote the databases' changes,
which are graded, and the versions; the interpreter, and so perhaps agent code, wrote the logs. Only files with the
engine's names are copied, no links, up to a total size.

A task is passed when all its unit tests pass. Task goal completion (TGC) is the share of tasks passed, scenario goal
completion (SGC) the share of scenarios all of whose tasks are passed (paper, section 4.3; the engine's evaluator).
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import re
import stat
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ace_bench.core.confine import describe_layers, missing_layers
from ace_bench.core.encoding import convert
from ace_bench.core.errors import ConfigError
from ace_bench.core.scratch import clear, clear_abandoned, scratch_folder
from ace_bench.core.types import Grade
from ace_bench.tasks.answers import percent
from ace_bench.tasks.appworld.data import check_path, close_to_others, copy_visible
from ace_bench.tasks.appworld.engine import EngineSettings
from ace_bench.tasks.appworld.servers import Server, Servers, task_fault

MAX_BYTES = 64 << 20
"""Most bytes that are copied from one episode."""

_KNOWN = {
    "dbs": re.compile(r"[a-z_]+\.jsonl|model_hashes\.json"),
    "logs": re.compile(r"api_calls\.jsonl|environment_io\.md"),
    "version": re.compile(r"code\.txt|data\.txt"),
}
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Unusable(Exception):
    """The outputs cannot be scored, and the agent caused it: the engine itself writes valid ones."""


def collect(episode: Path, task: str, target: Path) -> None:
    """Copy what was saved of a task from an episode's folder to ``target``; raises ``Unusable``."""
    copied = 0
    saved = ("world", "out", "tasks", task)
    places = {"dbs": (*saved, "dbs"), "logs": ("agent", "logs"), "version": (*saved, "version")}
    for kind, folders in places.items():
        (target / kind).mkdir(parents=True)
        with _folder(episode, *folders) as folder:
            for name in sorted(filter(_KNOWN[kind].fullmatch, os.listdir(folder))):
                content = _read_content(folder, name, MAX_BYTES - copied)
                copied += len(content)
                (target / kind / name).write_bytes(content)


@contextmanager
def _folder(parent: Path, *names: str) -> Iterator[int]:
    """Open a nested folder step by step; no step may be a link."""
    descriptor = os.open(parent, _FOLDER)
    try:
        for name in names:
            inner = _open(name, _FOLDER, descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _read_content(folder: int, name: str, most: int) -> bytes:
    descriptor = _open(name, _FILE, folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise Unusable(f"{name} is not a plain file")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise Unusable(f"the saved files hold more than {MAX_BYTES >> 20} MiB")
    return content


def _open(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        raise Unusable(f"{name}: {error.strerror}") from error


EVALUATION_S = 60
"""Most seconds that an evaluation may take: outputs can make it slow on purpose."""


class Verdict(msgspec.Struct, frozen=True):
    """The evaluator's result: how many unit tests passed, and its report; by default, that nothing was evaluated."""

    success: bool = False
    passes: int = 0
    report: str = ""


def metrics(grades: Sequence[Grade]) -> Mapping[str, float]:
    """Return TGC and SGC in percent, overall and by difficulty, and the mean number of pieces of code run."""
    if not grades:
        return {}
    levels: dict[str, list[Grade]] = defaultdict(list, {"": list(grades)})
    for grade in sorted(grades, key=lambda grade: grade.detail["difficulty"]):
        levels[f"_level{grade.detail['difficulty']:.0f}"].append(grade)
    return {
        **{
            f"tgc{level}": percent(sum(grade.correct for grade in level_grades), len(level_grades))
            for level, level_grades in levels.items()
        },
        **{f"sgc{level}": _scenarios(level_grades) for level, level_grades in levels.items()},
        "interactions": sum(grade.detail["interactions"] for grade in grades) / len(grades),
    }


def _scenarios(grades: Sequence[Grade]) -> float:
    passed: dict[str, bool] = {}
    for grade in grades:
        passed[grade.group] = passed.get(grade.group, True) and grade.correct
    return percent(sum(passed.values()), len(passed))


_SCRATCH = "appworld"

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class _Running:
    folder: Path
    servers: Servers
    close: Callable[[], None]


class Pool:
    """Starts environment servers and scores their outputs; safe between threads.

    ``root`` is the full data root, ``confined`` whether servers must be confined.
    """

    def __init__(self, settings: EngineSettings, *, root: Path, confined: bool):
        self.layers: tuple[str, ...] | None = None
        """What confines the server that was started last; ``None`` before the first."""
        self._confined = confined
        self._settings = settings
        self._root = root
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._numbers = itertools.count(1)

    def describe(self, say: Say) -> None:
        """Report what confines the server that was started last."""
        layers = self.layers or ()
        say(f"AppWorld: agent code is confined by: {describe_layers(layers)}. See docs/tasks/appworld.md")
        if missing := missing_layers(layers):
            say(f"AppWorld: agent code can do what you can do (task.confinement=none): {missing}")

    def server(self, task: str, *, timeout: int) -> Server:
        """Start a server for one episode of a task; ``timeout`` is the engine's limit for a piece of code, in seconds.

        Raises ``RolloutFault`` if that fails, ``ConfigError`` where all do, or where this machine cannot confine it.
        """
        server = self._ensure_running().servers.start(task, timeout=timeout)
        if self._confined and (missing := missing_layers(server.layers)):
            server.close()
            raise ConfigError(
                f"this machine cannot confine what agents run: {missing}; use another machine (docs/tasks/appworld.md "
                "has a container), or pass task.confinement=none to let their code do what you can do"
            )
        self.layers = server.layers
        return server

    def score(self, server: Server, task: str) -> Verdict:
        """Evaluate the outputs of a server that has ended against the full data root.

        Raises ``Unusable`` if the outputs cause an error, ``RolloutFault`` where the evaluation fails otherwise.
        """
        running = self._ensure_running()
        outputs = running.folder / "scores" / str(next(self._numbers))
        try:
            collect(server.folder, task, outputs / "tasks" / task)
            limits = {"root": str(self._root), "memory": self._settings.memory, "seconds": EVALUATION_S}
            request = outputs / "request.json"
            request.write_text(json.dumps({"task": task, "outputs": str(outputs), **limits}))
            answer = running.servers.score(request, seconds=3 * EVALUATION_S)
        finally:
            clear(outputs)
        if answer is not None and answer.get("bad_outputs"):
            raise Unusable(answer["error"].strip().splitlines()[-1])
        if answer is None or "error" in answer:
            reason = "there was no answer" if answer is None else answer["error"]
            raise task_fault("scoring", f"{task} could not be evaluated: {reason}")
        verdict: Verdict = convert(answer, Verdict)
        return verdict

    def close(self) -> None:
        """End all processes and remove their folder; safe at any time and more than once."""
        with self._lock:
            if self._running is not None:
                self._running.close()
                self._running = None
                atexit.unregister(self.close)

    def _ensure_running(self) -> _Running:
        """Return the running processes; start them if there are none or the fork server has died."""
        with self._lock:
            if self._running is not None and self._running.servers.ended.is_set():
                self._running.close()
                self._running = None
            if self._running is None:
                self._running = self._start()
                atexit.register(self.close)
            return self._running

    def _start(self) -> _Running:
        close_to_others(self._root)
        clear_abandoned(_SCRATCH)
        with ExitStack() as stack:
            folder = stack.enter_context(scratch_folder(_SCRATCH))
            check_path(folder)
            folder.chmod(0o711)
            (folder / "scores").mkdir(mode=0o700)
            copy_visible(self._root, folder / "world")
            servers = Servers(self._settings, root=folder / "world", folder=folder)
            stack.callback(servers.close)
            servers.wait()
            return _Running(folder=folder, servers=servers, close=stack.pop_all().close)
