"""Commands that look at playbooks: show, diff and lint."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.contexts.loading import load
from ace_bench.contexts.playbook.bullets import Bullet, section_name
from ace_bench.contexts.playbook.embed import make_embedder
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.text_format import read_text
from ace_bench.core.context import HasBullets
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.core.prompts import estimate_tokens
from ace_bench.store.folder import SAMPLES, unpack_samples
from ace_bench.store.journal import RolloutRecord, parse_journal
from ace_bench.store.lines import read_lines
from ace_bench.store.results import read_object
from ace_playbooks.lint import Limits, Solved, lint
from ace_playbooks.merge import PlaybookDiff, playbook_diff


def read_playbook(path: Path, *, name: str = "tested") -> Playbook:
    """Read a playbook of a run folder (``contexts/NAME.json``) or file; raises ``DataError`` that names it."""
    file = path / "contexts" / f"{name}.json" if path.is_dir() else path
    if path.is_dir() and not file.is_file():
        raise DataError(f"{path} is not the folder of a finished run: it has no contexts/{name}.json")
    context = load(file)
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
    shown = bullets[: options.limit]
    for section, some in groupby(shown, key=lambda bullet: bullet.section if options.sort == _CREATED else ""):
        if section:
            console.print(f"\n{section}", style="bold", markup=False)
        for bullet in some:
            console.print(f"{with_counters(bullet)}  {bullet.content}", markup=False)
    left = f", the first {len(shown)} shown" if len(shown) < len(bullets) else ""
    console.print(f"\n{len(bullets)} of {book.size} bullets{left}, {book.tokens:,} tokens", markup=False)
    return 0


def with_counters(bullet: Bullet) -> str:
    """Return the id of a bullet with its counters."""
    return f"[{bullet.id}] +{bullet.helpful} -{bullet.harmful}"


def _choose_bullets(book: Playbook, section: str | None) -> list[Bullet]:
    if section is None:
        order = {name: place for place, name in enumerate(book.sections)}
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
    found = playbook_diff(read_playbook(options.before), read_playbook(options.after))
    return int(print_diff(found, Console(highlight=False)))


def print_diff(found: PlaybookDiff, console: Console) -> bool:
    """Print what differs between two playbooks; return whether anything does."""

    def say(text: str, style: str) -> None:
        console.print(text, style=style, markup=False)

    for bullet in found.removed:
        say(f"- {with_counters(bullet)}  {bullet.content}", "red")
    for bullet in found.added:
        say(f"+ {with_counters(bullet)}  {bullet.content}", "green")
    for one, other in found.reworded:
        say(f"- {with_counters(one)}  {one.content}", "red")
        say(f"+ {with_counters(other)}  {other.content}", "green")
    for one, other in found.recounted:
        say(f"  {with_counters(one)} -> {with_counters(other)}  {other.content}", "dim")
    counts = {"removed": found.removed, "added": found.added, "reworded": found.reworded, "recounted": found.recounted}
    console.print(", ".join(f"{len(some)} {name}" for name, some in counts.items()) + f", {found.unchanged} unchanged")
    return any(counts.values())


_LINT_HELP = """Check a playbook before it is shared.

    ace-bench playbook lint results/.../seed0
    ace-bench playbook lint FILE.json --run results/.../seed0 --max-tokens 8000 --max-bullet-tokens 200

Finds bullets that say the same, that may contradict each other, that repeat a sample of the run together with its
answer (a leak), that were found harmful more often than helpful, and sizes above a limit. The exit status is 1 if there
are findings, and 0 if there are none.
"""


def lint_playbook(arguments: Sequence[str]) -> int:
    """Print the findings and return the exit status."""
    parser = Parser("playbook lint", _LINT_HELP)
    parser.add_argument("playbook", type=Path, help="run folder or playbook file")
    parser.add_argument(
        "--run", type=Path, help="run folder whose samples must not be repeated (default: the playbook's)"
    )
    parser.add_argument("--similar", type=float, default=0.85, help="cosine from which bullets are compared (0.85)")
    parser.add_argument("--embedder", default="hashing", help="hashing (default), static:MODEL or a sentence model")
    parser.add_argument("--max-tokens", type=int, help="size of the playbook")
    parser.add_argument("--max-bullet-tokens", type=int, help="size of a bullet")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    options = parser.parse_args(arguments)
    if not 0 < options.similar <= 1:
        raise ConfigError(f"--similar {options.similar} must be above 0 and at most 1")
    run = options.run or (options.playbook if options.playbook.is_dir() else None)
    found = lint(
        read_playbook(options.playbook),
        embedder=make_embedder(options.embedder),
        limits=Limits(similar=options.similar, tokens=options.max_tokens, bullet_tokens=options.max_bullet_tokens),
        solved=[] if run is None else solved_samples(run),
    )
    if options.json:
        sys.stdout.write(json.dumps([asdict(one) for one in found], indent=2) + "\n")
        return int(bool(found))
    console = Console(highlight=False, soft_wrap=True)
    for one in found:
        console.print(f"{one.kind}: {' and '.join(one.bullets)} {one.message}".replace("  ", " "), markup=False)
    counts = Counter(one.kind for one in found)
    console.print(", ".join(f"{number} {kind}" for kind, number in counts.items()) or "no findings", markup=False)
    if run is None:
        console.print(
            "Leaks were not looked for: --run names the run whose samples must not be repeated.", markup=False
        )
    return int(bool(found))


_SHARED = 3
"""A text of more samples than this is the task's, such as a list of labels, and no question."""


def solved_samples(folder: Path) -> list[Solved]:
    """Return each sample of a run whose reference answer its journal holds; raises ``StoreError`` and ``DataError``."""
    samples = unpack_samples(read_object(folder, SAMPLES))
    uses: dict[str, int] = {}
    for sample in samples.values():
        for text in set(sample.inputs.values()):
            uses[text] = uses.get(text, 0) + 1
    return [
        Solved(
            sample=name,
            split=samples[name].split,
            text="\n".join(text for text in samples[name].inputs.values() if uses[text] <= _SHARED),
            answer=answer,
        )
        for name, answer in dict(_answers(folder)).items()
        if name in samples
    ]


def _answers(folder: Path) -> Iterator[tuple[str, str]]:
    for line in read_lines(folder / "journal.jsonl", parse_journal).check().entries:
        record = line.record
        if isinstance(record, RolloutRecord) and record.grade.gold:
            yield record.sample, record.grade.gold
