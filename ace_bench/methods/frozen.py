"""Evaluates a saved context of any method without learning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ace_bench.contexts.base import ContextValue
from ace_bench.contexts.instruction import Instruction, first_instruction
from ace_bench.contexts.loading import kind_of, load_context
from ace_bench.contexts.selection import NearestTexts, SelectsNearest
from ace_bench.core.context import Context, HasBullets
from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.method import Arena
from ace_bench.core.settings import Text
from ace_bench.core.types import Sample
from ace_bench.methods.base import BaseMethod
from ace_bench.playbook.embeddings import Embedder
from ace_bench.playbook.playbook import Playbook


class Frozen(BaseMethod[Context]):
    """Starts from the context in file ``context`` and learns nothing, so that every mode evaluates that context.

    The kind of the context decides how samples are put to the model. With ``mode=evaluate`` the mode names the file. A
    context that shows each sample its nearest items finds them by ``embedder``.
    """

    draws_from_seed = False

    def __init__(self, *, context: Text | None, embedder: Embedder) -> None:
        if context is None:
            raise SettingError(
                "context is missing: give mode=evaluate mode.context=FILE, or method.context=FILE in another mode; "
                "method=base evaluates without a context"
            )
        self._file = context
        self._kind = kind_of(Path(context))
        generator = self._kind.generator if issubclass(self._kind, ContextValue) else None
        if generator is None:
            raise ConfigError(
                f"{context} holds a context of kind {self._kind.kind}; evaluate it with the method that made it"
            )
        self.generator = generator
        self._embedder = embedder
        self._nearest = NearestTexts(embedder)

    def start(self, arena: Arena) -> Context:
        """Return the context in the file; raises ``DataError`` if it is damaged."""
        return load_context(Path(self._file), sections=arena.sections, count=arena.counter("generator"))

    @property
    def context_file(self) -> str:
        """The file."""
        return self._file

    @property
    def embedders(self) -> Sequence[Embedder]:
        """The embedder, for contexts that select by similarity."""
        return (self._embedder,) if issubclass(self._kind, SelectsNearest) else ()

    def select(self, context: Context, sample: Sample) -> Context:
        """Return what the method that made the context shows for a sample."""
        return context.select(sample, self._nearest) if isinstance(context, SelectsNearest) else context

    def baseline(self, arena: Arena) -> Context:
        """Return the empty context of the kind, or the first instruction: ``mode.before=true`` compares with it."""
        if self._kind is Instruction:
            return first_instruction(arena)  # an agent's instruction holds its rules: without it there is no prompt
        return Playbook.start(arena.sections) if issubclass(self._kind, HasBullets) else self._kind()
