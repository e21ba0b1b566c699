"""What the tests of environments share: the settings of each, where its package is installed, and its rollouts."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.launching import Ran

HERE = Path(__file__).parent
ATLAS, CITIES = f"task.name={HERE / 'atlas.py'}", f"task.environment={HERE / 'cities.py'}"
PACKAGES = {"inspect": "inspect_ai", "verifiers": "verifiers"}
NEEDED = {"gepa": "dspy", "mipro": "dspy"}
SMALL = ("mode.epochs=1", "mode.before=false", "embedder=hashing", "estimate=false")
MARKS = {
    name: (pytest.mark.skipif(find_spec(package) is None, reason=f"needs the extra {name}: make test-environments"),)
    for name, package in PACKAGES.items()
}


def case(environment: str, *values: Any) -> Any:
    """A row of a parametrised test, skipped where the environment's package is missing."""
    return pytest.param(environment, *values, marks=MARKS.get(environment, ()))


def settings_of(environment: str, *, tool: bool = True) -> tuple[str, ...]:
    """Return the settings of a task on capitals, with a tool or without."""
    if environment == "inspect":
        return "task=inspect", f"{ATLAS}@{'lookup' if tool else 'choices'}"
    return "task=verifiers", CITIES, *(("task.args={task: {tool: works}}",) if tool else ())


def rollouts(ran: Ran) -> list[dict[str, Any]]:
    """The rollouts of a run, in their order."""
    return [line for line in ran.lines("journal") if line["kind"] == "rollout"]
