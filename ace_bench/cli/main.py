"""``ace-bench COMMAND``: its commands, ours and other packages'; starts one and imports only what that needs."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from ace_bench.core.errors import AceBenchError, ConfigError
from ace_bench.core.program import read_env_file

COMMANDS_OF_OTHERS = "ace_bench.commands"
"""The group of entry points by which other packages add commands: name = module."""


class Command(NamedTuple):
    """``target`` is a module, or ``module:function``. The function, by default ``main``, returns the exit status."""

    target: str
    purpose: str


GROUPS: Mapping[str, Mapping[str, Command]] = {
    heading: {name: Command(f"ace_bench.{target}", purpose) for name, target, purpose in commands}
    for heading, commands in (
        ("Make experiments", (
            ("init", "cli.init", "write a first configuration, for your data or ours"),
            ("run", "cli.run", "run one experiment, or a sweep of them"),
            ("reproduce", "cli.reproduce", "make a result of the paper: its missing runs, then its table"),
            ("plan", "cli.plan", "say how many seeds and samples a comparison needs"),
            ("validity", "contrib.validity.command", "check what results mean: transfer, placebos, contamination"),
        )),
        ("Look at results", (
            ("ls", "cli.ls", "list runs: score, gain, cost and date"),
            ("view", "cli.pages:view_runs", "look at runs in the browser: list, compare, follow"),
            ("report", "cli.pages:write_report", "write runs as one HTML page"),
            ("tables", "cli.tables:make_tables", "make tables: the paper's, or of your own runs"),
            ("figures", "cli.tables:make_figures", "draw figures: the paper's, or of your own runs"),
            ("leaderboard", "cli.leaderboard", "prepare a run for AppWorld's official leaderboard"),
        )),
        ("Use playbooks and prompts", (
            ("playbook", "cli.playbook.command", "show, compare, change and share playbooks"),
            ("prompts", "cli.prompts.command", "make a prompt set with the authors' own prompts"),
            ("retrieval", "contrib.retrieval.command", "measure the retrieval of bullets"),
        )),
        ("Set up and repair", (
            ("data", "cli.data", "download a task's official data"),
            ("check", "cli.check", "check a task's data and grade its gold answers"),
            ("appworld", "cli.appworld", "set up AppWorld's engine and data"),
            ("serve", "backbones.embedded.server.serve", "serve the embedded backbone over HTTP"),
            ("doctor", "cli.doctor", "find damaged runs and caches, and repair what costs nothing"),
        )),
    )
}  # fmt: skip
COMMANDS: Mapping[str, Command] = {name: command for group in GROUPS.values() for name, command in group.items()}
_UNREAD, _MISTAKE = 1, 2
_CONFIG_DIR = ("--config-dir", "-cd")


def all_commands() -> Mapping[str, Command]:
    """Return all commands, ours and other packages'."""
    return {**COMMANDS, **commands_of_others(COMMANDS_OF_OTHERS)}


def commands_of_others(group: str) -> Mapping[str, Command]:
    """Return the commands that packages add to a group of entry points; their modules are not imported."""
    from importlib.metadata import entry_points

    return {point.name: Command(point.value, _purpose(point.value)) for point in sorted(entry_points(group=group))}


def _purpose(target: str) -> str:
    """Return the first line of the docstring of a module, or of ``module:function``."""
    from importlib.util import find_spec

    module, _, function = target.partition(":")
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        return f"needs {module}, which is not installed"
    with open(spec.origin, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    first = (ast.get_docstring(next(functions, tree)) or "").partition("\n")[0].rstrip(".")
    return first[:1].lower() + first[1:]


def find_command(
    word: str, commands: Mapping[str, Command], group: str, prefix: str = ""
) -> Callable[[Sequence[str]], int]:
    """Import a command of ours or of a ``group`` of entry points. Raises ``ConfigError`` that names the closest."""
    if word in commands:
        target = commands[word].target
    else:
        from difflib import get_close_matches
        from importlib.metadata import entry_points

        names = [*commands, *sorted(point.name for point in entry_points(group=group))]
        if word not in names:
            close = get_close_matches(word, names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the commands are {', '.join(names)}"
            raise ConfigError(f"there is no command {prefix}{word}; {hint}")
        (target,) = (point.value for point in entry_points(group=group, name=word))
    module, _, function = target.partition(":")
    command: Callable[[Sequence[str]], int] = getattr(import_module(module), function or "main")
    return command


def list_commands(commands: Mapping[str, Command], width: int = 0) -> str:
    """Return a line for each command, with names of at least ``width`` characters."""
    width = max(width, *map(len, commands))
    return "".join(f"  {name:{width}}  {command.purpose}\n" for name, command in commands.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names. Return the exit status, 2 for a mistake.

    First loads ``.env`` of the current folder; ``--config-dir DIR`` adds a folder of configs. What stops a command is
    one sentence.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    problem: object = None
    try:
        try:
            return _call(typed)
        finally:
            sys.stdout.flush()  # at the exit of the program nobody could say what is wrong
    except AceBenchError as error:
        problem = error
    except BrokenPipeError:  # the program that reads the output has ended
        _drop_output()
        return _UNREAD
    except OSError as error:
        from ace_bench.store.files import disk_problem

        problem = disk_problem(error, failed="read or written")
        _drop_output()
    except ImportError as error:
        from ace_bench.core.resources import missing_extra

        if (problem := missing_extra(error)) is None:
            raise
    from ace_bench.cli.arguments import print_line

    print_line(f"error: {problem}", "red")
    return _MISTAKE


def start(command: str, arguments: Sequence[str]) -> int:
    """Run one command with its own arguments. Return the exit status."""
    return main([command, *arguments])


def _call(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(_usage())
        return 0
    if arguments[0] in ("--version", "-V"):
        from importlib.metadata import version

        sys.stdout.write(f"ace-bench {version('ace-bench')}\n")
        return 0
    arguments = _without_config_dirs(arguments)
    first, *remaining = arguments or [""]
    if "=" in first:
        raise ConfigError(f"{first} is a setting, not a command; did you mean `ace-bench run {first}`?")
    command = find_command(first, COMMANDS, COMMANDS_OF_OTHERS)
    read_env_file()
    return command(remaining)


def _drop_output() -> None:
    """Discard what the standard output could not take, so that it is not written again at the exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _without_config_dirs(arguments: Sequence[str]) -> list[str]:
    """Add the folders of ``--config-dir`` and return the other arguments."""
    remaining: list[str] = []
    iterator = iter(arguments)
    for word in iterator:
        option, equals, value = word.partition("=")
        if option in _CONFIG_DIR:
            from ace_bench.core.resources import add_config_dir

            add_config_dir(value if equals else next(iterator, ""))
        else:
            remaining.append(word)
    return remaining


def _usage() -> str:
    others = commands_of_others(COMMANDS_OF_OTHERS)
    groups = {**GROUPS, **({"Commands of other packages": others} if others else {})}
    width = max(len(name) for group in groups.values() for name in group)
    return (
        "usage: ace-bench COMMAND ...\n\n"
        + "\n".join(f"{heading}:\n{list_commands(group, width)}" for heading, group in groups.items())
        + "\n`ace-bench run task=finer method=ace` is a first experiment.\n"
        "`ace-bench COMMAND --help` describes a command.\n"
        "`ace-bench --version` prints the version.\n"
        "`--config-dir DIR` with any command adds the options and presets of a folder.\n"
    )
