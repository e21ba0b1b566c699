"""Look at playbooks, compare, check and share them: `ace-bench playbook COMMAND`.

    show      print a playbook
    diff      say what differs between two playbooks
    lint      find bullets that repeat or contradict others, repeat a training sample, or exceed a budget
    merge     merge playbooks of several runs into one
    card      write a playbook with a card that says where it comes from and what it is worth
    export    write a run's playbooks as text files, named as the authors' code names them
    forget    remove what came from a sample, a merged playbook, a user or a bullet
    feedback  count a user's vote on a bullet

A playbook is a run folder (its tested playbook), a saved one (contexts/final.json) or a text in the authors' format.
`ace-bench playbook COMMAND --help` describes a command.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pkgutil import resolve_name

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


def main(arguments: Sequence[str]) -> int:
    """Run the command that the first argument names; return its exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(__doc__.replace("ace-bench playbook", command_line("playbook")))
        return 0
    if arguments[0] not in COMMANDS:
        close = get_close_matches(arguments[0], COMMANDS, n=1)
        raise ConfigError(
            f"there is no command `playbook {arguments[0]}`; "
            + (f"did you mean {close[0]}?" if close else f"there are {', '.join(COMMANDS)}")
        )
    status: int = resolve_name(f"{__name__}.{COMMANDS[arguments[0]]}")(arguments[1:])
    return status
