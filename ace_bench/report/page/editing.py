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
from ace_bench.playbook.feedback import Vote, add_bullet, edit_bullet, give_feedback, put_back, remove_bullet
from ace_bench.playbook.playbook import Playbook
from ace_bench.report.page.results import Results
from ace_bench.report.planned import quote
from ace_bench.report.records import RunSummary
from ace_bench.store.processes import parse_command

LARGEST = 64 * 1024
"""Maximum number of bytes of one change."""
_EDITED = "edited"
_NOTE, _SECTION = 2_000, 80
"""Maximum number of characters."""
_SHOWN = ("id", "section", "content", "helpful", "harmful", "neutral", "tokens")
_WORD = re.compile(r"\w+", re.ASCII)
_PLAIN_PLACE = re.compile(r"[\w./+-]+", re.ASCII)
"""A file that a setting can name as it is."""
_NOT_TESTED = re.compile(r"mode[.=]|tags=|note=")
"""Settings of a run that its test does not repeat."""


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of one bullet: a vote with or without a note, new words, or whether to ``keep`` it.

    ``content`` with a ``section`` is a new bullet. A comment is a neutral vote with a note. ``keep`` puts a removed
    bullet back.
    """

    run: str
    bullet: str = ""
    vote: Vote | None = None
    note: Annotated[str, msgspec.Meta(max_length=_NOTE)] = ""
    content: str | None = None
    section: Annotated[str, msgspec.Meta(max_length=_SECTION)] | None = None
    keep: bool | None = None

    @property
    def problem(self) -> str:
        """Why this is not one change, "" if it is."""
        if (self.vote, self.content, self.keep).count(None) != 2:
            return "a change is a vote, words, or whether a bullet stays"
        if self.section is not None and (self.content is None or self.bullet):
            return "only a new bullet has a section: give it words and no id"
        return "" if self.section is not None or self.bullet else "a change names a bullet"


class Editing:
    """Changes copies of the playbooks of the runs under ``root``. Safe to use from several threads."""

    def __init__(self, results: Results, root: Path):
        self._results, self._root = results, root
        self._lock = threading.Lock()

    def change(self, body: bytes) -> Record:
        """Apply a change and return ``state`` of the run.

        Raises ``ConfigError`` for a change that cannot be made, ``DataError``, ``StoreError`` and ``FileUnwritable``.
        """
        try:
            change = msgspec.json.decode(body, type=Change)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"this is no change of a bullet: {error}") from error
        if change.problem:
            raise ConfigError(change.problem)
        run = self._run(change.run)
        tested = _tested(run)
        with self._lock:
            file = self._file(run, change.run)
            if not file.exists():
                save_context(tested, file)
            book = change_playbook(file, partial(_changed, change=change, tested=tested))
        return _state(run, file, tested, book)

    def state(self, key: str) -> Record:
        """Return the copy's file, its bullets that differ from what the run tested, and the command that tests it.

        Nothing if there is no copy. Raises ``ConfigError``, ``DataError`` and ``StoreError``.
        """
        run = self._run(key)
        file = self._file(run, key)
        if not file.exists():
            return {}
        book = load(file)
        if not isinstance(book, Playbook):
            raise ConfigError(f"{file} holds a context of kind {book.kind}; remove it")
        return _state(run, file, _tested(run), book)

    def _run(self, key: str) -> RunSummary:
        run = self._results.runs().get(key)
        if run is None or not run.finished:
            raise ConfigError("only the playbook of a finished run in the list can be changed")
        return run

    def _file(self, run: RunSummary, key: str) -> Path:
        """Return where the copy of a run's playbook is. Its name is made here."""
        words = "-".join("".join(_WORD.findall(name))[:40] for name in (run.task, run.method))
        file = self._root / _EDITED / f"{words}-{key}.json"
        if file.parent.is_symlink() or file.is_symlink():
            raise ConfigError(f"{file} is a link; remove it, as changes are only written below {self._root}")
        return file


def _tested(run: RunSummary) -> Playbook:
    context = load(run.context_file("tested"))
    if not isinstance(context, Playbook):
        raise ConfigError(f"the run has a context of kind {context.kind}; only a playbook can be changed")
    return context


def _changed(book: Playbook, change: Change, tested: Playbook) -> Playbook:
    if change.keep is not None:
        return _kept(book, change.bullet, tested) if change.keep else remove_bullet(book, change.bullet)
    if change.content is None:
        vote: Any = change.vote
        return give_feedback(book, change.bullet, vote=vote, note=change.note)
    if change.section is not None:
        return add_bullet(book, section=change.section, content=change.content)
    return edit_bullet(book, change.bullet, content=change.content)


def _kept(book: Playbook, bullet: str, tested: Playbook) -> Playbook:
    if bullet not in tested.index:
        raise ConfigError(f"the run tested no bullet {bullet}, so it cannot be put back")
    return put_back(book, tested.index[bullet])


def _state(run: RunSummary, file: Path, tested: Playbook, book: Playbook) -> Record:
    differing, removed = book.index.since(tested.index)
    return {
        "file": str(file),
        "command": _test_command(run, file),
        "removed": removed,
        "bullets": [{name: getattr(bullet, name) for name in _SHOWN} for bullet in differing],
    }


def _test_command(run: RunSummary, file: Path) -> str:
    """Return the command that evaluates a playbook with the settings of a run."""
    try:
        commands = [parse_command(process.command) for process in reversed(run.processes)]
    except StoreError:
        commands = []
    recorded = next(filter(None, commands), ())
    settings = [word for word in recorded if "=" in word and not _NOT_TESTED.match(word)]
    settings = settings or [f"task={run.task}", f"method={run.method}"]
    place = str(file)
    settings += ["mode=evaluate", f"mode.context={place if _PLAIN_PLACE.fullmatch(place) else quote(place)}"]
    return f"{command_line('run')} {shlex.join(settings)}"
