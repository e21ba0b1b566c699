"""The embedded backbone over HTTP, and the real OpenAI client on it."""

from contextlib import ExitStack

import pytest

from ace_bench.backbones.embedded.server.serve import ReaderServer
from tests.backbones.serving import running

QUESTION = "Choose from: red, green, blue. What is the colour of a green frog?"


@pytest.fixture
def serve():
    """Start a server with these settings."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(running(ReaderServer(host="127.0.0.1", port=0, **settings)))


@pytest.fixture(scope="module")
def server():
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        yield server


def ask(server, text=QUESTION, *, retries=0, **more):
    """The reply to a request for a completion."""
    import openai  # a second, in each process that collects tests

    with openai.OpenAI(base_url=server.address, api_key="none", max_retries=retries, timeout=20) as client:
        fields = {"messages": [{"role": "user", "content": text}], **more}
        made = client.chat.completions.create(model="embedded", **fields)
        return list(made) if more.get("stream") else made
