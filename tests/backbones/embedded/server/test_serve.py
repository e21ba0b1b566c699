"""The embedded backbone over HTTP: what it answers, refuses, and does on purpose."""

import http.client
import json
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from ace_bench.backbones.embedded.server.faults import Faults, parse_chances
from tests.backbones.embedded.server.conftest import QUESTION, ask

COMPLETIONS, LONG = "/v1/chat/completions", QUESTION + " " * 500


def raw(server, request, *, half_close=False):
    """Send bytes that no client library would send."""
    address = urlsplit(server.address)
    connection = socket.create_connection((address.hostname, address.port), timeout=20)
    connection.sendall(request.encode("latin-1"))
    if half_close:
        connection.shutdown(socket.SHUT_WR)
    reply = http.client.HTTPResponse(connection)
    reply.begin()
    connection.close()  # the reply keeps its own hold of it
    return SimpleNamespace(status=reply.status, error=json.load(reply)["error"])


LENGTHS = {
    400: ["ten", "-5", "+5", "5.0", "0x10", "\u00b2", "", "2\r\nContent-Length: 3", "2\r\nTransfer-Encoding: chunked"],
    413: ["99999999999", "9" * 5_000],  # more digits than int reads
}


def test_a_request_of_another_form_gets_an_answer_and_no_traceback(server, capfd):
    heads = [(f"Content-Length: {length}", status) for status, lengths in LENGTHS.items() for length in lengths]
    for head, status in [*heads, ("Transfer-Encoding: chunked", 411), ("X-Other: 1", 411)]:
        reply = raw(server, f"POST {COMPLETIONS} HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n{{}}")
        assert (reply.status, reply.error["type"]) == (status, "invalid_request_error"), head[:40]
    early = f"POST {COMPLETIONS} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{"
    assert raw(server, early, half_close=True).status == 400
    unknown = raw(server, "PUT /v1 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (unknown.status, unknown.error["type"]) == (501, "server_error")
    assert ask(server).choices[0].message.content == "green"
    assert capfd.readouterr().err == ""


FAULTS = {
    "http_500": "InternalServerError",
    "http_429": "RateLimitError",
    "drop": "APIConnectionError",
    "truncate": "APIConnectionError",
}
"""What openai's client raises."""


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_reaches_the_client(serve, fault):
    import openai

    server = serve(faults=Faults(chances={fault: 1.0}))
    with pytest.raises(getattr(openai, FAULTS[fault])) as caught:
        ask(server)
    if fault == "http_429":
        assert float(caught.value.response.headers["Retry-After"]) > 0
    assert server.stats()[f"fault_{fault}"] == 1
    if fault == "truncate":
        with pytest.raises(Exception, match=r"(?i)incomplete chunked read|connection error"):
            ask(server, stream=True)


def test_a_reply_can_be_made_empty_an_agent_talk_without_acting_or_look_things_up_first(serve):
    system = {"role": "system", "content": "When it is done, call `apis.supervisor.complete_task()`."}
    task = {"role": "user", "content": "<question>\nPay the bill.\n</question>"}

    def said(fault=None, **settings):
        faults = Faults(chances={fault: 1.0} if fault else {})
        return ask(serve(faults=faults, **settings), messages=[system, task]).choices[0].message.content

    assert said("empty") == ""
    assert said().startswith(f"{said('no_code')}\n\n```python\n")
    assert said("no_code")
    assert "api_docs.show_api_descriptions" in said(attention=3)
    assert "api_docs" not in said()


def test_faults_repeat_with_their_seed_and_pass_with_retries(serve):
    chances = parse_chances("http_500=0.2, http_429=0.2,empty=0.1")
    first, second = ([faults.draw() for _ in range(50)] for faults in (Faults(chances=chances, seed=3),) * 2)
    again = Faults(chances=chances, seed=3)
    assert first == [again.draw() for _ in range(50)] != second
    assert {"http_500", "http_429", "empty", None} == set(first)
    server = serve(faults=Faults(chances=parse_chances("http_429=0.3"), seed=3))
    assert {ask(server, retries=10).choices[0].message.content for _ in range(10)} == {"green"}
    assert server.stats()["fault_http_429"] > 0


@pytest.mark.parametrize(
    "text", ["oops=0.1", "http_500", "http_500=x", "http_500=1.5", "drop=0.6,empty=0.6", "drop=nan"]
)
def test_impossible_chances_are_refused(text):
    with pytest.raises(ValueError, match=r"\w"):
        Faults(chances=parse_chances(text))


@pytest.mark.parametrize(
    ("stop", "status", "said"),
    [(signal.SIGTERM, 0, ""), (signal.SIGINT, 130, "Interrupted; the server has stopped.\n")],
)
def test_the_command_serves_until_it_is_told_to_stop(stop, status, said):
    command = [sys.executable, "-m", "ace_bench.backbones.embedded.server.serve", "--port", "0", "--latency-ms", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().split()[-1]
        assert ask(SimpleNamespace(address=address)).choices[0].message.content == "green"
        process.send_signal(stop)
        assert process.wait(timeout=20) == status
        assert process.stderr.read() == said
