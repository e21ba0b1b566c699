"""Runs hostile programs in a sandbox and prints what got out, as JSON: a program, so that any machine can be played.

    python -m tests.hostile.run cheatsheet|appworld|unconfined [NAME ...]

A name is that of a program or the beginning of several; without any, all are run.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from ace_bench.agents import sandbox
from ace_bench.core.confine import adopt_orphans
from ace_bench.core.errors import RolloutFault
from ace_bench.core.scratch import scratch_folder
from ace_bench.tasks.appworld import session as sessions
from ace_bench.tasks.appworld.engine_side.processes import descendants
from tests.hostile.bait import Bait, laid
from tests.hostile.corpus import PRELUDE, PROGRAMS
from tests.tasks.appworld.conftest import make

_BROKEN = re.compile(r"^(NameError|SyntaxError|AttributeError|TypeError|IndentationError)\b", re.MULTILINE)
_CHEATSHEET_MIB, _APPWORLD_MIB = 256, 1024
_UNCONFINED_S = 10.0
_ENDING_S = 3.0


def main() -> None:
    """Run what the command line names and print the report."""
    kind, *wanted = sys.argv[1:]
    names = [name for name in PROGRAMS if not wanted or name.startswith(tuple(wanted))]
    adopt_orphans()
    layers: list[str] = []
    with laid(limit_mib=_APPWORLD_MIB if kind == "appworld" else _CHEATSHEET_MIB) as bait:
        outside = set(descendants(os.getpid()))
        problems = list(_KINDS[kind](bait, names, layers))
        problems += [f"process {left} is left: {_command(left)}" for left in _left(outside)]
    report = {"layers": layers, "ran": len(names), "problems": problems}
    print(json.dumps(report, indent=1))  # noqa: T201 - the report


def _left(outside: Set[int]) -> Set[int]:
    """Return the processes that stay; one that is just ending gets some time."""
    until = time.monotonic() + _ENDING_S
    while (left := set(descendants(os.getpid())) - outside) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return "ended meanwhile"


def text_of(bait: Bait, name: str) -> str:
    """Return a program with all that it needs to know."""
    return f"B = {bait.facts!r}\n{PRELUDE}\n{PROGRAMS[name]}"


def judged(bait: Bait, name: str, output: str) -> Iterator[str]:
    """Say what is wrong about a program's output: it got out, read the secret or never really tried."""
    for word, problem in (("ESCAPED", "it got out"), (bait.mark, "it read the secret")):
        if word in output:
            yield f"{name}: {problem}: {output[-500:]}"
    if _BROKEN.search(output):
        yield f"{name}: the program is broken: {output[-500:]}"


def _cheatsheet(bait: Bait, names: Sequence[str], layers: list[str]) -> Iterator[str]:
    sandbox._STARTING_S = 3.0
    box = sandbox.Sandbox(seconds=1, memory_mib=_CHEATSHEET_MIB, output_chars=2000)
    box.start(lambda _: None)
    layers += box.layers or ()
    with ThreadPoolExecutor(3) as pool:
        for _, group in groupby(names, lambda name: name.split(":")[0]):
            tried = list(group)
            for name, output in zip(tried, pool.map(lambda name: box.run(text_of(bait, name)), tried), strict=True):
                yield from judged(bait, name, output)
            yield from (f"{tried[0]} to {tried[-1]}: {trace}" for trace in bait.traces())


def _appworld(bait: Bait, names: Sequence[str], layers: list[str]) -> Iterator[str]:
    sessions.GRACE_S = 3.0
    task = make(timeout=2, memory_gib=_APPWORLD_MIB / 1024, confinement="none")
    try:
        task.start(lambda _: None)
        layers += task.confinement or ()
        sample, left = task.samples("train")[0], list(names)
        while left:
            with task.open(sample) as session:
                while left and not session.finished:
                    name = left.pop(0)
                    text = base64.b64encode(text_of(bait, name).encode()).decode()
                    try:
                        output = session.step(f"exec(__import__('base64').b64decode({text!r}).decode(), {{}})")
                    except RolloutFault as error:
                        yield f"{name}: the environment is blamed: {error}"
                        break
                    yield from judged(bait, name, output)
                    yield from (f"{name}: {trace}" for trace in bait.traces())
    finally:
        task.close()


def _unconfined(bait: Bait, names: Sequence[str], layers: list[str]) -> Iterator[str]:
    """Say which programs get out where nothing confines them."""
    del bait, layers
    for name in names:
        with laid(limit_mib=_CHEATSHEET_MIB) as fresh, scratch_folder("unconfined") as folder:
            others = set(descendants(os.getpid()))
            command = [sys.executable, "-c", text_of(fresh, name)]
            with (folder / "output").open("w+b") as output:
                child = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output, start_new_session=True)
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_UNCONFINED_S)
                for left in set(descendants(os.getpid())) - others:
                    with suppress(ProcessLookupError):
                        os.kill(left, signal.SIGKILL)
                child.wait()
                output.seek(0)
                text = output.read().decode(errors="replace")
            if next(judged(fresh, name, text), None) or fresh.traces():
                yield name


_KINDS = {"cheatsheet": _cheatsheet, "appworld": _appworld, "unconfined": _unconfined}

if __name__ == "__main__":
    main()
