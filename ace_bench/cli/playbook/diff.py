"""Say what differs between two playbooks: bullets added, removed, reworded, and with other counters.

    ace-bench playbook diff BEFORE AFTER

Each is a run folder or a playbook file. The exit status is 0 if contents and counters are equal, and 1 if not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.cli.playbook.reading import read_playbook
from ace_bench.cli.playbook.show import counted
from ace_bench.contexts.playbook.merge import playbook_diff


def main(arguments: Sequence[str]) -> int:
    """Print the differences and return the exit status."""
    parser = Parser("playbook diff", __doc__)
    parser.add_argument("before", type=Path, help="run folder or playbook file")
    parser.add_argument("after", type=Path, help="run folder or playbook file")
    options = parser.parse_args(arguments)
    found = playbook_diff(read_playbook(options.before), read_playbook(options.after))
    console = Console(highlight=False)

    def say(text: str, style: str) -> None:
        console.print(text, style=style, markup=False)

    for bullet in found.removed:
        say(f"- {counted(bullet)}  {bullet.content}", "red")
    for bullet in found.added:
        say(f"+ {counted(bullet)}  {bullet.content}", "green")
    for one, other in found.reworded:
        say(f"- {counted(one)}  {one.content}", "red")
        say(f"+ {counted(other)}  {other.content}", "green")
    for one, other in found.recounted:
        say(f"  {counted(one)} -> {counted(other)}  {other.content}", "dim")
    counts = {"removed": found.removed, "added": found.added, "reworded": found.reworded, "recounted": found.recounted}
    console.print(", ".join(f"{len(some)} {name}" for name, some in counts.items()) + f", {found.unchanged} unchanged")
    return int(any(counts.values()))
