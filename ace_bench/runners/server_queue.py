"""Looks at the load of the server that a run calls, so that the slots of this process can follow it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from ace_bench.core.backbones import Backbone, LoadReporting
from ace_bench.core.types import ServerLoad
from ace_bench.runners.call_slots import Slots


@contextmanager
def queue_kept_here(slots: Slots | None, backbones: Collection[Backbone]) -> Iterator[None]:
    """While a run makes calls, limit the slots of this process by the load of the server that answers all of them.

    Where calls go to several servers, or to one that reports no load, nothing is limited.
    """
    reporting = {one.server: one for one in backbones if isinstance(one, LoadReporting)}
    alone = len(reporting) == 1 and all(isinstance(one, LoadReporting) for one in backbones)
    if not alone or slots is None:
        yield
        return
    ((server, backbone),) = reporting.items()
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=[slots, server, backbone.load, ended], name="server load", daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def _watch(slots: Slots, server: str, load: Callable[[], ServerLoad | None], ended: threading.Event) -> None:
    while not ended.wait(Slots.LOOK_S):
        slots.look(server, load)
