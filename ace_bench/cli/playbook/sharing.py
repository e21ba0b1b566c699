"""Writes playbooks to share: the texts of a run, or a form for agents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from importlib.metadata import EntryPoint, entry_points
from itertools import groupby
from pathlib import Path

import msgspec

from ace_bench.cli.arguments import Parser, count, print_line
from ace_bench.cli.playbook.looking import read_playbook
from ace_bench.cli.run_help import read_option
from ace_bench.contexts.loading import official_text, restore
from ace_bench.core.context import Context
from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.resources import config_folders, options
from ace_bench.report.escaping import csv_of
from ace_bench.report.evidence import read_steps
from ace_bench.report.histories import BulletHistory, bullet_history, history
from ace_bench.store.files import write_files
from ace_bench.store.results import IDENTITY, read_about, read_metrics, read_object, read_settings

_EXPORT_HELP = """Write a run's playbooks as text files, named as the authors' finance code names them.

    ace-bench playbook export RUN_FOLDER --out FOLDER

FOLDER then holds final_playbook.txt and, with mode.select=best, best_playbook.txt. In intermediate_playbooks/ are every
50th playbook (--every) and the last of each epoch, or of each window of an online run. A run that has not finished has
last_playbook.txt in place of the final one.

With --history, bullet_history.csv says in which step, and when, each bullet of the last playbook was created, last
changed and last used.

    ace-bench playbook export PLAYBOOK --as FORM --out FILE_OR_FOLDER

writes one playbook, of a run or a file, in another form: {forms}.
prompt is a text to put into a system prompt, agents a block in AGENTS.md or
CLAUDE.md, skill a folder. A skill's description says what its tasks are: of a
run by its task, else by --about.
"""
FORMS = "ace_bench.playbook_forms"
"""The group of entry points by which packages add forms.

name = function of a playbook, the path to write to and what its tasks are about ("" where nothing says it).
"""
_OURS = {
    "prompt": "ace_bench.cli.playbook.agent_files:write_prompt",
    "agents": "ace_bench.cli.playbook.agent_files:write_agents",
    "skill": "ace_bench.cli.playbook.agent_files:write_skill",
}

_OF_ANY_KIND = ("qa", "inspect", "verifiers")
"""Tasks whose name does not say what the model does."""
INTERMEDIATE, LAST = "intermediate_playbooks", "last_playbook.txt"


def playbook_files(run: Path, *, every: int) -> Mapping[str, str]:
    """Return the texts by file name, with every ``every``-th playbook. Raises ``DataError`` and ``StoreError``.

    A run that has not finished has no final playbook. Its last one is ``last_playbook.txt``, and the epoch or window
    that it was in has none.
    """
    finished = read_metrics(run) is not None
    if not finished and not (run / IDENTITY).is_file():
        raise DataError(f"{run} is not the folder of a run; name one that adapts a playbook")
    steps = [*read_steps(run)]
    if not steps:
        state = "only evaluated a context, without adapting it" if finished else "has not learnt anything yet"
        raise DataError(f"{run} {state}; name a run that adapts a playbook")
    texts = [_text(context, run) for context in history(run)][1:]
    epochs = [step.epoch for step in steps]
    online = read_about(run)["mode"] == "online"
    names = (
        _name_online_steps(len(texts), read_settings(run)["mode"]["window"], every)
        if online
        else _name_offline_steps(epochs, every)
    )
    files = {
        f"{INTERMEDIATE}/{name}_playbook.txt": texts[index]
        for name, index in names
        if finished or not name.endswith("_final") or index < len(texts) - 1
    }
    best = run / "contexts" / "best.json"
    chosen = {"best_playbook.txt": _text(restore(read_object(run, "contexts/best.json")), run)} if best.exists() else {}
    return {**files, "final_playbook.txt" if finished else LAST: texts[-1], **chosen}


def _name_offline_steps(epochs: Sequence[int], every: int) -> Iterator[tuple[str, int]]:
    """Yield names and places of an offline run's steps; epochs, and the steps of each, are counted from 1."""
    for epoch, group in groupby(range(len(epochs)), key=epochs.__getitem__):
        places = [*group]
        yield from ((f"epoch_{epoch + 1}_step_{n}", step) for n, step in enumerate(places, 1) if n % every == 0)
        yield f"epoch_{epoch + 1}_final", places[-1]


def _name_online_steps(steps: int, window: int, every: int) -> Iterator[tuple[str, int]]:
    for step in range(steps):
        if (step + 1) % every == 0:
            yield f"step_{step + 1}", step
        if (step + 1) % window == 0 or step + 1 == steps:
            yield f"window_{step // window + 1}_final", step


def _text(context: Context, run: Path) -> str:
    text = official_text(context)
    if text is None:
        raise DataError(f"{run} has contexts of the kind {context.kind}; only playbooks have this text form")
    return text


def _history(run: Path) -> str:
    """Return the history of the bullets as CSV; what is unknown or never happened is an empty cell."""
    return csv_of(msgspec.to_builtins(bullet_history(run)), [field.name for field in fields(BulletHistory)])


def _all_forms() -> Mapping[str, EntryPoint]:
    """Return the forms by name, ours and those of other packages."""
    built_in = {name: EntryPoint(name, target, FORMS) for name, target in _OURS.items()}
    return {**built_in, **{point.name: point for point in sorted(entry_points(group=FORMS))}}


def _describe_task(run: Path) -> str:
    """Return what the model of a run was to do, by its instruction or its task; "" where nothing says it."""
    if not run.is_dir():
        return ""
    try:
        instruction, name = read_settings(run)["task"].get("instruction"), read_about(run)["task"]
    except StoreError:  # a folder that holds only its contexts
        return ""
    if isinstance(instruction, str) and not instruction.endswith((".txt", ".md")):
        return instruction
    files = options("task", config_folders())
    if name in _OF_ANY_KIND or name not in files:
        return ""
    sentence, *_ = read_option(files[name], "task").title.split(". ")
    return re.sub(r" *\(.*?\)", "", sentence.removesuffix(".")) + "."


def export_playbooks(arguments: Sequence[str]) -> int:
    """Write the files and return the exit status."""
    forms = _all_forms()
    parser = Parser("playbook export", _EXPORT_HELP.format(forms=", ".join(forms)))
    parser.add_argument("run", type=Path, help="folder of a run; with --as also a playbook file")
    parser.add_argument("--as", dest="form", choices=sorted(forms), help="form (default: the authors' texts)")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to; with --as what the form is")
    parser.add_argument("--about", default="", help="with --as skill: what its tasks are (default: of a run its task)")
    parser.add_argument("--every", type=count, default=50, help="steps between intermediate playbooks (default: 50)")
    parser.add_argument("--history", action="store_true", help="also write bullet_history.csv")
    given = parser.parse_args(arguments)
    if given.form is not None:
        book = read_playbook(given.run)
        about = given.about or _describe_task(given.run)
        written = forms[given.form].load()(book, given.out, about)
        print_line(f"{', '.join(map(str, written))}: {book.size} bullets")
        return 0
    files = playbook_files(given.run, every=given.every)
    tables = {"bullet_history.csv": _history(given.run)} if given.history else {}
    write_files({given.out / name: text for name, text in {**files, **tables}.items()})
    note = f", the last one after step {sum(1 for _ in read_steps(given.run))} of an unfinished run" * (LAST in files)
    print_line(f"{given.out}: {len(files)} playbooks{note}")
    return 0
