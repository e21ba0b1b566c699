"""The case ``results``: what tables and the viewer need for a folder of many runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

from ace_bench.report.page.content import RUNS, Content
from ace_bench.report.page.results import Results
from ace_bench.report.records import find_runs
from ace_benchmarks.many_runs import make_runs
from ace_benchmarks.measuring import Figure, RunFailedError, Setting

_ORIGINALS = (
    *(("finer", method) for method in (("base",), ("icl",), ("ace", "mode.epochs=1"), ("ace", "mode=online"))),
    *((task, method) for task in ("formula", "ddxplus") for method in (("base",), ("ace", "mode.epochs=1"))),
)
"""Task, method and settings of the runs that the others are made from."""


_PAUSE_S = 1.0
"""The viewer looks at the folder again after this time."""
_AIM = "< 60 s"
_KIB = 1024 if sys.platform == "linux" else 1024**2
"""In which the system counts memory, per MiB."""


def results(setting: Setting) -> list[Figure]:
    """tables and the viewer over many finished runs of about 100 samples (CPU seconds)"""
    originals = [
        setting.run(f"task={task}", setting.source(task), "limit=100", f"method={method}", *more)
        for task, (method, *more) in _ORIGINALS
    ]
    folder = setting.scratch / "many"
    make_runs(originals, folder, setting.runs)
    found, table = setting.scratch / "found", setting.scratch / "table.csv"
    viewer = Results(folder)
    content = Content(viewer, live=True)
    figures = [
        Figure(name=f"{setting.runs:,} runs: find and read", measured=_cpu(lambda: find_runs(folder))),
        Figure(name="viewer: first look at the folder", measured=_cpu(viewer.version)),
        Figure(name="viewer: settings in which the runs differ", measured=_cpu(viewer.listing)),
        Figure(name="viewer: answer with the list", measured=_cpu(lambda: content.read(RUNS, {}))),
    ]
    time.sleep(_PAUSE_S)
    return [
        *figures,
        Figure(name="viewer: another look at the folder", measured=_cpu(viewer.version)),
        Figure(name="ace-bench tables", measured=_command("tables", f"--results={folder}", f"--out={found}"), aim=_AIM),
        Figure(
            name="ace-bench tables --rows",
            measured=_command("tables", str(folder), "--rows=method", f"--out={table}"),
            aim=_AIM,
        ),
    ]


def _cpu(act: Callable[[], object]) -> str:
    started = time.process_time()
    act()
    return f"{time.process_time() - started:.2f} s"


def _command(*words: str) -> str:
    """Run a command and return its CPU time and the most memory that it held; raises ``RunFailedError``."""
    with subprocess.Popen([sys.executable, "-m", "ace_bench", *words], stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RunFailedError(f"{words[0]} ended with status {process.returncode}")
    return f"{used.ru_utime + used.ru_stime:.1f} s, {used.ru_maxrss / _KIB:.0f} MiB"
