"""Commands that write playbooks to share: merge, card and export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from importlib.metadata import entry_points
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from ace_bench.cli.arguments import Parser, count, print_line
from ace_bench.contexts.loading import official_text, restore, save_context
from ace_bench.contexts.playbook.embed import make_embedder
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.refine import Refiner
from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.types import Record
from ace_bench.report.escaping import csv_of, markdown_table
from ace_bench.report.evidence import read_steps
from ace_bench.report.histories import BulletHistory, bullet_history, history
from ace_bench.report.records import read_run
from ace_bench.store.files import write_files
from ace_bench.store.processes import read_processes
from ace_bench.store.results import read_metrics, read_object, read_settings
from ace_playbooks.looking import read_playbook
from ace_playbooks.merge import NamedPlaybook, merge_playbooks

_MERGE_HELP = """Merge playbooks of several runs, users or projects into one.

    ace-bench playbook merge PLAYBOOK [PLAYBOOK ...] --out FILE.json

A PLAYBOOK is a run folder (its last playbook), a saved playbook (contexts/final.json) or a text in the format of the
authors' code. Equal bullets become one, with the sum of their counters; --similar joins similar ones, too. Start a run
from the result with method.initial=FILE.json. The sources of a bullet in FILE.json name the playbooks it comes from.
"""


def merge_to_file(arguments: Sequence[str]) -> int:
    """Write the merged playbook and return the exit status."""
    parser = Parser("playbook merge", _MERGE_HELP)
    parser.add_argument("playbooks", type=Path, nargs="+", help="run folders or playbook files")
    parser.add_argument("--out", type=Path, required=True, help="file to write (JSON)")
    parser.add_argument("--similar", type=float, help="join bullets from this cosine similarity on, such as 0.9")
    parser.add_argument("--embedder", default="hashing", help="for --similar: hashing (default) or a sentence model")
    options = parser.parse_args(arguments)
    if options.similar is not None and not 0 < options.similar <= 1:
        raise ConfigError(f"--similar {options.similar} must be above 0 and at most 1")
    named = [NamedPlaybook(name=str(path), playbook=read_playbook(path, name="final")) for path in options.playbooks]
    merged = merge_playbooks(named, count=estimate_tokens, refiner=_refiner(options.similar, options.embedder))
    save_context(merged, options.out)
    before = sum(one.playbook.size for one in named)
    print_line(f"{options.out}: {merged.size} bullets of {before} in {len(named)} playbooks")
    return 0


def _refiner(similar: float | None, embedder: str) -> Refiner | None:
    """Return a refiner that only joins similar bullets: votes and size are left to the runs that use the playbook."""
    if similar is None:
        return None
    return Refiner(make_embedder(embedder), threshold=similar, max_tokens=None, harmful_min=None)


_CARD_HELP = """Write a playbook with a card that says where it comes from and what it is worth.

    ace-bench playbook card results/.../seed0 --out shared --licence CC-BY-4.0

The folder then holds card.json and README.md (task, checksums of the data, backbone, settings, score with its interval,
cost, provenance), playbook.json and playbook.txt, in the format of the authors' code.
"""


def write_card(arguments: Sequence[str]) -> int:
    """Write the files and return the exit status."""
    parser = Parser("playbook card", _CARD_HELP)
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
        "playbook.txt": book.official_text().encode(),
    }
    write_files({options.out / name: content for name, content in files.items()})
    print_line(f"{options.out}: {', '.join(files)}")
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
        "backbone": {"option": run.backbone, "models": list(dict.fromkeys(map(str, run.metrics["roles"].values())))},
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


_EXPORT_HELP = """Write a finished run's playbooks as text files, named as the authors' finance code names them.

    ace-bench playbook export RUN_FOLDER --out FOLDER

FOLDER then holds final_playbook.txt and, with mode.select=best, best_playbook.txt. In intermediate_playbooks/ are every
50th playbook (--every) and the last of each epoch, or of each window of an online run.

With --history, bullet_history.csv says in which step, and when, each bullet of the last playbook was created, last
changed and last used.

    ace-bench playbook export PLAYBOOK --as FORM --out FILE_OR_FOLDER

writes one playbook, of a run or a file, in a form of another package{forms}.
"""
FORMS = "ace_bench.playbook_forms"
"""The group of entry points by which packages add forms: name = function of a playbook and a path."""


INTERMEDIATE = "intermediate_playbooks"


def playbook_files(run: Path, *, every: int) -> Mapping[str, str]:
    """Return the texts by file name, with every ``every``-th playbook; raises ``DataError`` and ``StoreError``."""
    metrics = read_metrics(run)
    if metrics is None:
        raise DataError(f"{run} is not the folder of a finished run; finish it with the command that started it")
    if not metrics["steps"]:
        raise DataError(f"{run} only evaluated a context, without adapting it; name a run that adapts a playbook")
    texts = [_text(context, run) for context in history(run)][1:]
    epochs = [step.epoch for step in read_steps(run)]
    online = metrics["mode"] == "online"
    names = (
        _name_online_steps(len(texts), read_settings(run)["mode"]["window"], every)
        if online
        else _name_offline_steps(epochs, every)
    )
    files = {f"{INTERMEDIATE}/{name}_playbook.txt": texts[place] for name, place in names}
    best = run / "contexts" / "best.json"
    chosen = {"best_playbook.txt": _text(restore(read_object(run, "contexts/best.json")), run)} if best.exists() else {}
    return {**files, "final_playbook.txt": texts[-1], **chosen}


def _name_offline_steps(epochs: Sequence[int], every: int) -> Iterator[tuple[str, int]]:
    """Yield names and places of an offline run's steps; epochs, and the steps of each, are counted from 1."""
    for epoch, group in groupby(range(len(epochs)), key=epochs.__getitem__):
        places = [*group]
        yield from ((f"epoch_{epoch + 1}_step_{n}", place) for n, place in enumerate(places, 1) if n % every == 0)
        yield f"epoch_{epoch + 1}_final", places[-1]


def _name_online_steps(steps: int, window: int, every: int) -> Iterator[tuple[str, int]]:
    for place in range(steps):
        if (place + 1) % every == 0:
            yield f"step_{place + 1}", place
        if (place + 1) % window == 0 or place + 1 == steps:
            yield f"window_{place // window + 1}_final", place


def _text(context: Context, run: Path) -> str:
    text = official_text(context)
    if text is None:
        raise DataError(f"{run} has contexts of the kind {context.kind}; only playbooks have this text form")
    return text


def _history(run: Path) -> str:
    """Return the history of the bullets as CSV; what is unknown or never happened is an empty cell."""
    return csv_of(msgspec.to_builtins(bullet_history(run)), [field.name for field in fields(BulletHistory)])


def export_playbooks(arguments: Sequence[str]) -> int:
    """Write the files and return the exit status."""
    forms = entry_points(group=FORMS)
    parser = Parser("playbook export", _EXPORT_HELP.format(forms=f": {', '.join(forms.names)}" if forms else ""))
    parser.add_argument("run", type=Path, help="folder of a finished run; with --as also a playbook file")
    parser.add_argument("--as", dest="form", choices=sorted(forms.names), help="form (default: the authors' texts)")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to; with --as what the form is")
    parser.add_argument("--every", type=count, default=50, help="steps between intermediate playbooks (default: 50)")
    parser.add_argument("--history", action="store_true", help="also write bullet_history.csv")
    options = parser.parse_args(arguments)
    if options.form is not None:
        book = read_playbook(options.run)
        print_line(f"{', '.join(map(str, forms[options.form].load()(book, options.out)))}: {book.size} bullets")
        return 0
    files = playbook_files(options.run, every=options.every)
    tables = {"bullet_history.csv": _history(options.run)} if options.history else {}
    write_files({options.out / name: text for name, text in {**files, **tables}.items()})
    print_line(f"{options.out}: {len(files)} playbooks")
    return 0
