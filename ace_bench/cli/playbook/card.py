"""Write a playbook with a card that says where it comes from and what it is worth.

    ace-bench playbook card results/.../seed0 --out shared --licence CC-BY-4.0

The folder then holds card.json and README.md (task, checksums of the data, backbone, settings, score with its interval,
cost, provenance), playbook.json and playbook.txt, in the format of the authors' code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.cli.playbook.reading import read_playbook
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.text_writer import write_text
from ace_bench.core.errors import DataError
from ace_bench.core.types import Record
from ace_bench.report.escaping import markdown_table
from ace_bench.report.records import read_run
from ace_bench.store.files import write_files
from ace_bench.store.processes import read_processes


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


CARD = 1
"""Version of the card's fields."""


def playbook_card(folder: Path, book: Playbook, *, licence: str | None) -> dict[str, Any]:
    """Return the card of the tested playbook of a finished run as a JSON object; unknown values are ``None``.

    Raises ``StoreError``, and ``DataError`` for a run that has not finished.
    """
    run = read_run(folder)
    if not run.finished:
        raise DataError(f"{folder} has not finished; finish it with the command that started it")
    headline = run.metrics["headline"]
    processes = read_processes(folder)
    names = sorted({bullet.section for bullet in book.bullets})
    return {
        "card": CARD,
        "simulated": run.simulated,
        "licence": licence,
        "playbook": {
            "digest": book.digest,
            "bullets": book.size,
            "tokens": book.tokens,
            "sections": {name: sum(bullet.section == name for bullet in book.bullets) for name in names},
        },
        "task": {"name": run.task, "source": run.source, "data": run.contents.get("data")},
        "backbone": {"option": run.backbone, "models": _models(run.metrics)},
        "settings": {
            "method": run.method,
            "mode": run.mode,
            "labels": run.labels,
            "protocol": run.protocol,
            "seed": run.seed,
            "identity": run.identity,
        },
        "score": {
            "metric": headline["metric"],
            "split": headline["split"],
            "n": headline["n"],
            "after": headline["after"],
            "interval": headline["ci95"],
            "before": headline["before"],
        },
        "cost": {name: run.value(path) for name, path in _COSTS.items()},
        "provenance": {
            "run": run.digest,
            "steps": run.metrics["steps"],
            "initial": run.identity["method"].get("initial"),
            "packages": processes[-1].packages if processes else None,
            "commit": processes[-1].commit if processes else None,
        },
    }


_COSTS = {"dollars": "usd.total", "prompt_tokens": "tokens.total.in", "reply_tokens": "tokens.total.out"}


def card_markdown(card: Record) -> str:
    """Return a card as a Markdown page."""
    score, book, task = card["score"], card["playbook"], card["task"]
    interval = "" if score["interval"] is None else " (95% interval {:.1f} to {:.1f})".format(*score["interval"])
    before = "" if score["before"] is None else f", before adaptation {score['before']:.1f}"
    settings = {name: value for name, value in card["settings"].items() if name != "identity"}
    samples = f"{score['n']} samples of {score['split']}"
    rows = {
        "Task": f"{task['name']}, {task['source']} data",
        "Data": ", ".join(f"{name} {digest[:12]}" for name, digest in (task["data"] or {}).items()) or "n/a",
        "Backbone": f"{card['backbone']['option']}: {', '.join(card['backbone']['models']) or 'n/a'}",
        "Settings": ", ".join(f"{name}={value}" for name, value in settings.items()),
        "Score": f"{score['metric']} {score['after']:.1f}{interval} on {samples}{before}",
        "Size": f"{book['bullets']} bullets, {book['tokens']:,} tokens",
        "Sections": ", ".join(f"{name} ({number})" for name, number in book["sections"].items()),
        "Cost": ", ".join(f"{name} {_number(value)}" for name, value in card["cost"].items()),
        "Run": f"{card['provenance']['run'][:12]}, {card['provenance']['steps']} steps",
        "Started from": card["provenance"]["initial"] or "an empty playbook",
        "Commit": card["provenance"]["commit"] or "n/a",
        "Licence": card["licence"] or "not given",
    }
    mark = "\nSimulated: the scores say nothing about a language model.\n" if card["simulated"] else ""
    return f"# Playbook {book['digest'][:12]}\n{mark}\n{markdown_table(('', ''), rows.items())}\n"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:,.2f}".removesuffix(".00")


def _models(metrics: Record) -> list[str]:
    return list(dict.fromkeys(map(str, metrics["roles"].values())))
