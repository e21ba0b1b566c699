"""Cases in files, a line each, with what a function makes of each; ``WRITE_EXPECTED=1`` writes the results anew."""

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.expected import check


def check_cases(
    path: Path, functions: Mapping[str, Callable[[Any], object]], names: Mapping[str, str] | None = None
) -> None:
    """Compare the results in a file of cases: lines ``literal => result`` below ``## name of a function``.

    The result of an exception is its message, and one that ends in ``...`` may go on. Lines that begin with a single #
    are comments. ``names`` replaces what differs from run to run.
    """
    lines, name = [], ""
    for old in path.read_text(encoding="utf-8").splitlines():
        line = old.rstrip()
        if line.startswith("## "):
            name = line.removeprefix("## ")
        elif line and not line.startswith("#"):
            given, _, expected = line.partition(" => ")
            try:
                result = str(functions[name](ast.literal_eval(given))) or "(nothing)"
            except Exception as error:
                result = f"{type(error).__name__}: {error}"
            for text, short in (names or {}).items():
                result = result.replace(text, short)
            result = result.replace("\n", "\\n")
            if not (expected.endswith("...") and result.startswith(expected[:-3])):
                line = f"{given} => {result}"
        lines.append(line)
    check("\n".join(lines) + "\n", path)
