"""A run's context after each step, rebuilt from its journal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from ace_bench.contexts.load import restore
from ace_bench.core.context import Context
from ace_bench.core.errors import DataError, StoreError
from ace_bench.report.evidence import read_steps, sharpest_fall
from ace_bench.store.files import write_files
from ace_bench.store.results import read_object


def history(folder: Path) -> Iterator[Context]:
    """Yield the context before the first step and after each one; raises ``StoreError``."""
    try:
        context = restore(read_object(folder, "contexts/initial.json"))
        yield context
        for step in read_steps(folder):
            context = context.patched(step.patch)
            if context.digest != step.digest:
                raise StoreError(f"step {step.index} in {folder} does not lead to its context; repeat the run")
            yield context
    except DataError as error:
        raise StoreError(f"{folder}: {error}; repeat the run") from error


def write_around_fall(folder: Path) -> bool:
    """Write the contexts before and after the step that removed most tokens (paper, figure 2).

    Returns false if no step removed any. The files are ``contexts/before_fall.json`` and ``after_fall.json``. Raises
    ``StoreError`` and ``FileUnwritable``.
    """
    step = sharpest_fall([step.context_tokens for step in read_steps(folder)])
    if step is None:
        return False
    around = islice(history(folder), step, step + 2)
    names = (folder / "contexts" / f"{name}.json" for name in ("before_fall", "after_fall"))
    contents = {path: msgspec.json.encode(context.dump()) for path, context in zip(names, around, strict=True)}
    write_files(contents)
    return True
