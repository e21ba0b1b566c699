"""Finds the folders of runs and follows links. Each folder comes once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path

_RUN_FILES = ("metrics.json", "status.json", "environment.json", "journal.jsonl")
"""A folder with any of these is a run. Most have the first one."""
_BEHIND_A_LINK = 4
"""Levels of folders that are searched behind a link: a results folder has its runs four levels below."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A folder, and what is wrong with it: a sentence that names it."""

    folder: Path
    reason: str


def closed_folder(folder: str) -> Problem:
    """Say that a folder may not be entered."""
    return Problem(folder=Path(folder), reason=f"{folder} cannot be read (Permission denied); ask its owner to open it")


def run_folders(*results: Path, on_closed: Callable[[str], object] = str) -> Iterator[Path]:
    """Yield all run folders under some folders, each once. For the order and ``on_closed`` see ``run_names``."""
    levels_by_folder: dict[str, float] = {}
    return (folder / name for folder in results for name in run_names(folder, on_closed, levels_by_folder))


def run_names(
    results: Path, on_closed: Callable[[str], object] = str, levels_by_folder: dict[str, float] | None = None
) -> Iterator[str]:
    """Yield the paths of all run folders, relative to ``results``. They are texts, which is quicker.

    Folders come in the order of their paths, and then those behind links. ``levels_by_folder`` holds how many levels
    were searched below each folder. A folder that was reached before, by any path, is left out. ``on_closed`` gets each
    folder that may not be entered.
    """
    levels_by_folder = {} if levels_by_folder is None else levels_by_folder
    folders: list[tuple[str, str, float]] = [("", os.path.realpath(results), inf)]
    links: list[tuple[str, str, float]] = []
    while folders or links:
        name, real, levels = folders.pop() if folders else links.pop(0)
        before = levels_by_folder.get(real, -1)
        if before >= levels:
            continue
        levels_by_folder[real] = levels
        path = os.path.join(results, name)
        if any(os.path.isfile(os.path.join(path, mark)) for mark in _RUN_FILES):
            if before < 0:
                yield name or "."
        elif levels:
            inner, linked = _entries(path, on_closed)
            folders += [
                (os.path.join(name, inner_name), os.path.join(real, inner_name), levels - 1) for inner_name in inner
            ]
            below = min(levels - 1, _BEHIND_A_LINK)
            links += [
                (os.path.join(name, inner_name), os.path.realpath(os.path.join(path, inner_name)), below)
                for inner_name in linked
            ]


def _entries(folder: str, on_closed: Callable[[str], object]) -> tuple[list[str], list[str]]:
    """Return the names of the folders in a folder, the last one first, and of the links to folders."""
    inner, linked = list[str](), list[str]()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    linked += [entry.name] * os.path.isdir(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    inner.append(entry.name)
    except PermissionError:
        on_closed(folder)
    except OSError:
        pass  # it has gone meanwhile, or is no folder of files, such as one of /proc behind a link
    return sorted(inner, reverse=True), sorted(linked)
