"""The embedded server over HTTP, agents on it, and a chat model that remembers what it was sent."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest

from ace_bench.backbones.openai_compatible.backbone import OpenAICompatible
from ace_rehearsal.server.serve import ReaderServer
from tests.backbones.openai_compatible.scripted import client
from tests.backbones.serving import running

if find_spec("langchain") is None:
    collect_ignore_glob = ["test_*.py"]  # they need the extra langchain


@pytest.fixture
def served() -> Iterator[OpenAICompatible]:
    """A backbone on the embedded server."""
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        backbone = client(server.address, model="embedded", simulated=True)
        yield backbone
        backbone.close()


@pytest.fixture
def models(served: OpenAICompatible) -> Callable[[], object]:
    """Makes counted models on the embedded server."""
    from ace_langchain import CountedModels

    return lambda: CountedModels(backbone=served)
