"""Run folders made up from one real run, for tests of many runs."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from ace_bench.store.results import CHECKSUMS
from tests.launching import launch
from tests.packages.report.page.runs import changed

METHODS = ("base", "icl", "gepa", "dc", "ace")


def make_runs(results: Path, count: int) -> None:
    """Write ``count`` finished runs, alike but for method, digest and seed."""
    with tempfile.TemporaryDirectory() as scratch:
        model = launch(Path(scratch), "task=finer", "task.source=sample", "limit=10", "mode.epochs=1").folder
        for name in ("journal.jsonl", "calls.jsonl"):
            changed(model, name)
        files = {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()}
        del files[CHECKSUMS]
    metrics = json.loads(files["metrics.json"])
    for n in range(count):
        method, seed = METHODS[n % len(METHODS)], n // len(METHODS)
        folder = results / "main" / f"finer-{method}-embedded-offline" / "0123456789ab" / f"seed{seed}"
        folder.mkdir(parents=True)
        own = {**metrics, "method": method, "seed": seed}
        for name, data in {**files, "metrics.json": json.dumps(own).encode()}.items():
            (folder / name).write_bytes(data)
