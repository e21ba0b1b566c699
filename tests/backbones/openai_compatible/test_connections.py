"""The transport under the client: connections kept, renewed and closed; encodings; proxies; encryption."""

import gzip
import shutil
import socket
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


class Raw:
    """A server that writes given bytes for each request of each connection, then closes it if asked to."""

    def __init__(self, *connections, context=None):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.scripts = list(connections)
        self.context = context
        self.accepted = 0
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)  # wakes accept
        self.thread.join()
        self.socket.close()

    @property
    def port(self):
        return self.socket.getsockname()[1]

    def run(self):
        for replies in self.scripts:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.accepted += 1
            with connection:
                try:
                    if self.context is None:
                        self.serve(connection, replies)
                    else:
                        self.before_encryption(connection)
                        with self.context.wrap_socket(connection, server_side=True) as encrypted:
                            self.serve(encrypted, replies)
                except OSError:
                    continue

    def before_encryption(self, connection):
        pass

    def serve(self, connection, replies):
        for reply in replies:
            data = b""
            while b"\r\n\r\n" not in data:
                data += received(connection)
            head, _, body = data.partition(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            while len(body) < length:
                body += received(connection)
            connection.sendall(reply)


class Tunnel(Raw):
    """A proxy and the encrypted server behind it; keeps what opened the tunnel."""

    def before_encryption(self, connection):
        self.asked = received(connection)
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")


def received(connection):
    data = connection.recv(65536)
    if not data:
        raise OSError("the client went away")
    return data


def response(body=BODY, *headers):
    lines = [b"HTTP/1.1 200 OK", *headers, b"Content-Length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def ask(backbone):
    return backbone.complete(PROMPT, role="g", session="s")


def test_a_connection_serves_many_calls():
    with Raw([response()] * 3) as server:
        backbone = client(f"http://127.0.0.1:{server.port}/v1")
        assert [ask(backbone).retries for _ in range(3)] == [0, 0, 0]
        backbone.close()
    assert server.accepted == 1


def test_a_connection_that_the_server_closed_is_replaced_without_a_retry():
    with Raw([response()], [response()]) as server:
        backbone = client(f"http://127.0.0.1:{server.port}/v1")
        assert ask(backbone).retries == 0
        time.sleep(0.05)  # the server's end must arrive
        assert ask(backbone).retries == 0
    assert server.accepted == 2


def test_a_connection_that_idled_long_is_replaced(monkeypatch):
    monkeypatch.setattr(connections, "KEEPALIVE_S", 0.0)
    with Raw([response()] * 2, [response()] * 2) as server:
        backbone = client(f"http://127.0.0.1:{server.port}/v1")
        assert [ask(backbone).retries for _ in range(2)] == [0, 0]
        backbone.close()
    assert server.accepted == 2


def test_the_servers_word_to_close_is_kept():
    with Raw([response(BODY, b"Connection: close")], [response()]) as server:
        backbone = client(f"http://127.0.0.1:{server.port}/v1")
        assert [ask(backbone).retries for _ in range(2)] == [0, 0]
        backbone.close()
    assert server.accepted == 2


def test_what_follows_a_reply_does_not_answer_the_next_request(each_client):
    if each_client == "openai":
        pytest.skip("its library takes it for the next answer")
    second = [response(BODY.replace(b"fine", b"good"))]
    with Raw([response() + response(), *second], second) as server:
        backbone = client(f"http://127.0.0.1:{server.port}/v1")
        assert [ask(backbone).text for _ in range(2)] == ["fine", "good"]
        backbone.close()


class Refusing(Raw):
    """Answers and closes before it has read the request."""

    def serve(self, connection, replies):
        received(connection)
        connection.sendall(replies[0])
        connection.shutdown(socket.SHUT_RDWR)


def test_a_refusal_before_the_whole_request_was_read_is_heard():
    reply = b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 8\r\n\r\ntoo long"
    with Refusing([reply]) as server, pytest.raises(RolloutFault, match="too long"):
        client(f"http://127.0.0.1:{server.port}/v1", retry=Retry(times=0)).complete(
            (Message(role="user", content="x" * 20_000_000),), role="g", session="s"
        )


@pytest.mark.parametrize(
    "reply",
    [
        response(gzip.compress(BODY), b"Content-Encoding: gzip"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + BODY,
        response(BODY, b"X-Name: \xe9\xff"),
        b"HTTP/1.1 100 Continue\r\n\r\n" + response(),
    ],
    ids=["gzip", "chunked", "until the end", "latin", "continue"],
)
def test_replies_in_all_forms_of_http(reply):
    with Raw([reply]) as server:
        backbone = client(f"http://127.0.0.1:{server.port}/v1")
        assert ask(backbone).text == "fine"
        backbone.close()


@pytest.mark.parametrize(
    "reply",
    [
        b"not HTTP at all\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500,
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Name: y\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + BODY,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n" + BODY,
        response()[:-9],
    ],
    ids=["no HTTP", "no status", "many headers", "a long header", "no end of headers", "length", "chunk", "cut"],
)
def test_what_is_not_http_is_a_fault(reply):
    with Raw([reply], [reply]) as server, pytest.raises(RolloutFault) as caught:
        complete(f"http://127.0.0.1:{server.port}/v1", retry=Retry(times=1, first_pause=0.001))
    assert caught.value.fault.kind == "dropped"


def test_a_reply_that_stops_in_the_middle_times_out():
    with Raw([response()[:-5], b""]) as server, pytest.raises(RolloutFault) as caught:
        complete(f"http://127.0.0.1:{server.port}/v1", timeout=0.2, retry=Retry(times=0))
    assert caught.value.fault.kind == "timeout"


def test_a_header_that_http_cannot_carry_is_a_fault():
    with serving() as server, pytest.raises(RolloutFault) as caught:
        complete(server.url, extra_headers={"X-Team": "two\r\nlines"}, retry=Retry(times=0))
    assert caught.value.fault.kind == "dropped"


def test_closing_twice_and_calling_again_is_fine():
    with serving() as server:
        backbone = client(server.url)
        backbone.close()
        assert ask(backbone).text == "fine"
        backbone.close()
        backbone.close()
        assert ask(backbone).text == "fine"


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
    with Raw([response()], [response()], context=context) as server:
        url = f"https://localhost:{server.port}/v1"
        with pytest.raises(BackboneUnavailable, match=r"certificate|CERTIFICATE"):
            complete(url, retry=Retry(times=0))
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        backbone = client(url, retry=Retry(times=0))
        assert ask(backbone).text == "fine"
        backbone.close()
    with Tunnel([response()] * 2, context=context) as proxy:
        monkeypatch.setenv("https_proxy", f"http://me:a%20word@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "")
        backbone = client("https://localhost:1/v1", retry=Retry(times=0))
        assert [ask(backbone).text for _ in range(2)] == ["fine", "fine"]
        backbone.close()
    assert proxy.asked.startswith(b"CONNECT localhost:1 HTTP/1.")
    assert b"proxy-authorization: basic bwu6ysb3b3jk" in proxy.asked.lower()


def test_an_encrypted_address_of_a_plain_server_cannot_be_reached():
    with serving(Reply(body={})) as server, pytest.raises(BackboneUnavailable, match="cannot be reached"):
        complete(server.url.replace("http:", "https:"), retry=Retry(times=0))


class Dripping(Raw):
    """Sends a reply byte by byte, so that no single read takes long, and never comes to its end."""

    def serve(self, connection, replies):
        (head,) = replies
        connection.sendall(head)
        while True:
            connection.sendall(b" ")
            time.sleep(0.02)


@pytest.mark.parametrize(
    "begins",
    [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{"],
    ids=["in the headers", "in the body"],
)
def test_a_reply_that_drips_is_over_with_the_time_of_the_attempt(begins):
    with Dripping([begins]) as server, pytest.raises(RolloutFault) as caught:
        complete(f"http://127.0.0.1:{server.port}/v1", timeout=0.3, retry=Retry(times=0))
    assert caught.value.fault.kind == "timeout"
    assert "0.3 s" in caught.value.fault.message


def test_a_connection_is_used_again_with_a_time_of_its_own():
    with Raw([response()] * 2) as server:
        backbone = client(f"http://127.0.0.1:{server.port}/v1", timeout=0.6)
        for _ in range(2):
            assert ask(backbone).retries == 0
            time.sleep(0.4)
        backbone.close()
    assert server.accepted == 1


def test_an_interruption_ends_pauses_at_once_and_requests_after_a_grace():
    with Dripping([b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{"]) as server:
        backbone = client(f"http://127.0.0.1:{server.port}/v1", timeout=60)
        threading.Timer(0.2, backbone.interrupt, [0.2]).start()
        with pytest.raises(Interrupted):
            ask(backbone)
        with pytest.raises(Interrupted):
            ask(backbone)
    assert server.accepted == 1
    with serving(Reply(status=500)) as server:
        backbone = client(server.url, retry=Retry(first_pause=60, longest_pause=60))
        threading.Timer(0.2, backbone.interrupt, [60.0]).start()
        with pytest.raises(Interrupted):
            ask(backbone)
        assert len(server.asked()) == 1
