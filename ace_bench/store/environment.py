"""The software environment of a run, which may explain a difference between two runs."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

_PACKAGES = ("ace-bench", "httpx2", "hydra-core", "jinja2", "msgspec", "numpy", "sentence-transformers")


def describe_environment() -> dict[str, Any]:
    """Return the versions of Python, the platform and the packages that affect results, if installed."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {"python": platform.python_version(), "platform": platform.platform(), "packages": versions}
