"""Run folders made up from one real run, for tests and measurements of many runs.

``python -m tests.report.synthetic FOLDER 500`` makes runs and tells how long finding and scoring them takes.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from rich.console import Console

from ace_bench.report.records import find_runs
from ace_bench.store.checksums import FILE as CHECKSUMS
from tests.launching import launch
from tests.report.page.runs import changed

METHODS = ("base", "icl", "gepa", "dc", "ace")


def make_runs(results: Path, count: int, *, samples: int = 441) -> None:
    """Write ``count`` finished runs, alike but for method, digest and seed, each with ``samples`` test samples."""
    with tempfile.TemporaryDirectory() as scratch:
        model = launch(Path(scratch), "task=finer", "task.source=sample", "limit=10", "mode.epochs=1").folder
        for name in ("journal.jsonl", "calls.jsonl"):
            changed(model, name)
        files = {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()}
        del files[CHECKSUMS]
    metrics = json.loads(files["metrics.json"])
    tested = [
        line
        for line in files["journal.jsonl"].splitlines()
        if b'"evaluate"' in line and metrics["context"]["digest"].encode() in line
    ]
    names = [f"finer-test-{n:04d}".encode() for n in range(samples)]
    files["journal.jsonl"] += b"".join(
        tested[n % len(tested)].replace(json.loads(tested[n % len(tested)])["sample"].encode(), name) + b"\n"
        for n, name in enumerate(names)
    )
    for n in range(count):
        method, seed = METHODS[n % len(METHODS)], n // len(METHODS)
        folder = results / "main" / f"finer-{method}-embedded-offline" / "0123456789ab" / f"seed{seed}"
        folder.mkdir(parents=True)
        own = {**metrics, "method": method, "seed": seed}
        for name, data in {**files, "metrics.json": json.dumps(own).encode()}.items():
            (folder / name).write_bytes(data)


def main() -> None:
    """Measure."""
    say = Console().print
    results, count = Path(sys.argv[1]), int(sys.argv[2])
    with mock.patch("sys.stdout"):
        make_runs(results, count)
    started = time.perf_counter()
    found = find_runs(results)
    say(f"{len(found.runs)} runs found in {time.perf_counter() - started:.2f} s")
    started = time.perf_counter()
    settings = [run.settings for run in found.runs]
    say(f"{len(settings)} configurations read in {time.perf_counter() - started:.2f} s")
    started = time.perf_counter()
    points = [run.points("accuracy") for run in found.runs]
    say(f"{len(points)} journals read in {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()
