"""Make a prompt set with the authors' own prompts, from your checkout of their code.

    ace-bench prompts ~/ace my_prompts            ace-agent/ace: finance
    ace-bench run task=finer method=ace prompts=my_prompts

    ace-bench prompts ~/ace-appworld my_prompts   ace-agent/ace-appworld
    ace-bench run task=appworld method=ace prompts=my_prompts

The set is a copy of prompts/default in which the prompts of Generator, Reflector and Curator are theirs, in their
order: one user message each, the playbook by sections (on finance tasks with counters inline). On AppWorld the files
are recognised by the placeholders in them; where several fit, name one. Their code is read, never run.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.cli.official_prompts import appworld, finance
from ace_bench.core.errors import DataError
from ace_bench.core.resources import prompts_folder


def templates(checkout: Path, given: Mapping[str, Path | None], console: Console) -> Mapping[str, str]:
    """Return template texts by file of the set, and print which file is used for which role."""
    if not (checkout / appworld.FOLDER).is_dir():
        named = next((option for option, path in given.items() if path is not None), None)
        if named is not None:
            raise DataError(f"--{named} is for a checkout of ace-agent/ace-appworld, and {checkout} is not one")
        return finance.templates(checkout)
    files = appworld.find(checkout, given)
    made = appworld.templates(checkout, files)
    for role in appworld.ROLES:
        console.print(f"{role.what}: {files[role.option]}", markup=False, highlight=False, soft_wrap=True)
    return made


def main(arguments: Sequence[str]) -> int:
    """Write the set; the exit code is not zero if the checkout does not fit or the folder exists."""
    parser = Parser("prompts", __doc__)
    parser.add_argument(
        "checkout", type=Path, help="folder of your checkout of ace-agent/ace or ace-agent/ace-appworld"
    )
    parser.add_argument("out", type=Path, help="folder to create; keep it outside this repository")
    for role in appworld.ROLES:
        parser.add_argument(f"--{role.option}", type=Path, metavar="FILE", help=f"AppWorld: the {role.what}")
    options = parser.parse_args(arguments)
    given = {role.option: getattr(options, role.option.replace("-", "_")) for role in appworld.ROLES}
    console = Console()
    if options.out.exists():
        raise DataError(f"{options.out} exists already; name a new folder")
    made = templates(options.checkout, given, console)
    shutil.copytree(prompts_folder() / "default", options.out)
    for name, text in made.items():
        (options.out / name).parent.mkdir(exist_ok=True)
        (options.out / name).write_text(text, encoding="utf-8")
    console.print(f"{options.out}: pass prompts={options.out}", markup=False, highlight=False, soft_wrap=True)
    return 0
