"""Commands that look at playbooks: show and diff."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from ace_bench.cli.arguments import Parser
from ace_bench.cli.playbook.difference import PlaybookDiff, playbook_diff
from ace_bench.contexts.loading import load
from ace_bench.core.console import Console
from ace_bench.core.context import HasBullets
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.terminal import write
from ace_bench.playbook.bullets import Bullet, section_name
from ace_bench.playbook.playbook import Playbook
from ace_bench.playbook.text_format import read_text
from ace_bench.report.histories import last_context

_TESTED = "tested"


def read_playbook(path: Path, *, name: str = _TESTED) -> Playbook:
    """Read a playbook of a run folder (``contexts/NAME.json``) or file. Raises ``DataError`` that names it.

    A run that has not finished tested none: then it is the last one that the run recorded, and a note says so.
    """
    file = path / "contexts" / f"{name}.json" if path.is_dir() else path
    if not path.is_dir() or file.is_file():
        context = load(file)
    elif name == _TESTED and (path / "contexts" / "initial.json").is_file():
        context, steps = last_context(path)
        after = f"after step {steps}" if steps else "before the first step"
        write(f"{path} has not finished: this is its playbook {after}\n", sys.stderr)
    else:
        raise DataError(f"{path} is not the folder of a run: it has no contexts/{name}.json")
    if isinstance(context, Playbook):
        return context
    if not isinstance(context, HasBullets):
        raise DataError(f"{file} holds a context of kind {context.kind}; give a playbook")
    try:
        return read_text(context.official_text(), sections=(), count=estimate_tokens).playbook
    except DataError as error:
        raise DataError(f"{file}: {error}") from error


_SHOW_HELP = """Print a playbook: by section, or by its counters.

ace-bench playbook show results/.../seed0
ace-bench playbook show FILE.json --sort helpful --limit 20
ace-bench playbook show FILE.txt --section strategies
"""


_CREATED = "created"


def show_playbook(arguments: Sequence[str]) -> int:
    """Print the playbook and return the exit status."""
    parser = Parser("playbook show", _SHOW_HELP)
    parser.add_argument("playbook", type=Path, help="run folder or playbook file")
    parser.add_argument("--sort", choices=[_CREATED, "helpful", "harmful", "tokens"], default=_CREATED)
    parser.add_argument("--section", help="show one section")
    parser.add_argument("--limit", type=int, help="show the first bullets only")
    options = parser.parse_args(arguments)
    book = read_playbook(options.playbook)
    bullets = _sort_bullets(_choose_bullets(book, options.section), options.sort)
    console = Console(highlight=False)
    first_bullets = bullets[: options.limit]
    for section, group in groupby(first_bullets, key=lambda bullet: bullet.section if options.sort == _CREATED else ""):
        if section:
            console.print(f"\n{section}", style="bold", markup=False)
        for bullet in group:
            console.print(f"{with_counters(bullet)}  {bullet.content}", markup=False)
    note = f", the first {len(first_bullets)} shown" if len(first_bullets) < len(bullets) else ""
    console.print(f"\n{len(bullets)} of {book.size} bullets{note}, {book.tokens:,} tokens", markup=False)
    return 0


def with_counters(bullet: Bullet) -> str:
    """Return the id of a bullet with its counters."""
    return f"[{bullet.id}] +{bullet.helpful} -{bullet.harmful}"


def _choose_bullets(book: Playbook, section: str | None) -> list[Bullet]:
    if section is None:
        order = {name: index for index, name in enumerate(book.sections)}
        return sorted(book.bullets, key=lambda bullet: (order[bullet.section], bullet.number))
    if section_name(section) not in book.sections:
        raise ConfigError(f"there is no section {section}; there are {', '.join(book.sections)}")
    return [bullet for bullet in book.bullets if bullet.section == section_name(section)]


def _sort_bullets(bullets: list[Bullet], by: str) -> list[Bullet]:
    return bullets if by == _CREATED else sorted(bullets, key=lambda bullet: -int(getattr(bullet, by)))


_DIFF_HELP = """Say what differs between two playbooks: bullets added, removed, reworded, and with other counters.

    ace-bench playbook diff BEFORE AFTER

Each is a run folder or a playbook file. The exit status is 0 if contents and counters are equal, and 1 if not.
"""


def diff_playbooks(arguments: Sequence[str]) -> int:
    """Print the differences and return the exit status."""
    parser = Parser("playbook diff", _DIFF_HELP)
    parser.add_argument("before", type=Path, help="run folder or playbook file")
    parser.add_argument("after", type=Path, help="run folder or playbook file")
    options = parser.parse_args(arguments)
    difference = playbook_diff(read_playbook(options.before), read_playbook(options.after))
    return int(print_diff(difference, Console(highlight=False)))


def print_diff(difference: PlaybookDiff, console: Console) -> bool:
    """Print what differs between two playbooks. Return whether anything does."""

    def say(text: str, style: str) -> None:
        console.print(text, style=style, markup=False)

    for bullet in difference.removed:
        say(f"- {with_counters(bullet)}  {bullet.content}", "red")
    for bullet in difference.added:
        say(f"+ {with_counters(bullet)}  {bullet.content}", "green")
    for before, after in difference.reworded:
        say(f"- {with_counters(before)}  {before.content}", "red")
        say(f"+ {with_counters(after)}  {after.content}", "green")
    for before, after in difference.recounted:
        say(f"  {with_counters(before)} -> {with_counters(after)}  {after.content}", "dim")
    counts = {
        "removed": difference.removed,
        "added": difference.added,
        "reworded": difference.reworded,
        "recounted": difference.recounted,
    }
    console.print(
        ", ".join(f"{len(bullets)} {name}" for name, bullets in counts.items()) + f", {difference.unchanged} unchanged"
    )
    return any(counts.values())
