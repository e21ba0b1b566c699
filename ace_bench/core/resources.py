"""Where the configuration tree and the prompt sets are.

Both are package data: in a checkout ``ace_bench/configs`` and ``ace_bench/prompts`` are links to the folders at its
top, in a wheel they are the folders themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path


def configs_folder() -> Path:
    """Return the folder of ``config.yaml`` and the config groups."""
    return (import_folder() / "ace_bench" / "configs").resolve()


def prompts_folder() -> Path:
    """Return the folder whose subfolders are the prompt sets."""
    return (import_folder() / "ace_bench" / "prompts").resolve()


def config_folders() -> tuple[Path, ...]:
    """Return all folders that hold config groups, in the order in which they are searched."""
    return (configs_folder(),)


def prompt_folders() -> tuple[Path, ...]:
    """Return all folders that hold prompt sets, in the order in which they are searched."""
    return (prompts_folder(),)


def options(group: str, folders: Sequence[Path]) -> dict[str, Path]:
    """Return the options of a config group with their files, sorted by name; of two with one name the first counts."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in (folder / group).glob("*.yaml"):
            found.setdefault(path.stem, path)
    return dict(sorted(found.items()))


def import_folder() -> Path:
    """Return the folder from which ``ace_bench`` is imported; child processes put it on their path."""
    return Path(str(files("ace_bench"))).parent
