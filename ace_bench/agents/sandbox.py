"""Runs Python that a model wrote in a confined process; ours, because a container needs root, a daemon or an image.

Dynamic Cheatsheet needs it; docs/sandbox.md tells more.

The code runs only where it is kept from files and network: on a machine that cannot do that it is refused, and the
model is shown so. Only the standard library is there, so that an outcome does not depend on what is installed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from ace_bench.agents import sandboxed
from ace_bench.core.confine import describe_layers, own_user
from ace_bench.core.resources import import_folder
from ace_bench.core.scratch import clear_abandoned, scratch_folder

_SCRATCH = "code"
_HELP = "See docs/methods/dynamic_cheatsheet.md"
_REPORT_BYTES = 1000
REFUSED = "Code cannot be run here: this machine has no means to confine it."
_STOPPED = "(stopped after {seconds:g} seconds)"
_TIME_IS_UP = (signal.SIGALRM, signal.SIGXCPU)
_STARTING_S = 5.0
"""Most seconds the process may take to be ready, beyond those that its code has."""
_ENVIRONMENT = {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
"""All that the process sees of the environment; sets print in one order, so that a run repeated shows the same."""


class Sandbox:
    """``seconds`` of wall and of processor time, ``memory_mib`` of address space, ``output_chars`` that are shown.

    The time limit is that of Dynamic Cheatsheet's official code.
    """

    def __init__(self, *, seconds: float = 3.0, memory_mib: int = 512, output_chars: int = 10_000):
        self._seconds = seconds
        self._memory = memory_mib << 20
        self._shown = output_chars
        self.layers: tuple[str, ...] | None = None
        """What confined the code that was run last; ``None`` if none was."""

    def start(self, say: Callable[[str], None]) -> None:
        """Report how this machine confines code, before the first call."""
        clear_abandoned(_SCRATCH)
        if self.run("") == REFUSED:
            say(f"Code of the generator is not run: this machine cannot confine it. {_HELP}")
        else:
            say(f"Code of the generator is confined by: {describe_layers(self.layers or ())}. {_HELP}")

    def run(self, code: str) -> str:
        """Return what the code printed, its errors included, or why it was not run; safe between threads."""
        uid = own_user(Path(os.__file__).parent)  # its code imports from there
        with scratch_folder(_SCRATCH) as scratch, tempfile.TemporaryFile() as output:
            folder = scratch / "own"
            folder.mkdir()
            if uid is not None:
                scratch.chmod(0o711)
                os.chown(folder, uid, uid)
            limits = {"folder": str(folder), "uid": uid, "memory": self._memory, "seconds": self._seconds}
            layers, status = self._execute(limits, code, output)
            output.seek(0)
            text = output.read(4 * self._shown + 1).decode(errors="replace")
        if layers:
            self.layers = tuple(json.loads(layers))
        elif status == sandboxed.REFUSED:
            return REFUSED
        parts = [text if len(text) <= self._shown else f"{text[: self._shown]}\n(output cut here)"]
        if status is None or -status in _TIME_IS_UP:
            parts.append(_STOPPED.format(seconds=self._seconds))
        elif status < 0:
            parts.append(f"(killed by signal {-status})")
        return "\n".join(filter(None, (part.strip("\n") for part in parts)))

    def _execute(self, limits: Mapping[str, object], code: str, output: IO[bytes]) -> tuple[bytes, int | None]:
        """Return what confined the code, b"" if it was not begun, and the exit status, ``None``: time was up.

        Whatever is left of the process is ended.
        """
        reading, writing = os.pipe()  # closed before the code begins, which can therefore not claim what it likes
        arguments = json.dumps({**limits, "begun": writing, "packages": str(import_folder())})
        with open(reading, "rb", buffering=0) as begun:
            try:
                child = subprocess.Popen(
                    [sys.executable, "-P", "-s", "-S", "-B", "-X", "utf8", sandboxed.__file__, arguments],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=Path(sandboxed.__file__).parent,
                    env=_ENVIRONMENT,
                    pass_fds=(writing,),
                    start_new_session=True,
                )
            finally:
                os.close(writing)
            status = self._finish(child, code)
            return begun.read(_REPORT_BYTES), status

    def _finish(self, child: subprocess.Popen[bytes], code: str) -> int | None:
        with child:
            try:
                child.communicate(code.encode(errors="replace"), timeout=_STARTING_S + self._seconds)
                return child.returncode
            except subprocess.TimeoutExpired:
                return None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
