"""Shared by all tests."""

import gc
import os
from collections.abc import Iterator

import pytest

# Tests must not find a user's data by accident; those that want real data name its folder themselves.
os.environ.pop("ACE_BENCH_DATA", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Search no garbage in what collection makes: all of it stays, and searching it takes a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def one_warm_engine(pytestconfig: pytest.Config) -> Iterator[None]:
    """Let runs on AppWorld share one warm engine: loading it takes seconds."""
    from tests.tasks.appworld.sharing import sharing

    with sharing(pytestconfig):
        yield
