"""Commands that change a playbook after its run: forget and feedback."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ace_bench.cli.arguments import Parser, print_line
from ace_bench.cli.playbook.difference import playbook_diff
from ace_bench.cli.playbook.forgetting import file_lineage, forget, run_lineage
from ace_bench.cli.playbook.looking import print_diff, read_playbook
from ace_bench.contexts.loading import change_playbook, save_context
from ace_bench.core.console import Console
from ace_bench.core.errors import ConfigError
from ace_bench.playbook.feedback import give_feedback

_FORGET_HELP = """Remove what came from a sample, a user or a bullet, with what was merged or reworded from it.

    ace-bench playbook forget results/.../seed0 --sample ID --out FILE.json
    ace-bench playbook forget FILE.json --source NAME --dry-run

A source is a user who gave `feedback`. Of a run, the tested playbook is taken, and
its journal says which words and votes came from the sample. A file knows the sources of each bullet alone. Bullets go
back to their last words from elsewhere; those without any are removed. --dry-run only says what would change.
"""


def forget_source(arguments: Sequence[str]) -> int:
    """Print what goes and why, write what remains, and return the exit status."""
    parser = Parser("playbook forget", _FORGET_HELP)
    parser.add_argument("playbook", type=Path, help="run folder or playbook file")
    target = parser.add_mutually_exclusive_group(required=True)
    for name, meaning in {"source": "user", "sample": "sample", "bullet": "bullet"}.items():
        target.add_argument(f"--{name}", dest="name", metavar="NAME" if name == "source" else "ID", help=meaning)
    parser.add_argument("--out", type=Path, help="file to write (JSON)")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    if not options.out and not options.dry_run:
        raise ConfigError("name the file to write with --out FILE.json, or look first with --dry-run")
    book = read_playbook(options.playbook)
    lineage = run_lineage(options.playbook, book) if options.playbook.is_dir() else file_lineage(book)
    result = forget(book, lineage, options.name)
    print_diff(playbook_diff(book, result.playbook), Console(highlight=False, soft_wrap=True))
    for bullet, reason in result.reasons.items():
        print_line(f"[{bullet}] {reason}")
    for note in result.notes:
        print_line(note)
    if not options.dry_run:
        save_context(result.playbook, options.out)
        print_line(f"{options.out}: {result.playbook.size} bullets of {book.size}")
    return 0


_FEEDBACK_HELP = """Count a user's vote on a bullet.

    ace-bench playbook feedback FILE.json --bullet ID --helpful
    ace-bench playbook feedback results/.../seed0 --bullet ID --harmful --note "wrong since May" --out FILE.json

The sources of the bullet say who voted (--by, default user), when, and the note. A run that starts from the playbook
(method.initial=FILE.json) counts the vote where it removes harmful bullets and prunes.
"""


def vote_on_bullet(arguments: Sequence[str]) -> int:
    """Write the playbook with the vote and return the exit status."""
    parser = Parser("playbook feedback", _FEEDBACK_HELP)
    parser.add_argument("playbook", type=Path, help="playbook file, or run folder with --out")
    parser.add_argument("--bullet", required=True, metavar="ID", help="bullet")
    vote = parser.add_mutually_exclusive_group(required=True)
    for name in ("helpful", "harmful"):
        vote.add_argument(f"--{name}", dest="vote", action="store_const", const=name, help=f"it was {name}")
    parser.add_argument("--note", default="", help="why")
    parser.add_argument("--by", default="user", help="who votes (default: user)")
    parser.add_argument("--out", type=Path, help="file to write (JSON; default: the playbook's own)")
    options = parser.parse_args(arguments)
    cast = partial(give_feedback, bullet=options.bullet, vote=options.vote, by=options.by, note=options.note)
    if options.out is None:
        book = change_playbook(options.playbook, cast)
    elif options.out.suffix != ".json":
        raise ConfigError(f"{options.out} cannot keep who voted: name a file with --out FILE.json")
    else:
        save_context(book := cast(read_playbook(options.playbook)), options.out)
    print_line(f"{options.out or options.playbook}: [{options.bullet}] {book.index[options.bullet].counters}")
    return 0
