"""The process in which ``sandbox`` runs code. It is a script: ``sandboxed.py LIMITS``, the code on standard input."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any

REFUSED = 111
"""Exit status where the machine cannot confine the code, which was therefore not begun."""

_FILE_BYTES = 1 << 20


def main() -> None:
    """Confine this process, then run the code."""
    limits = json.loads(sys.argv[1])
    parent = os.getppid()
    sys.path.insert(0, limits["packages"])
    from ace_bench.core.confine import NEEDED, Bounds, confine, libraries

    sys.path.pop(0)
    _limit(limits["seconds"])
    bounds = {name: limits[name] for name in ("folder", "uid", "memory")}
    layers = confine(Bounds(readable=libraries(), **bounds), parent)
    if not set(layers) >= NEEDED:
        os._exit(REFUSED)
    os.write(limits["begun"], json.dumps(layers).encode())
    os.close(limits["begun"])
    _run(sys.stdin.buffer.read().decode())


def _limit(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)  # ends the process; the parent does where the code undoes this
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    for kind, most in (
        (resource.RLIMIT_CPU, int(used + seconds) + 1),
        (resource.RLIMIT_FSIZE, _FILE_BYTES),
        (resource.RLIMIT_NOFILE, 32),
        (resource.RLIMIT_NPROC, 0),
    ):
        resource.setrlimit(kind, (most, most))


def _run(code: str) -> None:
    sys.argv[:] = ["<code>"]
    random.seed(0)  # a run that is continued shows the model what it was shown before
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    try:
        exec(compile(code, "<code>", "exec"), names)
    except SystemExit:
        pass
    except BaseException as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
        report = traceback.TracebackException.from_exception(error)
        report.stack = traceback.StackSummary.from_list(frames)
        sys.stderr.write("".join(report.format()))  # a model reads this
    finally:
        with suppress(OSError, ValueError):  # the code may have closed it
            sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
