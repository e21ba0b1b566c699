"""Loads contexts from files and records, by kind, and writes them as text for system prompts of other programs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock

from ace_bench.contexts.base import NO_SAMPLE, ContextValue, NoContext
from ace_bench.contexts.cheatsheet import Cheatsheet
from ace_bench.contexts.instruction import NO_DEMONSTRATIONS, Demonstrations, Instruction
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.context import Context, HasBullets
from ace_bench.core.errors import ConfigError, DataError, StoreError
from ace_bench.core.method import Arena, C
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.resources import context_kinds
from ace_bench.core.types import Record
from ace_bench.playbook.playbook import Playbook
from ace_bench.playbook.text_format import read_text
from ace_bench.store.files import write_files, writing
from ace_bench.store.results import CHECKSUMS, CheckedFiles

_LOG = logging.getLogger(__name__)

KINDS: tuple[type[Context], ...] = (NoContext, Cheatsheet, Demonstrations, Instruction, Playbook)
"""The kinds of this room; a method with its own kind passes it as ``also``."""


def encode_context(context: Context) -> bytes:
    """Return a saved context as the content of a JSON file."""
    encode = context.encode if isinstance(context, ContextValue) else lambda: msgspec.json.encode(context.dump())
    return msgspec.json.format(encode(), indent=2) + b"\n"  # which holds no more than two copies at once


def save_context(context: Context, path: str | Path) -> None:
    """Write a context as JSON that ``load`` and ``method.initial`` read; raises ``FileUnwritable``."""
    write_files({Path(path): encode_context(context)})


def change_playbook(path: Path, change: Callable[[Playbook], Playbook]) -> Playbook:
    """Change a saved playbook; other processes that change it wait meanwhile.

    Raises ``ConfigError`` for a file of a run, which keeps what it tested, ``DataError`` and ``FileUnwritable``.
    """
    if path.suffix != ".json" or (path.absolute().parent.parent / CHECKSUMS).exists():
        raise ConfigError(f"{path} must be a .json file outside of run folders: copy contexts/final.json of a run")
    with writing(path), FileLock(path.with_name(f".{path.name}.lock")):
        book = load(path)
        if not isinstance(book, Playbook):
            raise ConfigError(f"{path} holds a context of kind {book.kind}; give a playbook")
        changed = change(book)
        save_context(changed, path)
    return changed


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
    return kind in {own_kind.kind for own_kind in KINDS} or kind in context_kinds()


def _find_kind(name: object, also: Iterable[type[Context]] = ()) -> type[Context]:
    for kind in (*KINDS, *also):
        if kind.kind == name:
            return kind
    method_kinds = context_kinds()
    if name not in method_kinds:
        kind_names = [*(kind.kind for kind in (*KINDS, *also)), *sorted(method_kinds)]
        raise DataError(
            f"unknown kind of context {name!r}; known are {', '.join(kind_names)}; a package that is installed names "
            f"its kinds under the entry point ace_bench.contexts"
        )
    loaded_kind: type[Context] = method_kinds[str(name)].load()
    return loaded_kind


def load_context(
    path: str | Path,
    *also: type[Context],
    sections: Iterable[str],
    count: TokenCounter,
    from_text: Callable[[str], Context] | None = None,
) -> Context:
    """Load a context to start from: a JSON dump of any kind, or a playbook in the official text format.

    A playbook is adapted to the run: the task's ``sections`` come before its own, and its tokens are counted again,
    since the tokenizer may differ. Every change that reading a text needed is logged as a warning. ``from_text`` reads
    texts in another way. Raises ``DataError`` that names the file and, if known, the line.
    """
    path = Path(path)
    text = _read(path)
    try:
        if _is_json(text):
            context = restore(_record(text), *also)
            return context.fitted(sections, count) if isinstance(context, ContextValue) else context
        if from_text is not None:
            return from_text(text)
        playbook, notes = read_text(text, sections=sections, count=count)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    for note in notes:
        _warn(path, note)
    return playbook


def load_kind(kind: type[C], path: str, *, arena: Arena, required_by: str) -> C:
    """Load the context that a method starts from; ``required_by`` names the method in the error.

    Raises ``DataError`` if the file is damaged, ``ConfigError`` if it holds a context of another kind.
    """
    loaded = load_context(path, kind, sections=arena.sections, count=arena.counter("generator"))
    if not isinstance(loaded, kind):
        raise ConfigError(f"method.initial={path} holds no {kind.kind}; {required_by} starts from one")
    return loaded


@cache  # the runs of a sweep read the same file
def _warn(path: Path, note: str) -> None:
    _LOG.warning("%s, %s", path, note)


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{")


def _read(path: Path) -> str:
    absolute = path.absolute()
    try:
        data = CheckedFiles(absolute.parent.parent).read(f"{absolute.parent.name}/{absolute.name}")
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
        record: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise DataError(_describe_damage(text) or f"broken JSON: {error}") from error
    return record


def _describe_damage(text: str) -> str | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}: broken JSON: {error.msg}"
    except RecursionError:
        pass
    return None


def load(path: str | Path) -> Context:
    """Load a saved context: a file in ``contexts/`` of a run, or a playbook in the official text format.

    Raises ``DataError`` that names the file and, if known, the line.
    """
    return load_context(path, sections=(), count=estimate_tokens)


def official_text(context: Context) -> str | None:
    """Return a playbook in the text format of the authors' code, with counters; ``None`` for other contexts."""
    return context.official_text() if isinstance(context, HasBullets) else None


def system_prompt(context: Context) -> str:
    """Return a context as part of a system prompt, between tags of its kind; "" if it is empty.

    A playbook is written by sections and without counters; one of text keeps its headings, also those without bullets.
    """
    uses = context.uses if context.size and isinstance(context, ContextValue) else {}
    texts = {"playbook": context.prompt_text()} if isinstance(context, HasBullets) else context.render(NO_SAMPLE)
    shown_names = (name for name in texts if name in uses and texts[name] not in ("", NO_DEMONSTRATIONS))
    return "\n\n".join(f"{uses[name]}\n\n<{name}>\n{texts[name].strip()}\n</{name}>" for name in shown_names)
