"""What the tests of commands share: a web server to download from."""

from collections.abc import Iterator

import pytest

from tests.cli.serving import FileServer


@pytest.fixture
def server() -> Iterator[FileServer]:
    """Run a local file server for one test."""
    running = FileServer()
    yield running
    running.stop()
