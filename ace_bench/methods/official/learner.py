"""What the authors' two loops share: their settings, their playbook of text, and what a run asks of a method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ace_bench.contexts.loading import load_text_playbook
from ace_bench.contexts.playbook_text.dialects import Dialect, dialect_of
from ace_bench.contexts.playbook_text.text_playbook import TextPlaybook
from ace_bench.core.errors import SettingError
from ace_bench.core.method import Arena, Learning, Span, Workload, exactly
from ace_bench.core.settings import Count, Text
from ace_bench.core.types import GeneratorSpec, Labels
from ace_bench.methods.base import BaseMethod
from ace_bench.methods.role_calls import CURATOR, CURATOR_FIELDS, REFLECTOR, REFLECTOR_FIELDS
from ace_bench.methods.rounds import Rounds

_ROLES: Mapping[str, tuple[str, ...]] = MappingProxyType({REFLECTOR: (REFLECTOR,), CURATOR: (CURATOR,)})


@dataclass(frozen=True, kw_only=True)
class OfficialLearner(BaseMethod[TextPlaybook]):
    """A method that adapts the authors' text.

    ``token_budget`` is the size that the Curator's prompt names; nothing enforces it. ``initial`` is a saved text
    playbook or a text file to start from, ``None`` for one of headings only.
    """

    max_reflection_rounds: Count
    curator_every: Count
    token_budget: Count
    initial: Text | None

    generator = GeneratorSpec(template="generator", reply="json")

    def __post_init__(self) -> None:
        """Raise ``SettingError`` for a missing file."""
        if self.initial is not None and not Path(self.initial).is_file():
            raise SettingError(f"initial={self.initial} is not a file: give a saved playbook, or null")

    @property
    def rounds(self) -> Rounds:
        """How often a sample is tried again."""
        return Rounds(reflections=self.max_reflection_rounds, retries="auto")

    @property
    def extra_rollouts(self) -> int:
        """The rollouts of a sample that nothing is learnt from."""
        return 0

    def curations(self, reflections: int) -> Span:
        """Return how often a sample is curated that is reflected on so often."""
        return exactly(1)

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """Reflector and Curator."""
        return _ROLES

    def prompt_fields(self, inputs: frozenset[str], shown: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the two templates."""
        known = {REFLECTOR: REFLECTOR_FIELDS, CURATOR: CURATOR_FIELDS | {"operations"}}
        return {name: inputs | shown | fields for name, fields in known.items()}

    def start(self, arena: Arena) -> TextPlaybook:
        """Return the initial playbook, or one of the task's headings."""
        dialect, count = self.dialect(arena), arena.counter("generator")
        if self.initial is None:
            return TextPlaybook.start(arena.sections, dialect=dialect, count=count)
        return load_text_playbook(self.initial, dialect=dialect, count=count)

    def load(self, path: Path, like: TextPlaybook, arena: Arena) -> TextPlaybook:
        """Take a text as it is."""
        return load_text_playbook(path, dialect=like.dialect, count=arena.counter("generator"))

    def dialect(self, arena: Arena) -> Dialect:
        """Return how the task's playbook is written."""
        return dialect_of(arena.sections)

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return from no retry to all reflection rounds."""
        shown = arena.labels is not Labels.NONE and learning.split != "test"
        reflections, retries = self.rounds.limits(acts=learning.acts, shown=shown)
        each = exactly(learning.samples)
        curations = self.curations(reflections).times(exactly(1 / self.curator_every))
        return Workload(
            rollouts=Span(1, 1 + retries).times(each) + exactly(self.extra_rollouts).times(each),
            roles={REFLECTOR: Span(1, reflections).times(each), CURATOR: curations.times(each)},
        )
