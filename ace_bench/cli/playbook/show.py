"""Print a playbook: by section, or by its counters.

ace-bench playbook show results/.../seed0
ace-bench playbook show FILE.json --sort helpful --limit 20
ace-bench playbook show FILE.txt --section strategies
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.cli.playbook.reading import read_playbook
from ace_bench.contexts.playbook.bullets import Bullet, section_name
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.errors import ConfigError

_CREATED = "created"


def main(arguments: Sequence[str]) -> int:
    """Print the playbook and return the exit status."""
    parser = Parser("playbook show", __doc__)
    parser.add_argument("playbook", type=Path, help="run folder or playbook file")
    parser.add_argument("--sort", choices=[_CREATED, "helpful", "harmful", "tokens"], default=_CREATED)
    parser.add_argument("--section", help="show one section")
    parser.add_argument("--limit", type=int, help="show the first bullets only")
    options = parser.parse_args(arguments)
    book = read_playbook(options.playbook)
    bullets = _sorted(_chosen(book, options.section), options.sort)
    console = Console(highlight=False)
    shown = bullets[: options.limit]
    for section, some in groupby(shown, key=lambda bullet: bullet.section if options.sort == _CREATED else ""):
        if section:
            console.print(f"\n{section}", style="bold", markup=False)
        for bullet in some:
            console.print(f"{counted(bullet)}  {bullet.content}", markup=False)
    left = f", the first {len(shown)} shown" if len(shown) < len(bullets) else ""
    console.print(f"\n{len(bullets)} of {book.size} bullets{left}, {book.tokens:,} tokens", markup=False)
    return 0


def counted(bullet: Bullet) -> str:
    """Return the id of a bullet with its counters."""
    return f"[{bullet.id}] +{bullet.helpful} -{bullet.harmful}"


def _chosen(book: Playbook, section: str | None) -> list[Bullet]:
    if section is None:
        order = {name: place for place, name in enumerate(book.sections)}
        return sorted(book.bullets, key=lambda bullet: (order[bullet.section], bullet.number))
    if section_name(section) not in book.sections:
        raise ConfigError(f"there is no section {section}; there are {', '.join(book.sections)}")
    return [bullet for bullet in book.bullets if bullet.section == section_name(section)]


def _sorted(bullets: list[Bullet], by: str) -> list[Bullet]:
    return bullets if by == _CREATED else sorted(bullets, key=lambda bullet: -int(getattr(bullet, by)))
