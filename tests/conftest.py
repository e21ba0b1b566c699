"""Shared by all tests."""

import gc
import json
import os
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

# Tests must not find a user's data by accident; those that want real data name its folder themselves.
os.environ.pop("ACE_BENCH_DATA", None)
# Only a loss of power shows that a file was not synced: no test has one, and all would wait for the disk.
os.fsync = lambda _: None


def pytest_configure() -> None:
    """Refuse an installation from before a package was added or moved: its tests would fail without saying why."""
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for group, points in project.get("entry-points", {}).items():
        if not points.items() <= {(point.name, point.value) for point in entry_points(group=group)}:
            raise pytest.UsageError(f"the entry points {group} are not installed: run `pip install -e .`")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Search no garbage in what collection makes: all of it stays, and searching it takes a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(100_000, *gc.get_threshold()[1:])  # as commands do


@pytest.fixture
def one_warm_engine(pytestconfig: pytest.Config) -> Iterator[None]:
    """Let runs on AppWorld share one warm engine: loading it takes seconds."""
    from tests.tasks.appworld.sharing import sharing

    with sharing(pytestconfig):
        yield


@pytest.fixture(scope="module")
def reader() -> Iterator[Any]:
    """The embedded reader, served over HTTP."""
    from ace_bench.backbones.embedded.server.serve import ReaderServer
    from tests.backbones.serving import running

    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        yield server


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Call ``ace-bench doctor`` with a folder and options; returns its exit status and what it says in JSON."""
    from ace_bench.cli.main import start

    def call(results: Path, *options: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        status = start("doctor", [str(results), "--json", *options])
        return status, json.loads(capsys.readouterr().out)

    return call
