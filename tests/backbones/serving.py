"""Runs a server of this process while a test talks to it."""

import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

Server = TypeVar("Server", bound=socketserver.BaseServer)


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """Serve from a thread; the server is closed and the thread over when the block ends, however it ends."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server of a process listens."""
    for _ in range(600):
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        assert process.poll() is None, "the server ended"
        time.sleep(0.1)
    raise AssertionError("the server did not start")


def over_http(address: str, **settings: object) -> tuple[str, ...]:
    """The settings of a user whose model is the embedded reader at an address; ``settings`` are its backbone's."""
    known = {"base_url": address, "model": "embedded", "api_key_env": "null", "simulated": "true", **settings}
    return ("backbone=openai_compatible", *(f"backbone.{name}={value}" for name, value in known.items()))
