"""Hostile programs, as data: each tries one way out of the box and prints ESCAPED where it succeeds.

They are text because they run elsewhere, after ``PRELUDE``, with paths and numbers of the bait in ``B`` (see ``bait``).
``programs/<group>.txt`` holds them one after another, each below its name. ``quick`` ones run in ``make test``;
``unconfined`` ones do get out where nothing holds them, and so prove something where they do not.
"""

from __future__ import annotations

import re
from pathlib import Path

_FOLDER = Path(__file__).parent / "programs"
_HEADING = re.compile(r"^## (\w+)(?: \((.*)\))?\n", re.MULTILINE)

PRELUDE = (_FOLDER / "prelude.txt").read_text()
PROGRAMS: dict[str, str] = {}
"""Code by group and name, such as ``reading: symlink``."""
MARKED: dict[str, list[str]] = {"quick": [], "unconfined": []}
"""Names by mark."""

for _path in sorted(_FOLDER.glob("*.txt")):
    _, *_parts = _HEADING.split(_path.read_text())
    for _name, _marks, _code in zip(_parts[::3], _parts[1::3], _parts[2::3], strict=True):
        PROGRAMS[f"{_path.stem}: {_name}"] = _code.strip()
        for _mark in filter(None, (_marks or "").split(", ")):
            MARKED[_mark].append(f"{_path.stem}: {_name}")
