"""Show, compare, change and share playbooks: `ace-bench playbook COMMAND`.

{commands}
A playbook is a run folder (its tested playbook), a saved one
(contexts/final.json) or a text in the authors' format.
`ace-bench playbook COMMAND --help` describes a command.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from ace_bench.cli.main import Command, commands_of_others, find_command, list_commands
from ace_bench.core.program import command_line

COMMANDS: Mapping[str, Command] = {
    name: Command(f"ace_bench.cli.playbook.{target}", purpose)
    for name, target, purpose in (
        ("show", "looking:show_playbook", "print a playbook"),
        ("diff", "looking:diff_playbooks", "say what differs between two playbooks"),
        ("export", "sharing:export_playbooks", "write playbooks as text files, a prompt, AGENTS.md or a skill"),
        ("import", "agent_files:import_playbook", "read an exported AGENTS.md, CLAUDE.md or skill back"),
        ("forget", "changing:forget_source", "remove what came from a sample, a user or a bullet"),
        ("feedback", "changing:vote_on_bullet", "count a user's vote on a bullet"),
    )
}
COMMANDS_OF_OTHERS = "ace_bench.playbook_commands"
"""The group of entry points by which other packages add commands: name = module, with a function ``main``."""


def all_commands() -> Mapping[str, Command]:
    """Return all commands, ours and other packages'."""
    return {**COMMANDS, **commands_of_others(COMMANDS_OF_OTHERS)}


def main(arguments: Sequence[str]) -> int:
    """Run the command that the first argument names. Return its exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        text = __doc__.format(commands=list_commands(all_commands()))
        sys.stdout.write(text.replace("ace-bench playbook", command_line("playbook")))
        return 0
    return find_command(arguments[0], COMMANDS, COMMANDS_OF_OTHERS, "playbook ")(arguments[1:])
