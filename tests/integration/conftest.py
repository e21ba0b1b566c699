"""Shared by tests that launch whole runs."""

import pytest


@pytest.fixture(autouse=True)
def _warm(one_warm_engine: None) -> None:
    """No test here is about loading AppWorld's engine."""
