"""Where AppWorld's engine is and how to start something in its interpreter.

The engine pins libraries that this package cannot live with, so it has a virtual environment of its own, made by
``make appworld``; nothing of it is ever imported here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ace_bench.core.errors import ConfigError
from ace_bench.core.program import command_line
from ace_bench.core.resources import import_folder
from ace_bench.core.typed import decoder_of

VERSION = "0.1.3.post1"
"""The release everything here was written for; it serves data version 0.1.0."""

HERE = Path(__file__).resolve().parent
FOLDER_VARIABLE = "ACE_BENCH_APPWORLD"
"""Environment variable that names the engine's folder; without it, ``.appworld`` in the current folder is used."""
FACTS = "engine.json"
"""Written last by the set-up: a folder that holds it is complete."""


class Facts(msgspec.Struct, frozen=True):
    """What the set-up found out about an installed engine; ``apps`` maps names, in order, to its descriptions."""

    version: str
    apps: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An installed engine."""

    folder: Path
    facts: Facts

    def command(self, module: str, *arguments: str) -> list[str]:
        """Return the command that runs a module of ``engine_side``."""
        return [str(python_of(self.folder)), "-P", "-m", f"engine_side.{module}", *arguments]

    def environment(self, root: Path, scratch: Path) -> dict[str, str]:
        """Return the environment for engine processes: nothing of the user's own, which may hold keys.

        ``root`` is the data root they are to see, ``scratch`` a folder to litter.
        """
        kept = {name: value for name in ("LD_LIBRARY_PATH", "PATH") if (value := os.environ.get(name))}
        return kept | {
            "APPWORLD_CACHE": str(self.folder / "cache"),
            "APPWORLD_ROOT": str(root),
            "HOME": str(scratch),
            "IPYTHONDIR": str(scratch),
            "LANG": "C.UTF-8",
            "ACE_BENCH_PACKAGES": str(import_folder()),
            "PYTHONDONTWRITEBYTECODE": "1",  # scoring runs code that lies in the shared root
            "PYTHONHASHSEED": "0",  # sets print in one order, so that a step replayed shows what it showed
            "PYTHONPATH": str(HERE),
            "TMPDIR": str(scratch),
        }


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What all processes behind a task share: ``task`` is any task, to warm up with, ``memory`` a limit in bytes."""

    engine: Engine
    task: str
    memory: int


def python_of(folder: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return folder / "bin" / "python"


def engine_folder() -> Path:
    """Return the folder that holds the engine, or will hold it once it is set up."""
    return Path(os.environ.get(FOLDER_VARIABLE) or ".appworld").expanduser().absolute()


def find_engine() -> Engine:
    """Return the installed engine; raises ``ConfigError`` with the fix where it is absent or of another release."""
    folder = engine_folder()
    try:
        facts: Facts = decoder_of(Facts).decode((folder / FACTS).read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"AppWorld's engine is not set up in {folder}: run `{command_line('appworld')}`") from error
    if facts.version != VERSION:
        raise ConfigError(
            f"AppWorld's engine in {folder} is release {facts.version}, {VERSION} is needed: "
            f"run `{command_line('appworld')}`"
        )
    return Engine(folder=folder, facts=facts)
