"""Look at playbooks, compare, check and share them: `ace-bench playbook COMMAND`.

    show      print a playbook
    diff      say what differs between two playbooks
    lint      find bullets that repeat or contradict others, repeat a training sample, or exceed a budget
    merge     merge playbooks of several runs into one
    card      write a playbook with a card that says where it comes from and what it is worth
    export    write a run's playbooks as text files, named as the authors' code names them
    forget    remove what came from a sample, a merged playbook, a user or a bullet
    feedback  count a user's vote on a bullet
{others}
A playbook is a run folder (its tested playbook), a saved one (contexts/final.json) or a text in the authors' format.
`ace-bench playbook COMMAND --help` describes a command.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pkgutil import resolve_name

from ace_bench.cli.main import commands_of_others
from ace_bench.core.errors import ConfigError
from ace_bench.core.program import command_line

COMMANDS: Mapping[str, str] = {
    "show": "looking:show_playbook",
    "diff": "looking:diff_playbooks",
    "lint": "looking:lint_playbook",
    "merge": "sharing:merge_to_file",
    "card": "sharing:write_card",
    "export": "sharing:export_playbooks",
    "forget": "changing:forget_source",
    "feedback": "changing:vote_on_bullet",
}
"""Module and function of each; modules are imported when they are needed."""

COMMANDS_OF_OTHERS = "ace_bench.playbook_commands"
"""The group of entry points by which other packages add commands: name = module, with a function ``main``."""


def all_commands() -> Mapping[str, str]:
    """Return the module and function of each command, ours and other packages'."""
    others = {name: f"{one.module}:main" for name, one in commands_of_others(COMMANDS_OF_OTHERS).items()}
    return {**{name: f"{__name__}.{place}" for name, place in COMMANDS.items()}, **others}


def main(arguments: Sequence[str]) -> int:
    """Run the command that the first argument names; return its exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        lines = (f"    {name:8}  {one.purpose}\n" for name, one in commands_of_others(COMMANDS_OF_OTHERS).items())
        sys.stdout.write(__doc__.format(others="".join(lines)).replace("ace-bench playbook", command_line("playbook")))
        return 0
    known = all_commands()
    if arguments[0] not in known:
        close = get_close_matches(arguments[0], known, n=1)
        raise ConfigError(
            f"there is no command `playbook {arguments[0]}`; "
            + (f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}")
        )
    status: int = resolve_name(known[arguments[0]])(arguments[1:])
    return status
