"""``ace-bench COMMAND``: its commands, ours and other packages'; starts one and imports only what that needs."""

from __future__ import annotations

import ast
import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec

from ace_bench.core.program import read_env_file

COMMANDS_OF_OTHERS = "ace_bench.commands"
"""The group of entry points by which other packages add commands: name = module."""


@dataclass(frozen=True)
class Command:
    """``module`` has a function ``main`` that takes the arguments and returns the exit status."""

    module: str
    purpose: str


COMMANDS: Mapping[str, Command] = {
    "init": Command("ace_bench.cli.init", "make and check the configuration of a first experiment, by five questions"),
    "run": Command("ace_bench.cli.run", "run one experiment, or a sweep of them"),
    "reproduce": Command("ace_bench.cli.reproduce", "make the runs behind a table or figure of the paper"),
    "ls": Command("ace_bench.cli.ls", "list runs: how each ended, its score, cost and time"),
    "view": Command("ace_bench.cli.view", "look at runs in the browser: list, compare, follow"),
    "report": Command("ace_bench.cli.report", "write runs as one HTML page"),
    "results-page": Command(
        "ace_bench.cli.results_page", "write a folder of runs as a site beside the paper's numbers"
    ),
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
    return {**COMMANDS, **commands_of_others(COMMANDS_OF_OTHERS)}


def commands_of_others(group: str) -> Mapping[str, Command]:
    """Return the commands that packages add to a group of entry points."""
    points = sorted(entry_points(group=group))
    return {point.name: Command(point.value, _purpose(point.value)) for point in points}


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


_UNREAD, _MISTAKE = 1, 2
_CONFIG_DIR = ("--config-dir", "-cd")


_OLD_WORDS: Mapping[str, tuple[str, ...]] = {
    "table": ("tables", "--rows", "method"),
    "figure": ("figures", "--y", "score"),
}
"""Commands of version 0.1 by what they are now; they go with version 0.3."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names; return the exit status, 2 for a mistake.

    First loads ``.env`` of the current folder; ``--config-dir DIR`` adds a folder of configs.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        return _say(_usage())
    if words[0] in ("--version", "-V"):
        from importlib.metadata import version

        return _say(f"ace-bench {version('ace-bench')}\n")
    if words[0].partition("=")[0] in _CONFIG_DIR:  # before the command, as options of many programs are
        taken = 1 if "=" in words[0] else 2
        words = [*words[taken : taken + 1], *words[:taken], *words[taken + 1 :]]
    if words[0] in _OLD_WORDS:
        words = [*_OLD_WORDS[words[0]], *words[1:]]
    if find_command(words[0]) is None:
        sys.stderr.write(f"error: {_unknown(words[0])}\n")
        return _MISTAKE
    with _reporting() as report:
        read_env_file()
        rest = _without_config_dirs(words[1:])
        report.status = importlib.import_module(str(find_command(words[0]))).main(rest)
    return report.status


def start(command: str, arguments: Sequence[str]) -> int:
    """Run one command with its own arguments; return the exit status."""
    return main([command, *arguments])


@dataclass
class _Report:
    """How a command ended."""

    status: int = _MISTAKE


@contextmanager
def _reporting() -> Iterator[_Report]:
    """Take the status of a command; what stops it is one sentence."""
    from ace_bench.core.errors import AceBenchError

    report = _Report()
    try:
        try:
            yield report
        finally:
            sys.stdout.flush()  # at the exit of the program nobody could say what is wrong
    except AceBenchError as error:
        report.status = _MISTAKE
        _print_error(error)
    except BrokenPipeError:  # the program that reads the output has ended
        _drop_output()
        report.status = _UNREAD
    except OSError as error:
        from ace_bench.store.files import disk_problem

        if (problem := disk_problem(error, failed="read or written")) is None:
            raise
        report.status = _MISTAKE
        _drop_output()
        _print_error(problem)
    except ImportError as error:
        from ace_bench.core.resources import missing_extra

        if (needed := missing_extra(error)) is None:
            raise
        _print_error(needed)


def _say(text: str) -> int:
    with _reporting() as report:
        sys.stdout.write(text)
        report.status = 0
    return report.status


def _drop_output() -> None:
    """Discard what the standard output could not take, so that it is not written again at the exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(error: Exception | str) -> None:
    from ace_bench.cli.arguments import print_line

    print_line(f"error: {error}", "red")


def _without_config_dirs(arguments: Sequence[str]) -> list[str]:
    """Add the folders of ``--config-dir`` and return the other arguments."""
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        if option in _CONFIG_DIR:
            from ace_bench.core.resources import add_config_dir

            add_config_dir(value if equals else next(words, ""))
        else:
            rest.append(word)
    return rest


def _usage() -> str:
    commands = all_commands()
    width = max(map(len, commands))
    listing = "".join(f"  {name:{width}}  {command.purpose}\n" for name, command in commands.items())
    return (
        "usage: ace-bench COMMAND ...\n\n"
        f"{listing}\n"
        "`--config-dir DIR` with any command adds the options and presets of a folder of configs.\n"
        "`ace-bench --version` prints the version.\n"
        "`ace-bench COMMAND --help` describes a command; `ace-bench run task=finer method=ace` is a first experiment.\n"
    )


def _unknown(word: str) -> str:
    from difflib import get_close_matches

    if "=" in word:
        return f"{word} is a setting, not a command; did you mean `ace-bench run {word}`?"
    known = all_commands()
    close = get_close_matches(word, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"the commands are {', '.join(known)}"
    return f"there is no command {word}; {hint}"
