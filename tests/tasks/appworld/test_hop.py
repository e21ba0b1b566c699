"""A fuzzer at both ends of the hop: as the server of a harness, and as the interpreter of a world."""

from __future__ import annotations

import base64
import json
import random
import socket
import struct
import threading
from contextlib import suppress

import pytest

from ace_bench.tasks.appworld.engine_side.processes import MAX_MESSAGE, MAX_OUTPUT, receive
from ace_bench.tasks.appworld.session import _MAX_REPLY, Reply, run_code

BUFFERS = 4 << 20
"""What sockets may hold that nobody has read."""
RIGHT = {"output": "1\n", "left_out": 0, "completed": False}


def framed(content: bytes, length: int | None = None) -> bytes:
    return struct.pack("!I", len(content) if length is None else length) + content


def wrong_value(rng: random.Random):
    deep = json.loads("[" * 50 + "]" * 50)
    return rng.choice([None, -1, 1 << 80, 1.5, "", "x" * (MAX_OUTPUT + 1), [], {}, deep, True, "\ud800", "\0"])


def wrong_form(rng: random.Random) -> bytes:
    """JSON of the wrong form, or what is no JSON."""
    changed = RIGHT | {rng.choice([*RIGHT, "more"]): wrong_value(rng)}
    return rng.choice(
        [
            json.dumps(changed).encode(),
            json.dumps(wrong_value(rng)).encode(),
            json.dumps(RIGHT).encode()[: rng.randrange(30)],
            rng.choice([b"[", b'{"more":', b'{"output":']) * rng.choice([10, 3000, 100_000]),
            b"1" * 10_000,
            rng.randbytes(rng.randrange(200)),
            b'{"output": "\xff", "left_out": 0, "completed": true}',
        ]
    )


def hostile_bytes(rng: random.Random) -> bytes:
    """Some messages, most of them wrong in length or content."""
    content = wrong_form(rng)
    return b"".join(
        rng.choice(
            [
                framed(content),
                framed(content, rng.choice([0, 1, 1 << 31, (1 << 32) - 1, (1 << 32) - 5, MAX_MESSAGE, _MAX_REPLY + 1])),
                framed(content, rng.randrange(2 * len(content) + 1)),
                rng.randbytes(rng.randrange(9)),
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
                framed(json.dumps(RIGHT).encode()),
                framed(b"x" * (2 << 20)),
            ]
        )
        for _ in range(rng.choice([0, 1, 1, 2, 5]))
    )


class Peer:
    """The other end of a connection: sends what it likes, as fast, as slowly and as long as it likes."""

    def __init__(self, rng: random.Random):
        self.harness, self._end = socket.socketpair()
        self._manner = rng.choice(["once", "once", "close", "close", "flood", "drip"])
        self._listens = rng.random() < 0.8
        self._bytes = hostile_bytes(rng)
        self.sent = 0
        self._thread = threading.Thread(target=self._play)
        self._thread.start()

    def _play(self) -> None:
        with suppress(OSError, ValueError):
            if self._listens:
                receive(self._end.recv)
            part = 1 if self._manner == "drip" else 1 << 16
            while True:
                for start in range(0, len(self._bytes), part):
                    self.sent += self._end.send(self._bytes[start : start + part])
                if self._manner != "flood" or not self._bytes:
                    break
        if self._manner == "close":
            self._end.close()

    def close(self) -> None:
        self.harness.close()
        self._thread.join(10)
        self._end.close()


@pytest.mark.parametrize("cases", [100, pytest.param(20_000, marks=pytest.mark.thorough)])
def test_a_hostile_server_gets_a_reply_or_a_failure_and_no_more_memory_than_a_reply(cases):
    ends = set()
    for seed in range(cases):
        peer = Peer(random.Random(seed))
        try:
            reply = run_code(peer.harness, "print(1)", seconds=0.05)
            assert isinstance(reply, Reply)
            assert len(reply.output) <= MAX_OUTPUT
            ends.add("reply")
        except (OSError, ValueError) as error:
            ends.add(next(kind for kind in (TimeoutError, OSError, ValueError) if isinstance(error, kind)))
        finally:
            peer.close()
        assert peer.sent <= _MAX_REPLY + BUFFERS, seed
    assert ends == {"reply", TimeoutError, OSError, ValueError}


INTERPRETER = """
ends = []
for number in range(3, 250):
    try: ends.append(__import__('socket').socket(fileno=number))
    except OSError: pass
text = __import__('base64').b64decode({text!r})
manner, end = {manner!r}, ends[{end} % len(ends)]
assert len(ends) == 2, ends
try:
    for part in ([text] if manner != 'drip' else [text[at:at + 1] for at in range(len(text))]):
        end.sendall(part)
    while manner == 'flood' and text:
        end.sendall(text)
finally:
    if manner == 'close':
        end.close()
    if manner == 'silent':
        __import__('threading').Event().wait()
"""


@pytest.mark.parametrize(
    "cases", [pytest.param(4, marks=pytest.mark.slow), pytest.param(400, marks=pytest.mark.thorough)]
)
def test_a_hostile_interpreter_fails_its_own_attempt_and_no_other(task, cases, monkeypatch):
    monkeypatch.setattr("ace_bench.tasks.appworld.session.GRACE_S", 1.0)
    monkeypatch.setattr("ace_bench.tasks.appworld.session._SETTLE_S", 1.0)
    monkeypatch.setattr(task, "_timeout", 1)
    sample = task.samples("train")[0]
    for seed in range(cases):
        rng = random.Random(seed)
        text = base64.b64encode(hostile_bytes(rng)).decode()
        manner = rng.choice(["once", "close", "flood", "drip", "silent"])
        with task.open(sample) as session:
            for _ in range(2):
                shown = session.step(INTERPRETER.format(text=text, manner=manner, end=rng.randrange(2)))
                assert len(shown) <= MAX_OUTPUT + 100, seed
                assert "AssertionError" not in shown, shown
            assert not session.grade("done").correct
    with task.open(sample) as session:
        assert session.step("print(1)") == "1\n"
