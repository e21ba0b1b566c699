"""The error of a request that the server cannot answer."""

from __future__ import annotations


class BadRequest(Exception):
    """A request that gets an error reply: HTTP status, machine-readable code, message."""

    def __init__(self, status: int, code: str, message: str):
        super().__init__(message)
        self.status = status
        self.code = code
