"""Count the package's lines and files, what one step of ACE passes through, and where a run's configuration goes.

    python scripts/measure_house.py [OVERRIDE...]

It runs ``task=finer method=ace`` with the embedded backbone, one rollout at a time, and watches two parts of the run.
One is a step: all functions called between the record of a step and the record of the next. ``files`` and ``functions``
are those of ``ace_bench`` in that step, ``frames`` the deepest stack of them from ``main`` to the gateway, both ends
included.

The other is the start, from ``main`` to the first call of a model. ``files of a start`` have a function that runs then.
``files of a configuration`` have a function that is given the configuration, in whatever form. Two settings of the run
have values that nothing else has. A function is given the configuration if both can be reached from one of its
arguments, through mappings, sequences and the attributes of objects. An argument that is wrapped, typed or renamed
counts like any other. ``made`` counts how often the method, the task and the initial context are made in the whole run.

``--list`` prints the files and the stack.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, MappingProxyType, ModuleType
from typing import Any

from ace_bench.cli.main import main

PACKAGE = Path(sys.modules["ace_bench"].__path__[0])
WATCHED_STEP = 3
OURS = ("ace_", "omegaconf")
"""Packages whose objects may carry the configuration."""
READER = PACKAGE / "backbones" / "embedded"
"""What answers in place of a model: no part of a step or of a start."""
GATEWAY = ("/gateway.py", "complete")
AIMS = {
    "files of a step": 25,
    "frames to the gateway": 18,
    "files of a configuration": 12,
    **dict.fromkeys(("method made", "task made", "initial context made"), 1),
}
SETTINGS = ("task=finer", "task.source=sample", "method=ace", "backbone=embedded", "limit=6", "mode.epochs=2")
ALONE = ("concurrency=1", "mode.before=false")
NAME, SEED = "traced_name", 40_013
"""Two settings that no other part of the program mentions."""
MOST_LOOKED_AT = 3_000
"""At most so many objects of each argument are searched for the settings."""
MAKES, STARTS = ("core/settings.py", "make_part"), ("ace/learner.py", "start")
"""The functions that make a part of a run, at a path of the configuration, and the initial context."""
MADE = ("method", "task", "initial context")


@dataclass
class Start:
    """The functions of ``ace_bench`` that run before the first call of a model, and those given the configuration."""

    over: bool = False
    called: set[CodeType] = field(default_factory=set)
    configured: dict[CodeType, None] = field(default_factory=dict)

    def note(self, frame: FrameType) -> None:
        """Note a call."""
        code = frame.f_code
        self.called.add(code)
        if code not in self.configured:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 12)]
            if any(holds_settings(frame.f_locals.get(name)) for name in names):
                self.configured[code] = None

    def files(self, functions: Iterable[CodeType]) -> list[str]:
        """Return the files of some functions, in the order of the functions."""
        return [*dict.fromkeys(place(code) for code in functions)]


@dataclass
class Watch:
    """The functions of ``ace_bench`` that the watched step calls, and what happens before the first."""

    steps: int = 0
    called: set[CodeType] = field(default_factory=set)
    stack: list[CodeType] = field(default_factory=list)
    start: Start = field(default_factory=Start)
    made: Counter[str] = field(default_factory=Counter)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call; a profiling function of Python."""
        code = frame.f_code
        if not is_ours(code):
            return
        if event == "call":
            if is_at(code, *MAKES) or is_at(code, *STARTS):
                self.made[frame.f_locals.get("path", "initial context")] += 1
            self.start.over |= is_at(code, *GATEWAY)
            if not self.start.over:
                self.start.note(frame)
        if event == "return" and code.co_name == "add_step":
            self.steps += 1
        if event != "call" or self.steps != WATCHED_STEP:
            return
        self.called.add(code)
        if is_at(code, *GATEWAY):
            stack = frames_above(frame)
            self.stack = max(self.stack, stack, key=len)

    @property
    def files(self) -> list[str]:
        """The files of the functions, from the package's folder."""
        return sorted({place(code) for code in self.called})


def place(code: CodeType) -> str:
    """Return the file of a function, from the folder of the package."""
    return str(Path(code.co_filename).relative_to(PACKAGE))


def is_at(code: CodeType, file: str, name: str) -> bool:
    """Whether a function has a name and is in a file, given by its end."""
    return code.co_name == name and code.co_filename.endswith(file)


def holds_settings(argument: object) -> bool:
    """Whether both marked settings can be reached from an argument."""
    found_values: set[object] = set()
    waiting, visited = [argument], set[int]()
    while waiting and len(visited) < MOST_LOOKED_AT:
        part = waiting.pop(0)
        if id(part) in visited or part is None or isinstance(part, type | ModuleType | CodeType):
            continue
        visited.add(id(part))
        if isinstance(part, str | int):
            found_values |= {value for value in (NAME, SEED) if part == value or str(part).endswith(f"={value}")}
            if len(found_values) == 2:
                return True
        elif isinstance(part, dict | MappingProxyType):
            waiting += part.values()
        elif isinstance(part, list | tuple | set | frozenset):
            waiting += part
        elif type(part).__module__.startswith(OURS):  # their properties are not called
            waiting += getattr(part, "__dict__", {}).values()
            waiting += (getattr(part, name, None) for name in getattr(part, "__struct_fields__", ()))
    return False


def is_ours(code: CodeType) -> bool:
    """Whether a function belongs to ``ace_bench`` without the reader; the body of a module is none."""
    file = code.co_filename
    return file.startswith(f"{PACKAGE}/") and not file.startswith(f"{READER}/") and code.co_name != "<module>"


def frames_above(frame: FrameType) -> list[CodeType]:
    """Return the stack of ``ace_bench`` up to a frame, outermost first."""
    codes: list[CodeType] = []
    above: FrameType | None = frame
    while above is not None:
        if is_ours(above.f_code):
            codes.append(above.f_code)
        above = above.f_back
    return codes[::-1]


def watch_run(overrides: list[str]) -> Watch:
    """Run ACE in this process and return what its watched step called."""
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        threading.setprofile(watch)
        sys.setprofile(watch)
        try:
            marked = (f"name={NAME}", f"seed={SEED}", f"results={folder}")
            status = main(["run", *SETTINGS, *overrides, *ALONE, *marked])
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
        "lines of the reader": count_lines(READER)[0],
        "files of a step": len(watch.files),
        "functions of a step": len(watch.called),
        "frames to the gateway": len(watch.stack),
        "files of a start": len(watch.start.files(watch.start.called)),
        "files of a configuration": len(watch.start.files(watch.start.configured)),
        "functions of a configuration": len(watch.start.configured),
        **{f"{name} made": watch.made[name] for name in MADE},
    }
    for path in sorted(PACKAGE.iterdir()):
        if (path / "__init__.py").is_file():
            figures[f"lines of {path.name}/"] = count_lines(path)[0]
    width = max(map(len, figures))
    aims = {name: f"  (aim: at most {AIMS[name]:,})" for name in AIMS}
    return "\n".join(f"{name:{width}} {value:>7,}{aims.get(name, '')}" for name, value in figures.items())


def describe(watch: Watch) -> str:
    """Return the files of the step, the stack to the gateway, and where the configuration goes."""
    parts = {
        "files of a step": watch.files,
        "frames to the gateway": list(map(qualified, watch.stack)),
        "files of a configuration, in the order of its way": watch.start.files(watch.start.configured),
        "functions of a configuration": list(map(qualified, watch.start.configured)),
    }
    return "\n\n".join("\n".join([f"{title}:", *lines]) for title, lines in parts.items())


def qualified(code: CodeType) -> str:
    """Return the file and the name of a function."""
    return f"{place(code)}: {code.co_qualname}"


if __name__ == "__main__":
    lists = "--list" in sys.argv
    watched = watch_run([word for word in sys.argv[1:] if word != "--list"])
    print(f"\n{report(watched)}")
    if lists:
        print(f"\n{describe(watched)}")
