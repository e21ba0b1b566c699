"""Folders with data: real ones where a developer has them, and small ones written on the spot."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

RowWriter = Callable[..., Path]


@pytest.fixture(autouse=True)
def no_ambient_data(monkeypatch, tmp_path):
    """Keep the developer's own data out of tests that do not ask for it."""
    monkeypatch.delenv("ACE_BENCH_DATA", raising=False)
    monkeypatch.setattr("ace_bench.tasks.data._DOWNLOADED", tmp_path / "nothing-downloaded")


@pytest.fixture
def real_data() -> Callable[..., str]:
    """Return the folder of a task's real data, which holds a file, or skip the test."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    root = Path(os.environ.get("ACE_BENCH_DEV_DATA", beside))

    def folder(task: str, file: str = "train.jsonl") -> str:
        if not (root / task / file).is_file():
            pytest.skip(f"no real data for {task}: set ACE_BENCH_DEV_DATA to a folder that holds {task}/")
        return str(root / task)

    return folder


@pytest.fixture
def data_folder(tmp_path) -> RowWriter:
    """Return a writer of the three split files: lines may be rows, texts or bytes."""

    def write(rows: list[object], name: str = "data") -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            row if isinstance(row, bytes) else row.encode() if isinstance(row, str) else json.dumps(row).encode()
            for row in rows
        ]
        for split in ("train", "val", "test"):
            (folder / f"{split}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        return folder

    return write
