"""The commands of ``ace-bench``: ours, and those that other packages add by the entry points ``ace_bench.commands``."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec

COMMANDS_OF_OTHERS = "ace_bench.commands"
"""The group of entry points by which other packages add commands: name = module."""


@dataclass(frozen=True)
class Command:
    """``module`` has a function ``main`` that takes the arguments and returns the exit status."""

    module: str
    purpose: str


COMMANDS: Mapping[str, Command] = {
    "run": Command("ace_bench.cli.run", "run one experiment, or a sweep of them"),
    "reproduce": Command("ace_bench.cli.reproduce", "make the runs behind a table or figure of the paper"),
    "view": Command("ace_bench.cli.view", "look at runs in the browser: list, compare, follow"),
    "report": Command("ace_bench.cli.report", "write runs as one HTML page"),
    "tables": Command("ace_bench.cli.tables", "make tables: the paper's, or of your own runs"),
    "figures": Command("ace_bench.cli.figures", "draw figures: the paper's, or of your own runs"),
    "data": Command("ace_bench.cli.data", "download a task's official data"),
    "appworld": Command("ace_bench.cli.appworld", "set up AppWorld's engine and data"),
    "doctor": Command("ace_bench.cli.doctor", "find damaged runs and caches, and repair what costs nothing"),
    "check": Command("ace_bench.cli.check", "check a task's data and grade its gold answers"),
    "playbook": Command("ace_bench.cli.playbook", "show, compare, check, merge and share playbooks"),
    "leaderboard": Command("ace_bench.cli.leaderboard", "prepare a run for AppWorld's leaderboard"),
}


def find_command(name: str) -> str | None:
    """Return the module of a command, ``None`` where no package has it."""
    if name in COMMANDS:
        return COMMANDS[name].module
    return next((point.value for point in entry_points(group=COMMANDS_OF_OTHERS, name=name)), None)


def all_commands() -> Mapping[str, Command]:
    """Return all commands; the purpose of another package's is the first line of its module, which is not imported."""
    points = sorted(entry_points(group=COMMANDS_OF_OTHERS))
    return {**COMMANDS, **{point.name: Command(point.value, _purpose(point.value)) for point in points}}


def _purpose(module: str) -> str:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        return f"needs {module}, which is not installed"
    with open(spec.origin, encoding="utf-8") as file:
        first = (ast.get_docstring(ast.parse(file.read())) or "").partition("\n")[0].rstrip(".")
    return first[:1].lower() + first[1:]
