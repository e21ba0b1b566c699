"""What the tests of environments share: the settings of each, where its package is installed, and its rollouts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.backbones.serving import running
from tests.launching import Ran
from tests.packages.environments.gym_server import GymServer, write_rows
from tests.packages.environments.machine_tasks import write_tasks

HERE = Path(__file__).parent
ATLAS, CITIES = f"task.name={HERE / 'atlas.py'}", f"task.environment={HERE / 'cities.py'}"
PACKAGES = {"inspect": "inspect_ai", "verifiers": "verifiers", "harbor": "harbor"}
NEEDED = {"gepa": "dspy", "mipro": "dspy", "heuristic": "agent_episodic_memory"}
SMALL = ("mode.epochs=1", "mode.before=false", "embedder=hashing", "estimate=false")
MARKS = {
    name: (pytest.mark.skipif(find_spec(package) is None, reason=f"needs the extra {name}: make test-environments"),)
    for name, package in PACKAGES.items()
}
MARKS["harbor"] += (
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs the program bwrap"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:harbor"),  # it warns of its own functions
)


def case(environment: str, *values: Any) -> Any:
    """A row of a parametrised test, skipped where the environment's package is missing."""
    return pytest.param(environment, *values, marks=MARKS.get(environment, ()))


@contextmanager
def settings_of(environment: str, folder: Path, *, tool: bool = True) -> Iterator[tuple[str, ...]]:
    """Yield the settings of a task on capitals, or of commands, with a tool or without."""
    if environment == "inspect":
        yield "task=inspect", f"{ATLAS}@{'lookup' if tool else 'choices'}"
    elif environment == "verifiers":
        yield "task=verifiers", CITIES, *(("task.args={task: {tool: works}}",) if tool else ())
    elif environment == "harbor":
        tasks = write_tasks(folder / "tasks")
        yield (
            "task=harbor",
            "task.machine=bubblewrap",
            f"task.folder={tasks}",
            *(() if tool else ("task.commands=block",)),
        )
    else:
        with running(GymServer()) as gym:
            yield "task=nemo_gym", f"task.server={gym.address}", f"task.samples={write_rows(folder, tool=tool)}"


def rollouts(ran: Ran) -> list[dict[str, Any]]:
    """The rollouts of a run, in their order."""
    return [line for line in ran.lines("journal") if line["kind"] == "rollout"]
