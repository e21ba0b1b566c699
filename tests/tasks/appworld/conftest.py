"""The real engine on the mini-world, started once for all tests of a worker."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ace_bench.core.errors import ConfigError
from ace_bench.tasks.appworld.engine import Engine, find_engine
from ace_bench.tasks.appworld.task import AppWorld
from ace_bench.tasks.catalog import make_task
from tests.tasks.appworld.sharing import sharing

RUN = "\nsolution(apis, requester)"


@pytest.fixture(scope="session")
def engine() -> Engine:
    try:
        return find_engine()
    except ConfigError as error:
        pytest.skip(str(error))


def make(**settings: object) -> AppWorld:
    """Make a task on the mini-world."""
    return make_task("appworld", **{"source": "sample", "sample_allowed": False} | settings)


@pytest.fixture(scope="session")
def task(engine, pytestconfig) -> AppWorld:
    """The task on the shared warm engine."""
    with sharing(pytestconfig):
        return make()


@pytest.fixture(scope="session")
def root(task) -> Path:
    """The full data root, which agents must not reach."""
    return task.root


def solved(task: AppWorld, sample, session) -> str:
    return session.step(task.failing_grade(sample).gold + RUN)


def processes_in(folder: Path) -> list[int]:
    """Processes whose working folder is ``folder`` or lies in it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        try:
            where = os.readlink(entry)
        except OSError:
            continue
        if where == str(folder) or where.startswith(f"{folder}/"):
            found.append(int(entry.parent.name))
    return found


def settled(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait until a condition holds; return whether it does in the end."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
