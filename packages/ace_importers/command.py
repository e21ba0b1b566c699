"""Make a prompt set with the authors' own prompts, from your checkout of their code.

    ace-bench prompts ~/ace my_prompts                  ace-agent/ace: ACE on FiNER and Formula
    ace-bench run task=finer method=ace prompts=my_prompts

    ace-bench prompts ~/ace-appworld my_prompts         ace-agent/ace-appworld: ACE and ReAct on AppWorld
    ace-bench run task=appworld method=ace prompts=my_prompts

    ace-bench prompts ~/dynamic-cheatsheet my_prompts   suzgunmirac/dynamic-cheatsheet: method=dc and dc_rs
    ace-bench run task=finer method=dc labels=none prompts=my_prompts

    ace-bench prompts ~/stream-bench my_prompts         stream-bench/stream-bench: DDXPlus, base, icl, memories
    ace-bench run task=ddxplus method=base prompts=my_prompts

The set is a copy of prompts/default in which these prompts are theirs, byte for byte. On AppWorld the files are
recognised by the placeholders in them; where several fit, name one. Their code is read, never run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.core.errors import DataError
from ace_bench.core.resources import prompt_folders
from ace_bench.store.files import new_folder, write_files
from ace_importers import appworld, dynamic_cheatsheet, finance, stream_bench

_KINDS: Mapping[Path, Callable[[Path], Mapping[str, str]]] = {
    finance.FOLDER: finance.templates,
    dynamic_cheatsheet.FOLDER: dynamic_cheatsheet.templates,
    stream_bench.FILE: stream_bench.templates,
}
"""What shows which checkout it is, and what converts its prompts."""


def templates(checkout: Path, given: Mapping[str, Path | None], console: Console) -> Mapping[str, str]:
    """Return template texts by file of the set, and print which file is used for which role."""
    if (checkout / appworld.FOLDER).is_dir():
        files = appworld.find(checkout, given)
        made = appworld.templates(checkout, files)
        for role in appworld.ROLES:
            console.print(f"{role.what}: {files[role.option]}", markup=False, highlight=False, soft_wrap=True)
        return made
    named = next((option for option, path in given.items() if path is not None), None)
    if named is not None:
        raise DataError(f"--{named} is for a checkout of ace-agent/ace-appworld, and {checkout} is not one")
    convert = next((convert for place, convert in _KINDS.items() if (checkout / place).exists()), None)
    if convert is None:
        known = ", ".join(map(str, (appworld.FOLDER, *_KINDS)))
        raise DataError(f"{checkout} has none of {known}; is it a checkout of the authors' code?")
    return convert(checkout)


def main(arguments: Sequence[str]) -> int:
    """Write the set; the exit code is not zero if the checkout does not fit or the folder exists."""
    parser = Parser("prompts", __doc__)
    parser.add_argument("checkout", type=Path, help="folder of your checkout of one of the four repositories")
    parser.add_argument("out", type=Path, help="folder to create; keep it outside this repository")
    for role in appworld.ROLES:
        parser.add_argument(f"--{role.option}", type=Path, metavar="FILE", help=f"AppWorld: the {role.what}")
    options = parser.parse_args(arguments)
    given = {role.option: getattr(options, role.option.replace("-", "_")) for role in appworld.ROLES}
    console = Console()
    if options.out.exists():
        raise DataError(f"{options.out} exists already; name a new folder")
    made = templates(options.checkout, given, console)
    defaults = [folder / "default" for folder in reversed(prompt_folders())]  # of equal names the first counts
    files = ((file.relative_to(default), file) for default in defaults for file in default.rglob("*.*"))
    copied = {options.out / name: file.read_text("utf-8") for name, file in files}
    with new_folder(options.out):
        write_files({**copied, **{options.out / name: text for name, text in made.items()}})
    console.print(f"{options.out}: pass prompts={options.out}", markup=False, highlight=False, soft_wrap=True)
    return 0
