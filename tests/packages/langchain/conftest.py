"""The embedded server over HTTP, and agents on it."""

from collections.abc import Callable, Iterator

import pytest

from ace_bench.backbones.openai_compatible.backbone import OpenAICompatible
from ace_rehearsal.server.serve import ReaderServer
from tests.backbones.openai_compatible.scripted import client
from tests.backbones.serving import running


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
