"""The embedded backbone over HTTP, against the real OpenAI client."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import openai
import pytest

from ace_bench.core.types import Message
from ace_rehearsal.reader import EmbeddedBackbone
from ace_rehearsal.server.faults import Faults, parse_chances
from ace_rehearsal.server.serve import ReaderServer
from tests.backbones.serving import running

QUESTION = "Choose from: red, green, blue. What is the colour of a green frog?"
Serve = Callable[..., ReaderServer]
Client = Callable[..., openai.OpenAI]


@contextmanager
def serving(**settings: Any) -> Iterator[ReaderServer]:
    with running(ReaderServer(host="127.0.0.1", port=0, **settings)) as server:
        yield server


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(serving(**settings))


@pytest.fixture
def client() -> Iterator[Client]:
    with ExitStack() as stack:

        def make(server: ReaderServer, *, retries: int = 0) -> openai.OpenAI:
            made = openai.OpenAI(base_url=server.address, api_key="none", max_retries=retries, timeout=20)
            return stack.enter_context(made)

        yield make


def ask(client: openai.OpenAI, text: str = QUESTION, **more: Any) -> Any:
    fields = {"messages": [{"role": "user", "content": text}], **more}
    return client.chat.completions.create(model="embedded", **fields)


def test_the_reply_is_the_backbone_s_own(serve: Serve, client: Client) -> None:
    reply = ask(client(serve()), temperature=0, seed=1, max_tokens=9)
    own = EmbeddedBackbone().complete([Message(role="user", content=QUESTION)], role="", session="")
    assert reply.choices[0].message.content == own.text == "green"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.prompt_tokens == own.usage.prompt
    assert reply.usage.completion_tokens == own.usage.completion
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_cached_tokens_are_reported(serve: Serve, client: Client) -> None:
    asker = client(serve())
    first, second = ask(asker, QUESTION * 9), ask(asker, QUESTION * 9)
    assert first.usage.prompt_tokens_details.cached_tokens == 0
    assert second.usage.prompt_tokens_details.cached_tokens > 0


def test_models_health_and_stats(serve: Serve, client: Client) -> None:
    server = serve()
    asker = client(server)
    assert [model.id for model in asker.models.list()] == ["embedded"]
    assert asker.models.retrieve("embedded").id == "embedded"
    ask(asker)
    root = server.address.removesuffix("/v1")
    with urlopen(f"{root}/health") as reply:
        assert json.load(reply) == {"status": "ok"}
    with urlopen(f"{root}/stats") as reply:
        assert json.load(reply) == {"requests": 1, "completions": 1}


def test_text_may_come_in_parts(serve: Serve, client: Client) -> None:
    parts = [
        {"role": "developer", "content": [{"type": "text", "text": "Answer. "}, {"type": "text", "text": QUESTION}]}
    ]
    reply = client(serve()).chat.completions.create(model="embedded", messages=parts)  # type: ignore[arg-type]
    assert reply.choices[0].message.content == "green"


def test_bad_requests_are_named(serve: Serve, client: Client) -> None:
    asker = client(serve())
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        asker.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "x"}])
    refused: dict[str, dict[str, Any]] = {
        r"`int` >= 1 - at `\$.n`": {"n": 0},
        "cannot do 'logprobs'": {"logprobs": True},
        "needs stream=true": {"stream_options": {"include_usage": True}},
        r"at `\$.response_format.type`": {"response_format": {"type": "xml"}},
        r"'robot' - at `\$.messages\[0\].role`": {"messages": [{"role": "robot", "content": "x"}]},
        r"'image_url' - at `\$.messages\[0\].content\[0\].type`": {
            "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
        },
    }
    for message, fields in refused.items():
        with pytest.raises(openai.BadRequestError, match=message):
            ask(asker, **({"messages": [{"role": "user", "content": "x"}]} | fields))
    with pytest.raises(openai.NotFoundError, match="nothing at /v1/responses; this server has /v1/chat/completions"):
        asker.responses.create(model="embedded", input="x")
    with pytest.raises(openai.BadRequestError, match=r"length >= 1 - at `\$.messages`"):
        asker.chat.completions.create(model="embedded", messages=[])


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"{}", b'{"model": "embedded", "messages": [{"role": "user", "content": 7}]}', b"[" * 100_000]
)
def test_malformed_bodies_get_400_and_the_connection_lives_on(serve: Serve, body: bytes) -> None:
    connection = http.client.HTTPConnection(urlsplit(serve().address).netloc, timeout=20)
    for _ in range(2):
        connection.request("POST", "/v1/chat/completions", body=body)
        reply = connection.getresponse()
        assert reply.status == 400
        assert json.load(reply)["error"]["type"] == "invalid_request_error"
    connection.request("GET", "/nowhere")
    reply = connection.getresponse()
    assert reply.status == 404
    reply.read()
    connection.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Content-Length: ten", 400),
        ("Content-Length: -5", 400),
        ("Content-Length: +5", 400),
        ("Content-Length: 5.0", 400),
        ("Content-Length: 0x10", 400),
        ("Content-Length: \u00b2", 400),  # a digit to str.isdigit, none to int
        ("Content-Length:", 400),
        ("Content-Length: 2\r\nContent-Length: 3", 400),
        ("Content-Length: 2\r\nTransfer-Encoding: chunked", 400),
        ("Content-Length: 99999999999", 413),
        ("Content-Length: " + "9" * 5_000, 413),  # more digits than int reads
        ("Transfer-Encoding: chunked", 411),
        ("X-Other: 1", 411),
    ],
)
def test_a_wrong_length_gets_an_answer_and_no_traceback(
    serve: Serve, client: Client, capfd: pytest.CaptureFixture[str], headers: str, status: int
) -> None:
    server = serve()
    reply = raw(server, f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n{{}}")
    assert reply.status == status
    assert json.load(reply)["error"]["type"] == "invalid_request_error"
    assert ask(client(server)).choices[0].message.content == "green"
    assert capfd.readouterr().err == ""


def test_a_body_that_ends_early_gets_an_answer(serve: Serve) -> None:
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
    assert raw(serve(), head + "{", half_close=True).status == 400


def raw(server: ReaderServer, request: str, *, half_close: bool = False) -> http.client.HTTPResponse:
    """Send bytes that no client library would send."""
    address = urlsplit(server.address)
    connection = socket.create_connection((address.hostname, address.port), timeout=20)
    connection.sendall(request.encode("latin-1"))
    if half_close:
        connection.shutdown(socket.SHUT_WR)
    reply = http.client.HTTPResponse(connection)
    reply.begin()
    connection.close()  # the reply keeps its own hold of it
    return reply


def test_requests_that_are_no_posts_get_errors_in_the_same_form(serve: Serve) -> None:
    server = serve()
    for method, path, status in (("GET", "/v1/chat/completions", 405), ("GET", "/nowhere", 404), ("PUT", "/v1", 501)):
        reply = raw(server, f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n")
        assert reply.status == status
        assert json.load(reply)["error"]["message"]


def test_embeddings_come_in_both_forms(serve: Serve, client: Client) -> None:
    asker = client(serve())
    floats = asker.embeddings.create(model="embedded", input="a green frog", encoding_format="float")
    usual = asker.embeddings.create(model="embedded", input="a green frog")  # the client asks for base64
    assert usual.data[0].embedding == pytest.approx(floats.data[0].embedding, rel=1e-6)


def test_sixteen_threads_at_once(serve: Serve, client: Client) -> None:
    server = serve(latency_s=0.01)
    asker = client(server)
    colours = ["red", "green", "blue"]
    texts = [f"Choose from: red, green, blue. What is the colour of the {colours[n % 3]} boat?" for n in range(96)]
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda text: ask(asker, text).choices[0].message.content, texts))
    assert replies == [colours[n % 3] for n in range(96)]
    assert server.stats()["completions"] == 96


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("http_500", openai.InternalServerError),
        ("http_429", openai.RateLimitError),
        ("drop", openai.APIConnectionError),
        ("truncate", openai.APIConnectionError),
    ],
)
def test_each_fault_reaches_the_client(serve: Serve, client: Client, fault: str, error: type[Exception]) -> None:
    server = serve(faults=Faults(chances={fault: 1.0}))
    with pytest.raises(error) as caught:
        ask(client(server))
    if isinstance(caught.value, openai.RateLimitError):
        assert float(caught.value.response.headers["Retry-After"]) > 0
    assert server.stats()[f"fault_{fault}"] == 1


def test_an_empty_reply_is_a_fault_too(serve: Serve, client: Client) -> None:
    assert ask(client(serve(faults=Faults(chances={"empty": 1.0})))).choices[0].message.content == ""


def test_an_agent_can_be_made_to_talk_without_acting(serve: Serve, client: Client) -> None:
    words, acts = (acted(client(serve(faults=faults))) for faults in (Faults(chances={"no_code": 1.0}), None))
    assert words
    assert acts.startswith(f"{words}\n\n```python\n")


def test_an_agent_can_be_made_to_look_things_up_first(serve: Serve, client: Client) -> None:
    assert "api_docs.show_api_descriptions" in acted(client(serve(attention=3)))
    assert "api_docs" not in acted(client(serve()))


def acted(client: openai.OpenAI) -> str:
    """Return the reply to an agent's first message."""
    system = {"role": "system", "content": "When it is done, call `apis.supervisor.complete_task()`."}
    asked = {"role": "user", "content": "<question>\nPay the bill.\n</question>"}
    reply = client.chat.completions.create(model="embedded", messages=[system, asked])  # type: ignore[list-item]
    return reply.choices[0].message.content or ""


def test_faults_repeat_with_their_seed_and_pass_with_retries(serve: Serve, client: Client) -> None:
    chances = parse_chances("http_500=0.2, http_429=0.2,empty=0.1")
    draws = [[faults.draw() for _ in range(50)] for faults in (Faults(chances=chances, seed=3) for _ in range(2))]
    assert draws[0] == draws[1]
    assert {"http_500", "http_429", "empty", None} == set(draws[0])
    server = serve(faults=Faults(chances=parse_chances("http_429=0.3"), seed=3))
    asker = client(server, retries=10)
    assert {ask(asker).choices[0].message.content for _ in range(10)} == {"green"}
    assert server.stats()["fault_http_429"] > 0


@pytest.mark.parametrize(
    "text", ["oops=0.1", "http_500", "http_500=x", "http_500=1.5", "drop=0.6,empty=0.6", "drop=nan"]
)
def test_impossible_chances_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Faults(chances=parse_chances(text))


@pytest.mark.parametrize(
    ("stop", "status", "said"),
    [(signal.SIGTERM, 0, ""), (signal.SIGINT, 130, "Interrupted; the server has stopped.\n")],
)
def test_the_command_serves_until_it_is_told_to_stop(stop: signal.Signals, status: int, said: str) -> None:
    command = [sys.executable, "-m", "ace_rehearsal.server.serve", "--port", "0", "--latency-ms", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().split()[-1]
        with openai.OpenAI(base_url=address, api_key="none") as asker:
            assert ask(asker).choices[0].message.content == "green"
            process.send_signal(stop)
            assert process.wait(timeout=20) == status
        assert process.stderr.read() == said
