"""Runs tests of what is seen from outside with each client that can send requests."""

import pytest

from tests.backbones.openai_compatible import scripted


@pytest.fixture(params=["built_in", "openai"])
def each_client(request, monkeypatch):
    """Let the backbones of a test send with one client, then with the other; return its name."""
    monkeypatch.setitem(scripted.SETTINGS, "client", request.param)
    return request.param
