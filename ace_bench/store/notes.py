"""``notes.json``: the tags and the note that a user gave a run, which are no part of what the run is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from ace_bench.store.files import write_files

FILE = "notes.json"
_LONGEST_NOTE = 500
_LARGEST = 1 << 16
"""Bytes of a file. A larger one was not written here."""

Tag = Annotated[
    str, msgspec.Meta(pattern=r"^[\w.:+/-]{1,40}\Z", description="one word of up to 40 letters, digits and . : + / - _")
]
_ABOUT_NOTE = f"a text of up to {_LONGEST_NOTE} characters"
Note = Annotated[str, msgspec.Meta(pattern=rf"^[^\0]{{0,{_LONGEST_NOTE}}}\Z", description=_ABOUT_NOTE)]


class Notes(msgspec.Struct, frozen=True, kw_only=True):
    """What ``notes.json`` holds."""

    tags: tuple[Tag, ...] = ()
    note: Note = ""


def read_notes(folder: Path) -> Notes:
    """Return the notes of a run. Where the file is missing, or holds anything else, there are none."""
    path = folder / FILE
    try:
        if not path.is_file():  # a pipe would wait for its writer
            return Notes()
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_LARGEST), type=Notes)
    except (OSError, ValueError, RecursionError):
        return Notes()


def change_notes(folder: Path, *, tags: Sequence[str] | None, note: str | None) -> None:
    """Write what is given, and keep the rest. Raises ``FileUnwritable``."""
    before = read_notes(folder)
    after = Notes(
        tags=before.tags if tags is None else tuple(dict.fromkeys(tags)),
        note=before.note if note is None else note,
    )
    if after != before:
        write_files({folder / FILE: msgspec.json.encode(after)})
