"""Keeps calls waiting here, in order of their critical path, and not in the server, which does not know that order.

While a server reports that requests wait in it, the limit of calls in flight is what it runs, and a few more, so that
it always finds one to go on with. Once none waits in it and some wait here, the limit grows. Between these two bounds
nothing changes, so the limit does not swing.
"""

from __future__ import annotations

from math import ceil, inf

from ace_bench.core.types import ServerLoad

_RESERVE = 32
"""One call waits in the server for so many that it runs, and at least one."""
_GROWTH = 4
"""The limit grows by one call for so many in flight."""


class LimitRule:
    """Says how many calls may be in flight, from look to look at the load of the server that they go to."""

    def __init__(self) -> None:
        self._share: int | None = None

    def limit(self, load: ServerLoad | None, *, held: int, waiting: int, now: float) -> float:
        """Return the limit that follows the limit ``now``; ``held`` calls are in flight, and ``waiting`` wait here.

        Requests wait for a moment when they arrive, or while a burst of prompts is read. So the limit shrinks only
        after two looks in a row, to the larger share that they show. Other programs may use the server, too: our calls
        are taken to have as large a share of its queue as of all its requests. A server without a report has no limit.
        """
        before, self._share = self._share, None
        if load is None:
            return inf
        reserve = max(1, load.running // _RESERVE)
        if load.waiting > 2 * reserve:
            self._share = ceil(held * load.running / (load.running + load.waiting))
            return now if before is None else max(before, self._share) + reserve
        if load.waiting == 0 and waiting:
            return held + max(1, held // _GROWTH)
        return now
