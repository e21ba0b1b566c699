"""The transport under the client: connections kept, renewed and closed; encodings; proxies; encryption."""

import gzip
import shutil
import ssl
import subprocess
import threading
import time

import pytest

from ace_bench.backbones.openai_compatible import connections
from ace_bench.backbones.openai_compatible.settings import Retry
from ace_bench.core.errors import BackboneUnavailable, Interrupted, RolloutFault
from ace_bench.core.types import Message
from tests.backbones.openai_compatible.scripted import PROMPT, Reply, answer, client, complete, serving

pytestmark = pytest.mark.usefixtures("each_client")

BODY = b'{"model": "m", "choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}]}'


def response(body=BODY, *headers):
    lines = [b"HTTP/1.1 200 OK", *headers, b"Content-Length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def raw(content=None, does="raw"):
    return Reply(body=response() if content is None else content, does=does)


def ask(backbone):
    return backbone.complete(PROMPT, role="g", session="s")


TALKS = {
    "one connection serves many calls": ([answer()] * 3, 1),
    "one that the server closed is replaced": ([raw(does="last")] * 3, 3),
    "the server's word to close is kept": ([raw(response(BODY, b"Connection: close"))] * 3, 3),
    "one that idled long is replaced": ([answer()] * 3, 3),
}


@pytest.mark.parametrize("case", TALKS)
def test_connections_are_kept_and_replaced_without_a_retry(case, monkeypatch):
    replies, accepted = TALKS[case]
    if "idled" in case:
        monkeypatch.setattr(connections, "KEEPALIVE_S", 0.0)
    with serving(*replies) as server:
        backbone = client(server.url)
        for _ in replies:
            assert ask(backbone).retries == 0
            time.sleep(0.05)  # the server's end must arrive
        backbone.close()
        assert server.accepted == accepted


def test_what_follows_a_reply_does_not_answer_the_next_request(each_client):
    if each_client == "openai":
        pytest.skip("its library takes it for the next answer")
    with serving(raw(response() + response()), raw(response(BODY.replace(b"fine", b"good")))) as server:
        backbone = client(server.url)
        assert [ask(backbone).text for _ in range(2)] == ["fine", "good"]
        backbone.close()


def test_a_refusal_before_the_whole_request_was_read_is_heard():
    reply = b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 8\r\n\r\ntoo long"
    large = (Message(role="user", content="x" * 20_000_000),)
    with serving(raw(reply, "refuse")) as server, pytest.raises(RolloutFault, match="too long"):
        client(server.url, retry=Retry(times=0)).complete(large, role="g", session="s")


READABLE = {
    "gzip": response(gzip.compress(BODY), b"Content-Encoding: gzip"),
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
    "until the end": b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + BODY,
    "latin": response(BODY, b"X-Name: \xe9\xff"),
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n" + response(),
}


@pytest.mark.parametrize("form", READABLE)
def test_replies_in_all_forms_of_http(form):
    with serving(raw(READABLE[form], "last")) as server:
        assert complete(server.url).text == "fine"


BROKEN = {
    "no HTTP": b"not HTTP at all\r\n\r\n",
    "no status": b"HTTP/1.1 abc\r\n\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500,
    "a long header": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
    "no end of headers": b"HTTP/1.1 200 OK\r\nX-Name: y\r\n",
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + BODY,
    "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n" + BODY,
    "cut": response()[:-9],
}


def fault_of(url, **settings):
    with pytest.raises(RolloutFault) as caught:
        complete(url, **{"retry": Retry(times=0), **settings})
    return caught.value.fault


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_not_http_is_a_fault(case):
    with serving(raw(BROKEN[case], "last")) as server:
        assert fault_of(server.url, retry=Retry(times=1, first_pause=0.001)).kind == "dropped"


BEGUN = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{"
SLOW = {
    "stops in the middle": raw(response()[:-5], "hang"),
    "drips in the headers": raw(b"HTTP/1.1 200 OK\r\nX-Slow: ", "drip"),
    "drips in the body": raw(BEGUN, "drip"),
}


@pytest.mark.parametrize("case", SLOW)
def test_a_reply_that_does_not_end_is_over_with_the_time_of_the_attempt(case):
    with serving(SLOW[case]) as server:
        fault = fault_of(server.url, timeout=0.3)
    assert (fault.kind, "0.3 s" in fault.message) == ("timeout", True)


def test_a_proxy_of_the_environment_is_used_unless_excepted(monkeypatch):
    with serving(answer("by proxy")) as proxy, serving(answer("direct")) as server:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "")
        assert complete("http://far.invalid/v1").text == "by proxy"
        assert proxy.seen[0][0] == "http://far.invalid/v1/chat/completions"
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert complete(server.url).text == "direct"


def test_encryption_is_checked(tmp_path, monkeypatch):
    if shutil.which("openssl") is None:
        pytest.skip("makes its certificate with openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving(context=context) as server:
        url = f"https://localhost:{server.server_port}/v1"
        with pytest.raises(BackboneUnavailable, match=r"certificate|CERTIFICATE"):
            complete(url, retry=Retry(times=0))
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert complete(url, retry=Retry(times=0)).text == "fine"
        monkeypatch.setenv("https_proxy", f"http://me:a%20word@127.0.0.1:{server.server_port}")
        monkeypatch.setenv("no_proxy", "")
        backbone = client("https://localhost:1/v1", retry=Retry(times=0))
        assert [ask(backbone).text for _ in range(2)] == ["fine", "fine"]
        backbone.close()
    assert server.tunnelled["path"] == "localhost:1"
    assert server.tunnelled["proxy-authorization"] == "Basic bWU6YSB3b3Jk"


def test_an_encrypted_address_of_a_plain_server_cannot_be_reached():
    with serving(Reply(body={})) as server, pytest.raises(BackboneUnavailable, match="cannot be reached"):
        complete(server.url.replace("http:", "https:"), retry=Retry(times=0))


@pytest.mark.parametrize(("reply", "grace"), [(raw(BEGUN, "drip"), 0.2), (Reply(status=500), 60.0)])
def test_an_interruption_ends_pauses_at_once_and_requests_after_a_grace(reply, grace):
    with serving(reply) as server:
        backbone = client(server.url, timeout=60, retry=Retry(first_pause=60, longest_pause=60))
        threading.Timer(0.2, backbone.interrupt, [grace]).start()
        for _ in range(2):
            with pytest.raises(Interrupted):
                ask(backbone)
        assert len(server.asked()) == 1
