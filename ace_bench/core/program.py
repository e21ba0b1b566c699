"""The command lines that messages to users name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

SCRIPTS: Mapping[str, str] = {
    "run": "run.py",
    "reproduce": "scripts/reproduce.py",
    "report": "scripts/report.py",
    "tables": "scripts/make_tables.py",
    "figures": "scripts/make_figures.py",
    "data": "scripts/download_data.py",
    "appworld": "scripts/setup_appworld.py",
    "check": "scripts/check_task.py",
    "benchmark": "scripts/benchmark.py",
    "leaderboard": "scripts/pack_leaderboard.py",
    "prompts": "scripts/import_official_prompts.py",
}
"""The script of a checkout that starts each command."""


def command_line(command: str) -> str:
    """Return ``ace-bench COMMAND``, or ``python SCRIPT`` if this process was started by a script of a checkout."""
    started = Path(sys.argv[0]).name
    if command in SCRIPTS and any(started == Path(script).name for script in SCRIPTS.values()):
        return f"python {SCRIPTS[command]}"
    return f"ace-bench {command}"
