"""Permissions that hold for root, too, as tests in containers need them."""

import contextlib
import ctypes
from collections.abc import Iterator


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@contextlib.contextmanager
def permissions_count() -> Iterator[None]:
    """Let permissions hold for root, too, until the block ends (capabilities 1 and 2 of Linux)."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = _Header(version=0x20080522, pid=0), (_Sets * 2)()
    assert libc.capget(ctypes.byref(header), sets) == 0
    before = sets[0].effective
    sets[0].effective = before & ~0b110
    assert libc.capset(ctypes.byref(header), sets) == 0
    try:
        yield
    finally:
        sets[0].effective = before
        assert libc.capset(ctypes.byref(header), sets) == 0
