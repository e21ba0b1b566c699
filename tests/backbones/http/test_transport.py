"""The transport: connections kept, renewed and closed; forms and bounds of replies; proxies; encryption."""

import gzip
import shutil
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ace_bench.backbones.http import framing, transport
from ace_bench.backbones.http.route import Route
from ace_bench.backbones.http.transport import Transport, TransportError
from ace_bench.backbones.openai_compatible.settings import Retry
from ace_bench.core.errors import BackboneUnavailable, Interrupted, RolloutFault
from ace_bench.core.types import Message
from tests.backbones.openai_compatible.scripted import PROMPT, Reply, answer, client, complete, serving

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
        monkeypatch.setattr(transport, "KEEPALIVE_S", 0.0)
    with serving(*replies) as server:
        backbone = client(server.url)
        for _ in replies:
            assert ask(backbone).retries == 0
            time.sleep(0.05)  # the server's end must arrive
        backbone.close()
        assert server.accepted == accepted


def test_connections_of_a_burst_end_when_they_are_not_used(monkeypatch):
    monkeypatch.setattr(transport, "KEEPALIVE_S", 0.1)
    with serving(raw(does="pieces")) as server, ThreadPoolExecutor(8) as pool:
        backbone = client(server.url)
        assert [*pool.map(lambda _: ask(backbone).text, range(8))] == ["fine"] * 8
        began = server.accepted
        assert began > 1
        time.sleep(0.2)
        ask(backbone)
        until = time.monotonic() + 5
        while server.ended < began and time.monotonic() < until:
            time.sleep(0.01)
        assert (server.ended, server.accepted) == (began, began + 1)
        backbone.close()


def test_what_follows_a_reply_does_not_answer_the_next_request():
    with serving(raw(response() + response()), raw(response(BODY.replace(b"fine", b"good")))) as server:
        backbone = client(server.url)
        assert [ask(backbone).text for _ in range(2)] == ["fine", "good"]
        backbone.close()


def test_a_refusal_before_the_whole_request_was_read_is_heard():
    reply = b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 8\r\n\r\ntoo long"
    large = (Message(role="user", content="x" * 20_000_000),)
    with serving(raw(reply, "refuse")) as server, pytest.raises(RolloutFault, match="too long"):
        client(server.url, retry=Retry(times=0)).complete(large, role="g", session="s")


def chunks(*parts, end=b"0\r\n\r\n", headers=b""):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n%b\r\n" % headers
    return head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + end


READABLE = {
    "gzip": response(gzip.compress(BODY), b"Content-Encoding: gzip"),
    "chunked": chunks(BODY[:20], BODY[20:]),
    "chunked with an extension and a trailer": chunks(end=b"%x;a=b\r\n%b\r\n0\r\nX: y\r\n\r\n" % (len(BODY), BODY)),
    "chunked, with a length beside it": chunks(BODY, headers=b"Content-Length: 3\r\n"),
    "until the end": b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + BODY,
    "until the end, of HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
    "the same length twice": response(BODY, b"Content-Length: %d" % len(BODY)),
    "latin": response(BODY, b"X-Name: \xe9\xff"),
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n" + response(),
    "bare line ends": response().replace(b"\r\n", b"\n"),
}


@pytest.mark.parametrize("form", READABLE)
def test_replies_in_all_forms_of_http(form):
    with serving(raw(READABLE[form], "last")) as server:
        assert complete(server.url).text == "fine"


@pytest.mark.parametrize("form", ["chunked with an extension and a trailer", "continue"])
def test_a_reply_may_come_in_pieces_while_there_is_time(form):
    with serving(raw(READABLE[form], "pieces")) as server:
        assert complete(server.url, timeout=0.9).text == "fine"


def headed(*lines):
    return b"\r\n".join((b"HTTP/1.1 200 OK", *lines)) + b"\r\n\r\n" + BODY


LENGTH = b"Content-Length: %d" % len(BODY)
BROKEN = {
    "no HTTP": b"not HTTP at all\r\n\r\n",
    "no status": b"HTTP/1.1 abc\r\n\r\n",
    "statuses without end": b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + response(),
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\0\1\2\3",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500,
    "a long header": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
    "no end of headers": b"HTTP/1.1 200 OK\r\nX-Name: y\r\n",
    "no name of a header": headed(LENGTH, b"no colon"),
    "a blank before the colon": headed(b"Content-Length : %d" % len(BODY)),
    "a header over two lines": headed(LENGTH, b"X: y", b" z"),
    "length below zero": headed(b"Content-Length: -1"),
    "length with an underscore": headed(b"Content-Length: 1_0"),
    "length of two numbers": headed(b"Content-Length: %d, 5" % len(BODY)),
    "two lengths": headed(LENGTH, b"Content-Length: 5"),
    "an unknown coding": headed(b"Transfer-Encoding: gzip, chunked"),
    "an unknown encoding": headed(b"Content-Encoding: br", LENGTH),
    "chunk below zero": chunks(end=b"-1\r\n" + BODY),
    "chunk without a size": chunks(end=b"\r\n" + BODY),
    "chunk longer than its size": chunks(end=b"5\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "chunks without end": chunks(BODY, end=b""),
    "trailers without end": chunks(BODY, end=b"0\r\n" + b"X: y\r\n" * 500),
    "cut": response()[:-9],
    "cut gzip": response(gzip.compress(BODY)[:-9], b"Content-Encoding: gzip"),
    "no gzip": response(BODY, b"Content-Encoding: gzip"),
}


def fault_of(url, **settings):
    with pytest.raises(RolloutFault) as caught:
        complete(url, **{"retry": Retry(times=0), **settings})
    return caught.value.fault


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_not_one_whole_reply_is_a_fault(case):
    with serving(raw(BROKEN[case], "last")) as server:
        assert fault_of(server.url, retry=Retry(times=1, first_pause=0.001)).kind == "dropped"


PLAIN = b" " * 3_000_000 + BODY
LARGE = {
    "a length": response(PLAIN)[:5000],
    "chunks": chunks(*[PLAIN[:65_536]] * 40),
    "the size of one chunk": chunks(end=b"ffffffff\r\n" + PLAIN[:5000]),
    "until the end": b"HTTP/1.1 200 OK\r\n\r\n" + PLAIN,
    "after decompression": response(gzip.compress(PLAIN), b"Content-Encoding: gzip"),
}


@pytest.mark.parametrize("case", LARGE)
def test_a_reply_without_bounds_is_not_read_to_its_end(case, monkeypatch):
    monkeypatch.setattr(framing, "LARGEST", 2 << 20)
    with serving(raw(LARGE[case], "hang" if case == "a length" else "last")) as server:
        fault = fault_of(server.url)
    assert (fault.kind, "larger than 2 MiB" in fault.message) == ("dropped", True)


def test_a_redirect_takes_the_key_nowhere(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-own-0123456789")
    with serving() as other:
        away = Reply(status=307, body=b"", headers={"Location": f"{other.url}/chat/completions"})
        with serving(away) as server, pytest.raises(BackboneUnavailable, match="redirects are not followed"):
            complete(server.url, api_key_env="MY_KEY")
        assert not other.seen


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


def test_a_server_that_does_not_read_the_request_is_over_with_the_time_of_the_attempt():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        large = (Message(role="user", content="x" * 50_000_000),)
        with pytest.raises(RolloutFault, match=r"no answer within timeout=0\.5 s"):
            client(url, timeout=0.5, retry=Retry(times=0)).complete(large, role="g", session="s")


def test_a_transport_that_was_aborted_sends_nothing_and_one_that_was_closed_keeps_nothing():
    with serving(*[raw()] * 2) as server:
        sent = Transport(Route(base_url=server.url, headers={}, timeout=5))
        sent.close()
        for _ in range(2):
            assert sent.send("POST", "/chat/completions", b"{}", {}).content == BODY
        assert server.accepted == 2
        sent.abort(0)
        time.sleep(0.1)
        with pytest.raises(TransportError, match="being stopped"):
            sent.send("POST", "/chat/completions", b"{}", {})
        assert len(server.seen) == 2


def test_a_proxy_of_the_environment_is_used_unless_excepted(monkeypatch):
    with serving(answer("by proxy")) as proxy, serving(answer("direct")) as server:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "")
        assert complete("http://far.invalid/v1").text == "by proxy"
        assert proxy.seen[0][0] == "http://far.invalid/v1/chat/completions"
        monkeypatch.setenv("no_proxy", "far.invalid")
        with pytest.raises(BackboneUnavailable, match="cannot be reached"):
            complete("http://far.invalid/v1", retry=Retry(times=0))
        monkeypatch.setenv("no_proxy", "")
        assert complete(server.url).text == "direct", "no proxy reaches this machine"


def test_a_proxy_of_another_kind_is_refused_by_its_name(monkeypatch):
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(BackboneUnavailable, match="does not begin with http://: name one in https_proxy"):
        complete("https://far.invalid/v1", retry=Retry(times=0))


def test_encryption_is_checked(tmp_path, monkeypatch):
    if shutil.which("openssl") is None:
        pytest.skip("makes its certificate with openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,DNS:far.invalid"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving(context=context) as server:
        url = f"https://localhost:{server.server_port}/v1"
        with pytest.raises(BackboneUnavailable, match="name a file of certificates that you trust in SSL_CERT_FILE"):
            complete(url, retry=Retry(times=0))
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert complete(url, retry=Retry(times=0)).text == "fine"
        monkeypatch.setenv("https_proxy", f"http://me:a%20word@127.0.0.1:{server.server_port}")
        monkeypatch.setenv("no_proxy", "")
        backbone = client("https://far.invalid:1/v1", retry=Retry(times=0))
        assert [ask(backbone).text for _ in range(2)] == ["fine", "fine"]
        backbone.close()
    assert server.tunnelled["path"] == "far.invalid:1"
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
