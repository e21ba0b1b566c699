"""The embedded server over HTTP, and agents on it."""

from importlib.util import find_spec

import pytest

from ace_bench.backbones.embedded.server.serve import ReaderServer
from tests.backbones.openai_compatible.scripted import client
from tests.backbones.serving import running

if find_spec("langchain") is None:
    collect_ignore_glob = ["test_*.py"]  # they need the extra langchain


@pytest.fixture
def models():
    """Makes counted models on the embedded server."""
    from ace_bench.contrib.langchain import CountedModels

    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        backbone = client(server.address, model="embedded", simulated=True)
        yield lambda: CountedModels(backbone=backbone)
        backbone.close()
