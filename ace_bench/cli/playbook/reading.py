"""Reads the playbook that a command line names."""

from __future__ import annotations

from pathlib import Path

from ace_bench.contexts.loading import load
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.text_format import read_text
from ace_bench.core.context import HasBullets
from ace_bench.core.errors import DataError
from ace_bench.core.prompts import estimate_tokens


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
