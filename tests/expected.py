"""Output that shall stay as it is, in files. ``WRITE_EXPECTED=1`` with the command of the tests writes them anew."""

import os
from difflib import unified_diff
from pathlib import Path


def check(text: str, path: Path) -> None:
    """Compare a whole text with a file, or write the file."""
    if os.environ.get("WRITE_EXPECTED"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    expected = path.read_text()
    lines = unified_diff(expected.splitlines(), text.splitlines(), str(path), "this run", n=1, lineterm="")
    assert text == expected, "\n".join(["WRITE_EXPECTED=1 writes the file anew, where this is right:", *lines])
