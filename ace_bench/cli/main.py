"""``ace-bench COMMAND``: starts a command and imports only what the command needs."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ace_bench.core.loading import exit_on_signals, read_env_file

_UNREAD, _MISTAKE = 1, 2
_CONFIG_DIR = ("--config-dir", "-cd")


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
    "prompts": Command("ace_bench.cli.prompts", "make a prompt set from a checkout of the authors' code"),
    "playbook": Command("ace_bench.cli.playbook", "show, compare, check, merge and share playbooks"),
    "leaderboard": Command("ace_bench.cli.leaderboard", "prepare a run for AppWorld's leaderboard"),
    "benchmark": Command("ace_bench.cli.benchmark", "measure the harness itself"),
    "retrieval": Command("ace_bench.cli.retrieval", "measure the retrieval of bullets: R@1, R@5, P@3, latency"),
    # A name instead of an import: this package does not depend on ``ace_rehearsal``.
    "serve": Command("ace_rehearsal.reader.serve", "serve the embedded backbone over HTTP"),
}
_OLD_WORDS: Mapping[str, tuple[str, ...]] = {
    "table": ("tables", "--rows", "method"),
    "figure": ("figures", "--y", "score"),
}
"""Commands of version 0.1 by what they are now; they go with version 0.3."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names; return the exit status, 2 for a mistake."""
    exit_on_signals()
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
    if words[0] not in COMMANDS:
        sys.stderr.write(f"error: {_unknown(words[0])}\n")
        return _MISTAKE
    return start(words[0], words[1:])


def start(command: str, arguments: Sequence[str]) -> int:
    """Run one command with its own arguments; return the exit status.

    First loads ``.env`` of the current folder; ``--config-dir DIR`` adds a folder of configs.
    """

    def work() -> int:
        read_env_file()
        rest = _without_config_dirs(arguments)
        status: int = importlib.import_module(COMMANDS[command].module).main(rest)
        return status

    return _reporting(work)


def _reporting(work: Callable[[], int]) -> int:
    """Do the work of a command and return its exit status; what stopped it is one sentence."""
    from ace_bench.core.errors import AceBenchError

    try:
        try:
            return work()
        finally:
            sys.stdout.flush()  # at the exit of the program nobody could say what is wrong
    except AceBenchError as error:
        _print_error(error)
    except BrokenPipeError:  # the program that reads the output has ended
        _drop_output()
        return _UNREAD
    except OSError as error:
        from ace_bench.store.files import disk_problem

        if (problem := disk_problem(error, failed="read or written")) is None:
            raise
        _drop_output()
        _print_error(problem)
    except ImportError as error:
        from ace_bench.core.extras import missing_extra

        if (needed := missing_extra(error)) is None:
            raise
        _print_error(needed)
    return _MISTAKE


def _say(text: str) -> int:
    def work() -> int:
        sys.stdout.write(text)
        return 0

    return _reporting(work)


def _drop_output() -> None:
    """Discard what the standard output could not take, so that it is not written again at the exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(error: Exception | str) -> None:
    from rich.console import Console

    Console(stderr=True).print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)


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
    width = max(map(len, COMMANDS))
    listing = "".join(f"  {name:{width}}  {command.purpose}\n" for name, command in COMMANDS.items())
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
    close = get_close_matches(word, COMMANDS, n=1)
    hint = f"did you mean {close[0]}?" if close else f"the commands are {', '.join(COMMANDS)}"
    return f"there is no command {word}; {hint}"
