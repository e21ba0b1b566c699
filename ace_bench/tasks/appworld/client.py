"""The harness's end of the connection to a server.

The server may be under the control of agent code, so the time and size of a reply are limited and its form is checked.
"""

from __future__ import annotations

import socket
import time
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from ace_bench.core.typed import decoder_of
from ace_bench.tasks.appworld.engine_side.messages import MAX_OUTPUT, receive, send

_MAX_REPLY = 1 << 20
"""Longest reply that is read, in bytes: an output with every character escaped is shorter."""


class Failure(StrEnum):
    """Why a piece of code has no output."""

    TIMEOUT = "timeout"
    """There was no whole reply in time."""
    DISCONNECTED = "disconnected"
    """The connection broke."""
    INVALID = "invalid reply"
    """The reply is too long or does not have the right form."""


class CallFailed(Exception):
    """A piece of code without an output."""

    def __init__(self, failure: Failure):
        super().__init__(failure.value)
        self.failure = failure


class Reply(msgspec.Struct, frozen=True):
    """``output`` of a piece of code, without the ``left_out`` characters after it, and whether the task is complete."""

    output: Annotated[str, Meta(max_length=MAX_OUTPUT)]
    left_out: Annotated[int, Meta(ge=0, lt=1 << 40)]
    completed: bool


def run_code(server: socket.socket, code: str, *, seconds: float) -> Reply:
    """Have a server run a piece of code; raises ``CallFailed``."""
    until = time.monotonic() + seconds

    def read(count: int) -> bytes:
        server.settimeout(max(until - time.monotonic(), 1e-3))
        return server.recv(count)

    try:
        server.settimeout(seconds)
        send(server, code.encode(errors="replace"))
        reply: Reply = decoder_of(Reply).decode(receive(read, _MAX_REPLY))
    except TimeoutError as error:
        raise CallFailed(Failure.TIMEOUT) from error
    except OSError as error:
        raise CallFailed(Failure.DISCONNECTED) from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise CallFailed(Failure.INVALID) from error
    return reply
