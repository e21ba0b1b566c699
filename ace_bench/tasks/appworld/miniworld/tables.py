"""Writes rows into the engine's databases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Row = tuple[str, Mapping[str, Any]]
"""A model, such as ``venmo.Transaction``, and the values of one of its records, without its number."""


def insert(rows: Iterable[Row]) -> None:
    """Write rows into the engine's open databases; it numbers the rows of a model from 1 in this order.

    There is one transaction for each model, because one for each row is ten times slower.
    """
    from appworld.common.utils import import_models_module

    by_model: dict[str, list[Mapping[str, Any]]] = {}
    for name, values in rows:
        by_model.setdefault(name, []).append(values)
    for name, records in by_model.items():
        app, _, kind = name.partition(".")
        model = getattr(import_models_module(app), kind)
        model.save_all([model.create(**values) for values in records])
