"""Shared by tests that launch whole runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tasks.appworld.sharing import sharing


@pytest.fixture(autouse=True)
def one_warm_engine(pytestconfig: pytest.Config) -> Iterator[None]:
    """Let runs on AppWorld share one warm engine: loading it takes seconds, and no test here is about that."""
    with sharing(pytestconfig):
        yield
