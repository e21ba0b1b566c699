"""Votes, comments and edits from the viewer's page, written as `ace-bench playbook feedback` and `import` write them.

A run keeps the playbook that it tested. What the page changes is a copy in the folder ``edited`` of the results.
"""

from __future__ import annotations

import re
import shlex
import threading
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ace_bench.contexts.loading import change_playbook, load, save_context
from ace_bench.core.errors import ConfigError, StoreError
from ace_bench.core.program import command_line
from ace_bench.core.types import Record
from ace_bench.playbook.feedback import Vote, edit_bullet, give_feedback
from ace_bench.playbook.playbook import Playbook
from ace_bench.report.page.results import Results
from ace_bench.report.records import RunSummary
from ace_bench.store.processes import parse_command

LARGEST = 64 * 1024
"""Maximum number of bytes of one change."""
_EDITED = "edited"
_NOTE = 2_000
_WORD = re.compile(r"\w+", re.ASCII)
_MODE = re.compile(r"mode[.=]")


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of one bullet: a vote with or without a note, or new words. A comment is a neutral vote with a note."""

    run: str
    bullet: str
    vote: Vote | None = None
    note: Annotated[str, msgspec.Meta(max_length=_NOTE)] = ""
    content: str | None = None


class Editing:
    """Changes copies of the playbooks of the runs under ``root``. Safe to use from several threads."""

    def __init__(self, results: Results, root: Path):
        self._results, self._root = results, root
        self._lock = threading.Lock()

    def change(self, body: bytes) -> Record:
        """Apply a change. Return the file, the bullet as it is now, and the command that tests the changed playbook.

        Raises ``ConfigError`` for a change that cannot be made, ``DataError``, ``StoreError`` and ``FileUnwritable``.
        """
        try:
            change = msgspec.json.decode(body, type=Change)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"this is no change of a bullet: {error}") from error
        if (change.vote is None) == (change.content is None):
            raise ConfigError("a change is either a vote or new words for a bullet")
        run = self._results.runs().get(change.run)
        if run is None or not run.finished:
            raise ConfigError("only the playbook of a finished run in the list can be changed")
        with self._lock:
            file = self._copy(run, change.run)
            book = change_playbook(file, partial(_changed, change=change))
        bullet = book.index[change.bullet]
        return {
            "file": str(file),
            "content": bullet.content,
            "counters": bullet.counters,
            "command": _test_command(run, file),
        }

    def _copy(self, run: RunSummary, key: str) -> Path:
        """Return the copy of a run's playbook, which is made first where there is none. Its name is made here."""
        words = "-".join("".join(_WORD.findall(name))[:40] for name in (run.task, run.method))
        file = self._root / _EDITED / f"{words}-{key}.json"
        if file.parent.is_symlink() or file.is_symlink():
            raise ConfigError(f"{file} is a link; remove it, as changes are only written below {self._root}")
        if not file.exists():
            context = load(run.context_file("tested"))
            if not isinstance(context, Playbook):
                raise ConfigError(f"the run has a context of kind {context.kind}; only a playbook can be changed")
            save_context(context, file)
        return file


def _changed(book: Playbook, change: Change) -> Playbook:
    if change.content is not None:
        return edit_bullet(book, change.bullet, content=change.content)
    vote: Any = change.vote
    return give_feedback(book, change.bullet, vote=vote, note=change.note)


def _test_command(run: RunSummary, file: Path) -> str:
    """Return the command that evaluates a playbook with the settings of a run."""
    try:
        commands = [parse_command(process.command) for process in reversed(run.processes)]
    except StoreError:
        commands = []
    recorded = next(filter(None, commands), ())
    settings = [word for word in recorded if "=" in word and not _MODE.match(word)]
    settings = settings or [f"task={run.task}", f"method={run.method}"]
    return f"{command_line('run')} {shlex.join([*settings, 'mode=evaluate', f'mode.context={file}'])}"
