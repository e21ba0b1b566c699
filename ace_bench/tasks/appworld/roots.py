"""Data roots: the user's download or the mini-world that is built on this machine, and the part that agents may see.

A root holds ``data/`` in the engine's layout. Environment servers get a copy without ``ground_truth``. The full root is
made unreadable for other users, so that a server that runs as another user cannot read it by its path.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from ace_bench.core.confine import is_open_to_others
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.core.program import command_line
from ace_bench.store.files import cache_folder
from ace_bench.tasks.appworld.engine import VERSION, Engine
from ace_bench.tasks.data import DataSettings, find_folder

FORBIDDEN_WORD = "memory"
"""The engine takes a path with this word in it for an in-memory database, and breaks."""

UNUSED_S = 7 * 24 * 3600
"""A version of the mini-world that was not used for so long is removed; no run takes as long."""

_VERSION = re.compile(r"[0-9a-f]{16}(\.part)?")
_VISIBLE = ("api_docs", "base_dbs", "version.txt")
_VISIBLE_OF_TASK = ("dbs", "specs.json")

_log = logging.getLogger(__name__)


def find_data(settings: DataSettings) -> tuple[Path, str]:
    """Find a data root (``real``), or the package that builds one (``sample``); return its folder and which it is.

    Raises ``ConfigError`` or ``DataError`` with the fix.
    """
    try:
        folder, source = find_folder("appworld", settings)
    except DataError as error:
        raise DataError(
            f"no AppWorld data: run `{command_line('appworld')} --data`, set task.data_dir to a folder "
            "that holds data/ as `appworld download data` leaves it, or use the mini-world with task.source=sample"
        ) from error
    return folder.resolve(), source


def check_path(path: Path) -> None:
    """Raise ``ConfigError`` for a path that the engine cannot work in."""
    if FORBIDDEN_WORD in str(path):
        raise ConfigError(
            f"AppWorld's engine breaks in folders with {FORBIDDEN_WORD!r} in their path: move {path} elsewhere"
        )


def builder_digest(builder: Path) -> str:
    """Return the digest of what decides a mini-world: the source of its builder and the engine's release."""
    digest = hashlib.sha256(VERSION.encode())
    for path in sorted(builder.rglob("*.py")):
        digest.update(path.relative_to(builder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def sample_root(engine: Engine, builder: Path) -> Path:
    """Return the data root of a mini-world, built once per machine and version of ``builder``, a package's folder.

    Processes that want it at the same time wait for the one that builds it.
    """
    root = cache_folder("appworld").resolve() / builder_digest(builder)[:16]
    check_path(root)
    if not root.is_dir():
        root.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{root}.lock"):
            if not root.is_dir():
                _build(engine, builder, root)
                _remove_unused(root.parent)
    with suppress(OSError):  # it may belong to another user
        os.utime(root)  # the time of the last use
    return root


def _build(engine: Engine, builder: Path, root: Path) -> None:
    _log.warning("building the AppWorld mini-world in %s, which takes about half a minute and happens once", root)
    part = root.with_name(f"{root.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # left by a build that was killed
    command = engine.command("build", str(builder), str(part))
    environment = engine.environment(part, part.parent)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DataError(f"the AppWorld mini-world cannot be built: {(done.stderr or done.stdout)[-2000:]}")
        part.chmod(0o700)
        part.rename(root)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _remove_unused(folder: Path) -> None:
    """Remove versions of the mini-world that were not used for a week; a folder's time is that of its last use."""
    for root in folder.iterdir():
        if _VERSION.fullmatch(root.name) and root.is_dir() and time.time() - root.stat().st_mtime > UNUSED_S:
            part = root if root.suffix else root.rename(f"{root}.part")  # a folder without the suffix is complete
            shutil.rmtree(part, ignore_errors=True)


def copy_visible(root: Path, target: Path) -> None:
    """Copy to ``target`` what agents may see of a root: everything but ground truth and the lists of tasks.

    These are copies and not links, because a server that runs as the harness's own user could write through links.
    """
    source, data = root / "data", target / "data"
    data.mkdir(parents=True)
    for name in _VISIBLE:
        _copy(source / name, data / name)
    for task in sorted((source / "tasks").iterdir()):
        for name in _VISIBLE_OF_TASK:
            _copy(task / name, data / "tasks" / task.name / name)
    for folder, _, files in os.walk(target):
        os.chmod(folder, 0o755)
        for file in files:
            os.chmod(os.path.join(folder, file), 0o644)
    (data / "tasks").chmod(0o711)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    elif source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def close_to_others(root: Path) -> None:
    """Make a root unreadable for other users, unless a folder above it already is. Raises ``ConfigError``."""
    if root.stat().st_mode & 0o077 and is_open_to_others(root.parent):
        try:
            root.chmod(0o700)
        except OSError as error:
            raise ConfigError(
                f"{root} holds the right answers and all users can read it: run `chmod 700` on it, or copy it to a "
                "folder of your own"
            ) from error
