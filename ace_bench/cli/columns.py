"""Columns of tables on a terminal: at any width their headings break between words."""

from __future__ import annotations

from rich.console import JustifyMethod
from rich.table import Table


def add_column(table: Table, heading: str, *, justify: JustifyMethod = "left") -> None:
    """Add a column that is at least as wide as the longest word of its heading; long cells are folded."""
    longest = max(map(len, heading.split()), default=1)
    table.add_column(heading, justify=justify, overflow="fold", min_width=longest)
