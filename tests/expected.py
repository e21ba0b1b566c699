"""Output that shall stay as it is, in files. ``WRITE_EXPECTED=1`` with the command of the tests writes them anew."""

import os
from pathlib import Path


def check(text: str, path: Path) -> None:
    """Compare a whole text with a file, or write the file."""
    if os.environ.get("WRITE_EXPECTED"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
