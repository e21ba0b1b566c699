"""Loads contexts from files and records, by kind."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec

from ace_bench.contexts.base import ContextValue
from ace_bench.contexts.cheatsheet import Cheatsheet
from ace_bench.contexts.demonstrations import Demonstrations
from ace_bench.contexts.empty import NoContext
from ace_bench.contexts.instruction import Instruction
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.text_format import read_text
from ace_bench.contexts.playbook_text.dialects import Dialect
from ace_bench.contexts.playbook_text.text_playbook import TextPlaybook
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError, DataError, StoreError
from ace_bench.core.method import Arena, C
from ace_bench.core.resources import CONTEXTS
from ace_bench.core.types import Record
from ace_bench.store.checksums import read_checked

_LOG = logging.getLogger(__name__)
_LINE_END = re.compile("\r\n?")

KINDS: tuple[type[Context], ...] = (
    NoContext,
    Cheatsheet,
    Demonstrations,
    Instruction,
    Playbook,
    TextPlaybook,
)
"""The kinds of this package; a method with its own kind passes it as ``also``."""


def restore(record: Record, *also: type[Context]) -> Context:
    """Restore a context of a known kind, or of one in ``also``, from its ``dump``, exactly. Raises ``DataError``."""
    return _find_kind(record.get("kind"), also).load(record)


def kind_of(path: Path) -> type[Context]:
    """Return the kind of the context in a file without loading it; raises ``DataError``."""
    text = _read(path)
    try:
        return _find_kind(_record(text).get("kind")) if _is_json(text) else Playbook
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def is_known(kind: str) -> bool:
    """Whether contexts of a kind can be restored."""
    return kind in {known.kind for known in KINDS} or kind in entry_points(group=CONTEXTS).names


def _find_kind(name: object, also: Iterable[type[Context]] = ()) -> type[Context]:
    for kind in (*KINDS, *also):
        if kind.kind == name:
            return kind
    others = entry_points(group=CONTEXTS)
    if name not in others.names:
        known = [*(kind.kind for kind in (*KINDS, *also)), *sorted(others.names)]
        raise DataError(f"unknown kind of context {name!r}; known are {', '.join(known)}")
    found: type[Context] = others[str(name)].load()
    return found


def load_context(path: str | Path, *also: type[Context], sections: Iterable[str], count: TokenCounter) -> Context:
    """Load a context to start from: a JSON dump of any kind, or a playbook in the official text format.

    A playbook is adapted to the run: the task's ``sections`` come before its own, and its tokens are counted again,
    since the tokenizer may differ. Every change that reading a text needed is logged as a warning. Raises ``DataError``
    that names the file and, if known, the line.
    """
    path = Path(path)
    text = _read(path)
    try:
        if not _is_json(text):
            playbook, notes = read_text(text, sections=sections, count=count)
            for note in notes:
                _warn(path, note)
            return playbook
        context = restore(_record(text), *also)
        return context.fitted(sections, count) if isinstance(context, ContextValue) else context
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def load_text_playbook(path: str | Path, *, dialect: Dialect, count: TokenCounter) -> TextPlaybook:
    """Load the text playbook to start from: a saved one, or a text file in the official format, taken as it is.

    Line ends become newlines. Raises ``DataError`` if the file is damaged, ``ConfigError`` if it holds a context of
    another kind or a saved playbook of the other dialect.
    """
    text = _read(Path(path))
    if not _is_json(text):
        try:
            return TextPlaybook.of_text(_LINE_END.sub("\n", text), dialect=dialect, count=count)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
    loaded = load_context(path, sections=(), count=count)
    if not isinstance(loaded, TextPlaybook):
        raise ConfigError(
            f"{path} holds a context of kind {loaded.kind}; give a playbook as text or {TextPlaybook.kind}"
        )
    if loaded.dialect != dialect:
        raise ConfigError(f"{path} holds a playbook in the dialect {loaded.dialect}; this run needs {dialect}")
    return loaded


def load_kind(kind: type[C], path: str, *, arena: Arena, reader: str) -> C:
    """Load the context that a method starts from; ``reader`` names the method in the error.

    Raises ``DataError`` if the file is damaged, ``ConfigError`` if it holds a context of another kind.
    """
    loaded = load_context(path, kind, sections=arena.sections, count=arena.counter("generator"))
    if not isinstance(loaded, kind):
        raise ConfigError(f"method.initial={path} holds no {kind.kind}; {reader} starts from one")
    return loaded


@cache  # a run reads the file when it is planned and again when it begins
def _warn(path: Path, note: str) -> None:
    _LOG.warning("%s, %s", path, note)


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{")


def _read(path: Path) -> str:
    whole = path.absolute()
    try:
        data = read_checked(whole.parent.parent, f"{whole.parent.name}/{whole.name}")
    except OSError as error:
        raise DataError(f"{path}: the context file cannot be read: {error.strerror}") from error
    except StoreError as error:
        raise DataError(f"{error}, or copy the file to use it as it is") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}: line {line}: not UTF-8 text") from error


def _record(text: str) -> Record:
    try:
        json.loads(text)  # for the line number in errors
        record: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except json.JSONDecodeError as error:
        raise DataError(f"line {error.lineno}: broken JSON: {error.msg}") from error
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise DataError(f"broken JSON: {error}") from error
    return record
