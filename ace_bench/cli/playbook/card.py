"""Write a playbook with a card that says where it comes from and what it is worth.

    ace-bench playbook card results/.../seed0 --out shared --licence CC-BY-4.0

The folder then holds card.json and README.md (task, checksums of the data, backbone, settings, score with its interval,
cost, provenance), playbook.json and playbook.txt, in the format of the authors' code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.cli.playbook.reading import read_playbook
from ace_bench.contexts.playbook.text_format import write_text
from ace_bench.report.cards import card_markdown, playbook_card
from ace_bench.store.files import write_files


def main(arguments: Sequence[str]) -> int:
    """Write the files and return the exit status."""
    parser = Parser("playbook card", __doc__)
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--licence", help="under which the playbook may be used, such as CC-BY-4.0")
    options = parser.parse_args(arguments)
    book = read_playbook(options.run)
    card = playbook_card(options.run, book, licence=options.licence)
    files = {
        "card.json": _json(card),
        "README.md": card_markdown(card).encode(),
        "playbook.json": _json(book.dump()),
        "playbook.txt": write_text(book).encode(),
    }
    write_files({options.out / name: content for name, content in files.items()})
    Console().print(f"{options.out}: {', '.join(files)}", markup=False, highlight=False, soft_wrap=True)
    return 0


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value)) + b"\n"
