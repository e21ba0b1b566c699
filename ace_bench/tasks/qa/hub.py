"""Reads data sets of the Hugging Face hub, with the ``datasets`` library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ace_bench.core.digest import digest_of
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.tasks.qa.columns import Columns, Question, read_questions
from ace_bench.tasks.qa.files import Records


@dataclass(frozen=True, kw_only=True)
class Published:
    """The questions by the publisher's names of splits, and a checksum of all of them."""

    questions: Mapping[str, Sequence[Question]]
    checksums: Mapping[str, str]


def hub_splits(path: str, config: str | None, revision: str | None, columns: Columns) -> Published:
    """Download a data set and read it.

    Raises ``ConfigError`` without the library, ``DataError`` where the data cannot be loaded or lacks a column.
    """
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise ConfigError(
            "task.data=hub://... needs the datasets library: run `pip install 'ace-bench[data]'`"
        ) from error
    name = "/".join(filter(None, (path, config))) + (f" at {revision}" if revision else "")
    try:
        loaded = load_dataset(path, config, revision=revision)
    except Exception as error:  # the library and the hub's client raise errors of many kinds
        raise DataError(
            f"task.data: {name} cannot be loaded from the hub: {error}; check the name, task.hub and the network"
        ) from error
    questions = {
        str(split): read_questions(_records(rows, f"hub://{name}, {split}"), columns) for split, rows in loaded.items()
    }
    content = [[one.key, one.text, str(one.answer), one.group] for rows in questions.values() for one in rows]
    return Published(questions=questions, checksums={f"hub://{name}": digest_of(content)})


def _records(rows: Iterable[Mapping[str, Any]], name: str) -> Records:
    for number, row in enumerate(rows, start=1):
        yield f"{name}, row {number}", row
