"""Count the package's lines and files, and what one step of ACE passes through.

    python scripts/measure_house.py [OVERRIDE...]

It runs ``task=finer method=ace`` with the embedded backbone, one rollout at a time, and watches one step: all functions
called between the record of a step and the record of the next. ``files`` and ``functions`` are those of ``ace_bench``
in that step, ``frames`` the deepest stack of them from ``main`` to the gateway, both ends included. ``--list`` prints
the files and that stack.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ace_bench.cli.main import main

PACKAGE = Path(sys.modules["ace_bench"].__path__[0])
WATCHED_STEP = 3
GUESTS = PACKAGE.parent / "packages"
READER = GUESTS / "ace_rehearsal" / "reader"
AIMS = {
    "lines": 30_000,
    "files": 280,
    "lines of packages/": 14_000,
    "lines of the reader": 2_500,
    "files of a step": 25,
    "frames to the gateway": 18,
}
SETTINGS = ("task=finer", "task.source=sample", "method=ace", "backbone=embedded", "limit=6", "mode.epochs=2")
ALONE = ("concurrency=1", "mode.before=false")


@dataclass
class Watch:
    """The functions of ``ace_bench`` that the watched step calls."""

    steps: int = 0
    called: set[CodeType] = field(default_factory=set)
    stack: list[CodeType] = field(default_factory=list)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call; a profiling function of Python."""
        code = frame.f_code
        if not is_ours(code):
            return
        if event == "return" and code.co_name == "add_step":
            self.steps += 1
        if event != "call" or self.steps != WATCHED_STEP:
            return
        self.called.add(code)
        if code.co_name == "complete" and code.co_filename.endswith("runners/gateway.py"):
            stack = frames_above(frame)
            self.stack = max(self.stack, stack, key=len)

    @property
    def files(self) -> list[str]:
        """The files of the functions, from the package's folder."""
        return sorted({str(Path(code.co_filename).relative_to(PACKAGE)) for code in self.called})


def is_ours(code: CodeType) -> bool:
    """Whether a function belongs to ``ace_bench``; the body of a module is none."""
    return code.co_filename.startswith(f"{PACKAGE}/") and code.co_name != "<module>"


def frames_above(frame: FrameType) -> list[CodeType]:
    """Return the stack of ``ace_bench`` up to a frame, outermost first."""
    found: list[CodeType] = []
    above: FrameType | None = frame
    while above is not None:
        if is_ours(above.f_code):
            found.append(above.f_code)
        above = above.f_back
    return found[::-1]


def watch_run(overrides: list[str]) -> Watch:
    """Run ACE in this process and return what its watched step called."""
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        threading.setprofile(watch)
        sys.setprofile(watch)
        try:
            status = main(["run", *SETTINGS, *overrides, *ALONE, f"results={folder}"])
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    if status or watch.steps <= WATCHED_STEP:
        raise SystemExit(f"the run ended with status {status} after {watch.steps} steps: nothing was measured")
    return watch


def count_lines(folder: Path) -> tuple[int, int]:
    """Return the lines and the number of the Python files in a folder."""
    files = list(folder.rglob("*.py"))
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files), len(files)


def report(watch: Watch) -> str:
    """Return the figures, each with its aim."""
    lines, files = count_lines(PACKAGE)
    figures = {
        "lines": lines,
        "files": files,
        "lines of packages/": count_lines(GUESTS)[0],
        "lines of the reader": count_lines(READER)[0],
        "files of a step": len(watch.files),
        "functions of a step": len(watch.called),
        "frames to the gateway": len(watch.stack),
    }
    for path in sorted(PACKAGE.iterdir()):
        if (path / "__init__.py").is_file():
            figures[f"lines of {path.name}/"] = count_lines(path)[0]
    for path in sorted(GUESTS.glob("*/__init__.py")):
        figures[f"lines of {path.parent.name}/"] = count_lines(path.parent)[0]
    width = max(map(len, figures))
    aims = {name: f"  (aim: at most {AIMS[name]:,})" for name in AIMS}
    return "\n".join(f"{name:{width}} {value:>7,}{aims.get(name, '')}" for name, value in figures.items())


def describe(watch: Watch) -> str:
    """Return the files of the step and the stack to the gateway."""
    stack = (f"{Path(code.co_filename).relative_to(PACKAGE)}: {code.co_qualname}" for code in watch.stack)
    return "\n".join(["files of a step:", *watch.files, "", "frames to the gateway:", *stack])


if __name__ == "__main__":
    lists = "--list" in sys.argv
    watched = watch_run([word for word in sys.argv[1:] if word != "--list"])
    print(f"\n{report(watched)}")
    if lists:
        print(f"\n{describe(watched)}")
