"""Entry: ``<engine's python> build.py --root DIR`` builds the mini-world; exit status 0: it is there."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that this folder is the package "miniworld"
    with importlib.import_module("hurry").hurried():
        sys.exit(importlib.import_module("miniworld.builder").main())
