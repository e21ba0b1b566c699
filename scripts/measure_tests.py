"""Make small wrong changes at random places of the code, and count those that the tests notice.

    python scripts/measure_tests.py [--changes 100] [--seed 0] [--folders report,methods] [--jobs 2] [--nearest]

A change turns a comparison around, adds 1 to a whole number, negates a condition, or swaps ``and`` and ``or``. It is
drawn from all that can be made in ``ace_bench`` and made in a copy of the tree. It first runs the test files that
import the changed module or are named after it, or else the tests of the module's package. A change in
``ace_bench/FOLDER`` that survives them runs ``tests/FOLDER``, unless ``--nearest`` is set. One that survives there also
runs the tests of ``--then``. The lines at the end say how many were noticed by each. The tests must pass before the
first change.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ace_bench.core.console import Console

ROOT = Path(__file__).resolve().parents[1]
TURNED = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "is": "is not", "is not": "is"}
TURNED |= {"in": "not in", "not in": "in"}
CPU_SECONDS = 150
"""What a process of a run of tests may take. More means that the change made it loop for ever."""
SECONDS = 1500.0
"""What a run of tests may take by the clock, on a machine that is busy with other programs."""
MOST_FILES = 6
NONE_SELECTED = 5
"""Status of pytest where none of the tests is run by default."""
REAL_SERVERS = ("tests/vllm/", "tests/slurm/")


@dataclass(frozen=True)
class Change:
    """One wrong change: ``old`` at ``start`` of ``path`` (characters from its beginning) becomes ``new``."""

    path: Path
    start: int
    old: str
    new: str

    def line(self) -> int:
        """The number of the changed line, from 1."""
        return (ROOT / self.path).read_text().count("\n", 0, self.start) + 1

    def __str__(self) -> str:
        """Return the place of the change, with its old and new text."""
        return f"{self.path}:{self.line()}  {self.old}  ->  {self.new}"


def find_changes(path: Path) -> Iterator[Change]:
    """Yield every change that can be made in a file of the tree."""
    text = (ROOT / path).read_text()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(text[starts[line - 1] :].encode()[:column].decode())

    def between(left: ast.expr, right: ast.expr) -> tuple[int, str]:
        begin = place(left.end_lineno or left.lineno, left.end_col_offset or 0)
        return begin, text[begin : place(right.lineno, right.col_offset)]

    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.expr | ast.If | ast.While):
            continue
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            begin, old = between(node.left, node.comparators[0])
            sign = next(sign for sign in sorted(TURNED, key=len, reverse=True) if sign in old)
            yield Change(path, begin, old, old.replace(sign, TURNED[sign], 1))
        elif isinstance(node, ast.BoolOp):
            begin, old = between(node.values[0], node.values[1])
            sign, turned = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            yield Change(path, begin, old, old.replace(sign, turned, 1))
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            begin = place(node.lineno, node.col_offset)
            yield Change(path, begin, text[begin : place(node.lineno, node.end_col_offset or 0)], str(node.value + 1))
        elif isinstance(node, ast.If | ast.While | ast.IfExp) and not is_only_for_types(node.test):
            begin = place(node.test.lineno, node.test.col_offset)
            old = text[begin : place(node.test.end_lineno or 0, node.test.end_col_offset or 0)]
            yield Change(path, begin, old, f"not ({old})")


def is_only_for_types(test: ast.expr) -> bool:
    """Say whether a condition is that of imports for type checkers, which no test can notice."""
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def draw_changes(folders: list[str], count: int, seed: int) -> list[Change]:
    """Draw changes without replacement from all that can be made in some folders of ``ace_bench``."""
    files = sorted(path for name in folders for path in (ROOT / "ace_bench" / name).rglob("*.py"))
    changes = [change for path in files for change in find_changes(path.relative_to(ROOT))]
    return random.Random(seed).sample(changes, min(count, len(changes)))


def nearest_tests(change: Change) -> list[str]:
    """Return the few test files that import the changed module or are named after it, those of its folder first.

    A module that no test imports has the tests of its package.
    """
    package, module = ".".join(change.path.parent.parts), change.path.stem
    imported = re.compile(rf"from {re.escape(package)}(\.{module} import| import .*\b{module}\b)")
    own_folder = folder_tests(change)[0]
    near = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        path = str(file.relative_to(ROOT))
        is_named = file.stem == f"test_{module}"
        if not path.startswith(REAL_SERVERS) and (is_named or imported.search(file.read_text())):
            near.append((not is_named, not path.startswith(own_folder), path))
    return [path for *_, path in sorted(near)[:MOST_FILES]] or mirrored_tests(change)


def mirrored_tests(change: Change) -> list[str]:
    """Return the folder of tests of the changed file's package, nothing if only the whole folder has tests."""
    parts = change.path.parent.parts[1:]
    while len(parts) > 1 and not Path(ROOT, "tests", *parts).is_dir():
        parts = parts[:-1]
    return [f"{Path('tests', *parts)}/"] if len(parts) > 1 else []


def folder_tests(change: Change) -> list[str]:
    """Return the folder of tests of the changed file's folder."""
    return [f"tests/{change.path.parts[1]}/"]


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Runs tests in a copy of the tree, the files of a folder in ``jobs`` processes."""

    tree: Path
    jobs: int

    def notices(self, tests: list[str], change: Change) -> bool:
        """Make a change, run tests, take the change back, and say whether a test failed."""
        path = self.tree / change.path
        text = path.read_text()
        path.write_text(text[: change.start] + change.new + text[change.start + len(change.old) :])
        try:
            return bool(tests) and not self.do_pass(tests)
        finally:
            path.write_text(text)

    def do_pass(self, tests: list[str]) -> bool:
        """Run tests until one fails. A run that loops or waits for ever has failed."""
        processes = str(self.jobs) if any(path.endswith("/") for path in tests) else "0"
        pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-n", processes, "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "PYTHONPATH": str(self.tree), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                ["prlimit", f"--cpu={CPU_SECONDS}", *pytest],
                cwd=self.tree,
                env=environment,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode in (0, NONE_SELECTED)


def copy_tree(target: Path) -> None:
    """Copy the tree without what is made from it, and with the AppWorld engine that the tests use."""
    generated = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "site", "htmlcov")
    shutil.copytree(ROOT, target, symlinks=True, ignore=generated, dirs_exist_ok=True)
    if (ROOT / ".appworld").exists():
        (target / ".appworld").symlink_to(ROOT / ".appworld")


def main() -> None:
    """Measure, as the module says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=100, help="how many wrong changes")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    parser.add_argument("--folders", help="folders of ace_bench, with commas between; all by default")
    parser.add_argument("--then", nargs="*", default=[], help="tests that survivors run, too")
    parser.add_argument("--jobs", type=int, default=2, help="processes of a run of tests")
    parser.add_argument("--nearest", action="store_true", help="run no more than the test files of the changed module")
    options = parser.parse_args()
    tested = sorted(path.name for path in (ROOT / "tests").iterdir() if (ROOT / "ace_bench" / path.name).is_dir())
    folders = options.folders.split(",") if options.folders else tested
    changes = draw_changes(folders, options.changes, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        copy_tree(Path(folder))
        runner = Runner(tree=Path(folder), jobs=options.jobs)
        measure(changes, options, runner, Console(highlight=False, soft_wrap=True))


def measure(changes: list[Change], options: argparse.Namespace, runner: Runner, console: Console) -> None:
    """Make each change in turn and print the survivors and the counts."""
    stages: dict[str, Callable[[Change], list[str]]] = {"the nearest tests": nearest_tests}
    if not options.nearest:
        stages["the folder's tests"] = folder_tests
    if options.then:
        stages[" ".join(options.then)] = lambda _: options.then
    for select in stages.values():
        tests = sorted({path for change in changes for path in select(change)})
        for start in range(0, len(tests), MOST_FILES):
            if not runner.do_pass(tests[start : start + MOST_FILES]):
                files = " ".join(tests[start : start + MOST_FILES])
                raise SystemExit(f"one of {files} fails before any change: repair it first")
    counts = Counter[str]()
    for change in changes:
        noticed = next((name for name, select in stages.items() if runner.notices(select(change), change)), None)
        counts[noticed or "nothing"] += 1
        if noticed is None:
            console.print(f"survives  {change}", markup=False)
    for name in stages:
        console.print(f"noticed by {name}: {counts[name]} of {len(changes)}", markup=False)


if __name__ == "__main__":
    main()
