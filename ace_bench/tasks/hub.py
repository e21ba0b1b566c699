"""Loads data sets of the Hugging Face hub with the ``datasets`` library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ace_bench.core.errors import ConfigError, DataError


@dataclass(frozen=True, kw_only=True)
class HubDataset:
    """A data set at a fixed ``revision`` (commit). ``splits`` maps its splits to the task's; ``fields`` are kept."""

    path: str
    config: str
    revision: str
    splits: Mapping[str, str]
    fields: tuple[str, ...]


def load_from_hub(path: str, config: str | None, revision: str | None, *, called: str, fix: str) -> Mapping[str, Any]:
    """Return the splits of a data set; errors name it as ``called`` and end with ``fix``.

    Raises ``ConfigError`` without the library, ``DataError`` where the data cannot be loaded.
    """
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise ConfigError(f"{called} needs the datasets library: run `pip install 'ace-bench[data]'`") from error
    try:
        loaded: Mapping[str, Any] = load_dataset(path, config, revision=revision)
    except Exception as error:  # the library and the hub's client raise errors of many kinds
        raise DataError(f"{called} cannot be loaded from the hub: {error}; {fix}") from error
    return loaded


def hub_rows(dataset: HubDataset) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield the name of each file of the task with its rows, in the order of the hub's split.

    Raises ``ConfigError`` without the library, ``DataError`` where the data cannot be loaded or has another form.
    """
    where = f"{dataset.path} ({dataset.config}) at {dataset.revision}"
    loaded = load_from_hub(
        dataset.path,
        dataset.config,
        dataset.revision,
        called=where,
        fix="check the network, or name another --revision",
    )
    for source, split in dataset.splits.items():
        if source not in loaded:
            raise DataError(f"{where} has no split {source}, only {', '.join(map(str, loaded))}; check --revision")
        absent = [name for name in dataset.fields if name not in loaded[source].column_names]
        if absent:
            raise DataError(f"{where}, split {source}: no field {', '.join(absent)}; check --revision")
        rows = loaded[source].select_columns(list(dataset.fields))
        yield f"{split}.jsonl", [{name: _text(row[name]) for name in dataset.fields} for row in rows]


def _text(value: object) -> str:
    return "" if value is None else str(value)
