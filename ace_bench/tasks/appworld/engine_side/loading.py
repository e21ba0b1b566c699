"""Loads the engine completely, once, before environment servers are forked off."""

from __future__ import annotations

import encodings
import gc
import importlib
import pkgutil
import shutil
import sys
import threading
import warnings
from contextlib import suppress
from pathlib import Path

_NOT_IMPORTED = frozenset({"antigravity", "idlelib", "lib2to3", "readline", "rlcompleter", "this", "tkinter", "turtle"})
"""Modules of the standard library whose import has side effects or needs a display."""
_ENGINE = ("appworld.environment", "pytest")
"""What servers and evaluations need; the engine imports ``pytest`` at its first comparison of values."""
_WARM_UP = (
    "for app in apis.api_docs.show_app_descriptions():\n"
    "    try:\n"
    "        apis[app['name']].show_profile()\n"
    "    except Exception:\n"
    "        pass",
    "1 / 0",
    "import os; os.system('')",
    "(",
)
"""Code for each kind of outcome: success, exception, forbidden call, syntax error. The first piece also makes the
engine read the documentation of every app."""


def load(task: str, scratch: Path) -> None:
    """Import the engine and run one episode, so that forks start with everything loaded; close the episode's world.

    Raises ``RuntimeError`` if the engine has started threads, which a fork would lose.
    """
    import dotenv

    # The engine would read a .env file of any folder above it, and with it keys that agent code must not see.
    dotenv.load_dotenv = lambda *_, **__: False
    gc.disable()
    _import_all()
    _run_episode(task, scratch)
    gc.collect()
    gc.freeze()  # so that a fork's collector does not write to the memory it shares with this process
    gc.enable()
    shutil.rmtree(scratch, ignore_errors=True)
    running = threading.enumerate()
    if len(running) > 1:
        raise RuntimeError(f"threads would be lost in a fork: {running}")


def _import_all() -> None:
    """Import every module that agent code may import: a confined server may be unable to read Python's own files."""
    for name in _ENGINE:
        importlib.import_module(name)
    from appworld.common.safety_guard import ALLOWED_MODULE_NAMES

    codecs = (f"encodings.{module.name}" for module in pkgutil.iter_modules(encodings.__path__))
    standard = (name for name in sys.stdlib_module_names if name not in _NOT_IMPORTED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (*ALLOWED_MODULE_NAMES, *sorted(standard), *codecs):
            with suppress(ImportError):
                importlib.import_module(name)


def _run_episode(task: str, scratch: Path) -> None:
    from appworld.apps.model_lib import get_direct_cached_sqlite3_connection
    from appworld.environment import AppWorld

    world = AppWorld(task_id=task, experiment_name=str(scratch), load_ground_truth=False)
    for code in _WARM_UP:
        world.execute(code)
    world.task_completed()
    world.task.close()
    world.close()
    AppWorld.close_all()
    get_direct_cached_sqlite3_connection.cache_clear()
