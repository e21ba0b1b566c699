"""How a user starts a command of this program, for messages that name one."""

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
"""The file of a checkout that starts the same command."""


def command_line(command: str) -> str:
    """Return ``ace-bench COMMAND``, or ``python FILE`` where this process was started by such a file of a checkout."""
    started = Path(sys.argv[0]).name
    if command in SCRIPTS and any(started == Path(script).name for script in SCRIPTS.values()):
        return f"python {SCRIPTS[command]}"
    return f"ace-bench {command}"
