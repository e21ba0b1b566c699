"""What a run ran on: versions that may explain a difference between two records."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

_PACKAGES = ("ace-bench", "httpx2", "hydra-core", "jinja2", "msgspec", "numpy", "sentence-transformers")


def describe_environment() -> dict[str, Any]:
    """Versions of Python, the platform and the packages that shape results; absent packages are left out."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {"python": platform.python_version(), "platform": platform.platform(), "packages": versions}
