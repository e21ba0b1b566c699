"""Write the sample sets, or check that their files match the generators' output.

python -m scripts.samples --check   (from the top of a checkout)
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from ace_bench.core.console import Console
from scripts.samples import bird_sql, ddxplus, finer, formula, no_gain
from scripts.samples.draw import SIZES

SAMPLES = Path(str(files("ace_bench"))) / "tasks" / "samples"

WRITERS: Mapping[str, Callable[[str], list[dict[str, str]]]] = {
    "bird_sql": bird_sql.rows,
    "ddxplus": ddxplus.rows,
    "finer": finer.rows,
    "formula": formula.rows,
}


def contents() -> dict[str, str]:
    """Return every file of the sample sets by its path below the samples folder."""
    questions = {
        f"{task}/{split}.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in write(split))
        for task, write in WRITERS.items()
        for split in SIZES
    }
    return questions | {f"bird_sql/{name}": text for name, text in bird_sql.files().items()} | no_gain.contents()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the files; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.samples", description="Write the sample sets.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file differs")
    parser.add_argument("--dir", type=Path, default=SAMPLES, help="the samples folder (default: the package's)")
    options = parser.parse_args(arguments)
    console = Console()
    differing = 0
    for name, text in contents().items():
        path = options.dir / name
        if options.check:
            is_current = path.is_file() and path.read_bytes() == text.encode()
            differing += not is_current
            console.print(f"{name}: {'as written' if is_current else 'differs: run python -m scripts.samples'}")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            console.print(f"{name}: {len(text.splitlines())} lines")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
