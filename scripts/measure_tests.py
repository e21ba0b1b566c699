"""Make small wrong changes at random places of the code, and count those that the tests notice.

    python scripts/measure_tests.py [--changes 100] [--seed 0] [--folders report,methods] [--jobs 2]

A change turns a comparison around, adds 1 to a whole number, negates a condition, or swaps ``and`` and ``or``. It is
drawn from all that can be made in ``ace_bench`` and made in a copy of the tree. A change in ``ace_bench/FOLDER`` runs
``tests/FOLDER``; one that survives there also runs the tests of ``--then``. The lines at the end say how many were
noticed by each. The tests must pass before the first change.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ace_bench.core.console import Console

ROOT = Path(__file__).resolve().parents[1]
TURNED = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "is": "is not", "is not": "is"}
TURNED |= {"in": "not in", "not in": "in"}
SECONDS = 150.0


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
        """Return the place, and what becomes what."""
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


def tests_of(change: Change) -> str:
    """Return the folder of tests of the changed file's folder."""
    return f"tests/{change.path.parts[1]}"


def is_noticed(change: Change, tests: list[str], tree: Path, jobs: int, seconds: float) -> bool:
    """Make a change in a copy of the tree, run tests, take the change back, and say whether a test failed."""
    path = tree / change.path
    text = path.read_text()
    path.write_text(text[: change.start] + change.new + text[change.start + len(change.old) :])
    try:
        return not do_tests_pass(tests, tree, jobs, seconds)
    finally:
        path.write_text(text)


def do_tests_pass(tests: list[str], tree: Path, jobs: int, seconds: float | None = None) -> bool:
    """Run tests in a copy of the tree until one fails. Tests that take over ``seconds`` have failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", str(jobs), "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return False
    return ran.returncode == 0


def copy_tree(target: Path) -> None:
    """Copy the tree without what is made from it, and with the AppWorld engine that the tests use."""
    generated = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "site", "htmlcov")
    shutil.copytree(ROOT, target, ignore=generated, dirs_exist_ok=True)
    if (ROOT / ".appworld").exists():
        (target / ".appworld").symlink_to(ROOT / ".appworld")


def main() -> None:
    """Measure, as the module says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=100, help="how many wrong changes")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    parser.add_argument(
        "--folders", help="folders of ace_bench, or guests, with commas between; all of ace_bench by default"
    )
    parser.add_argument("--then", nargs="*", default=[], help="tests that survivors run, too")
    parser.add_argument("--jobs", type=int, default=2, help="processes of a run of tests")
    options = parser.parse_args()
    tested = sorted(path.name for path in (ROOT / "tests").iterdir() if (ROOT / "ace_bench" / path.name).is_dir())
    folders = options.folders.split(",") if options.folders else tested
    changes = draw_changes(folders, options.changes, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_tree(tree)
        measure(changes, options.then, tree, options.jobs, Console(highlight=False, soft_wrap=True))


def measure(changes: list[Change], then: list[str], tree: Path, jobs: int, console: Console) -> None:
    """Make each change in turn and print the survivors and the counts.

    A change that loops for ever is noticed after ``SECONDS``, or twice the time that the unchanged tests take.
    """

    def limit(tests: list[str]) -> float:
        begun = time.monotonic()
        if not do_tests_pass(tests, tree, jobs):
            raise SystemExit(f"{' '.join(tests)} fails before any change: repair it first")
        return max(SECONDS, 2 * (time.monotonic() - begun))

    limits = {tests: limit([tests]) for tests in sorted(set(map(tests_of, changes)))}
    limit_later = limit(then) if then else SECONDS
    first = later = 0
    for change in changes:
        tests = tests_of(change)
        if is_noticed(change, [tests], tree, jobs, limits[tests]):
            first += 1
        elif then and is_noticed(change, then, tree, jobs, limit_later):
            later += 1
        else:
            console.print(f"survives  {change}", markup=False)
    console.print(f"noticed by the folder's tests: {first} of {len(changes)}")
    if then:
        console.print(f"noticed by {' '.join(then)}: {later} of {len(changes) - first}")


if __name__ == "__main__":
    main()
