"""Hostile programs, as data: each tries one way out of the box and prints ESCAPED where it succeeds.

They are text because they run elsewhere, after ``PRELUDE``, with paths and numbers of the bait in ``B`` (see ``bait``).
``programs/<group>.txt`` holds them one after another, each below its name.
"""

from __future__ import annotations

import re
from pathlib import Path

_FOLDER = Path(__file__).parent / "programs"
_NAME = re.compile(r"^## (\w+)\n", re.MULTILINE)

PRELUDE = (_FOLDER / "prelude.txt").read_text()


def _programs() -> dict[str, str]:
    programs = {}
    for path in sorted(_FOLDER.glob("*.txt")):
        _, *parts = _NAME.split(path.read_text())
        for name, code in zip(parts[::2], parts[1::2], strict=True):
            programs[f"{path.stem}: {name}"] = code.strip()
    return programs


PROGRAMS = _programs()
"""Code by group and name, such as ``reading: symlink``."""
