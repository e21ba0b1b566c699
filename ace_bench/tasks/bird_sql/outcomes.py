"""The result of a query: its limits, what a model sees of it, and when two results are the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from ace_bench.core.settings import Count, Seconds


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one query: seconds, rows, bytes of a cell, nesting of expressions, memory of its process."""

    timeout: Seconds
    rows: Count
    cell_bytes: Annotated[int, Meta(ge=1_000, le=2**30)]
    depth: Annotated[int, Meta(ge=10, le=1_000)]
    memory_mb: Annotated[int, Meta(ge=256, le=2**20)]


class ExecutionResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a query ended. ``kind`` is rows, error, timeout or crash; the digests stand for the rows where it is rows.

    ``exact`` is the set of rows, ``close`` the set with reals at 12 digits, ``ordered`` that set in order of
    appearance.
    """

    kind: str
    message: str = ""
    rows: int = 0
    columns: int = 0
    preview: tuple[str, ...] = ()
    exact: str = ""
    close: str = ""
    ordered: str = ""

    @property
    def ran(self) -> bool:
        """Whether there is a result, which may be empty."""
        return self.kind == "rows"

    def same(self, gold: ExecutionResult) -> bool:
        """Official rule (StreamBench): equal as sets of rows, and never right where a result is empty."""
        return self.ran and gold.ran and self.rows > 0 and self.exact == gold.exact

    def same_corrected(self, gold: ExecutionResult, *, ordered: bool) -> bool:
        """Corrected rule: empty equals empty, reals at 12 digits, row order where the gold query has an ORDER BY."""
        return self.ran and gold.ran and (self.ordered == gold.ordered if ordered else self.close == gold.close)

    def observed(self, limits: Limits) -> str:
        """Return what the environment shows of the query."""
        if self.kind == "timeout":
            return f"The query was stopped: it ran longer than {limits.timeout:g} seconds."
        if self.kind == "crash":
            return "The query was stopped: it brought down the process that ran it."
        if self.kind == "error":
            return f"The query failed: {self.message}"
        if not self.rows:
            return "The query ran and returned no rows."
        size = f"{_plural(self.rows, 'row')} of {_plural(self.columns, 'column')}"
        rows = "\n".join(self.preview)
        return f"The query returned {size}. First rows:\n{rows}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
