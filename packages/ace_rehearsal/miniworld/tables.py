"""Writes rows into the engine's databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of one model of one app; the engine numbers them from 1 in this order."""

    app: str
    model: str
    rows: Sequence[Row]


def insert(table: Table) -> None:
    """Write rows into the engine's open databases in one transaction (one per row is ten times slower)."""
    from appworld.common.utils import import_models_module

    model = getattr(import_models_module(table.app), table.model)
    model.save_all([model.create(**row) for row in table.rows])
