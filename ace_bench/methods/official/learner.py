"""What the authors' two loops share: their settings, how they read replies, and what a run asks of a method."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from ace_bench.core.backbones import Lm
from ace_bench.core.errors import ConfigError, RolloutFault, SettingError
from ace_bench.core.method import Arena, ContextUpdate, Learning, Span, Workload, exactly
from ace_bench.core.replies import ask_once
from ace_bench.core.settings import Count, Text
from ace_bench.core.types import Fault, GeneratorSpec, Message, Record, Rollout, Step
from ace_bench.methods.base import (
    CURATOR,
    CURATOR_FIELDS,
    REFLECTOR,
    REFLECTOR_FIELDS,
    BaseMethod,
    RoleCall,
    Rounds,
    ask_role,
    curator_fields,
)
from ace_bench.methods.official.playbook import TextPlaybook, load_text_playbook
from ace_bench.playbook.authors_text import Dialect, dialect_of, section_key

R = TypeVar("R")

_TAGS = '"bullet_tags"'
_FENCED = re.compile(r"```json(.*?)```", re.DOTALL | re.IGNORECASE)
_TOKEN = re.compile(r'[{}]|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]]")


def ask_for_operations(lm: Lm, messages: Sequence[Message]) -> list[Record]:
    """Ask the finance code's Curator once; a reply that their code drops is a fault of the model."""
    try:
        return official_operations(ask_once(lm, messages))
    except ValueError as error:
        fault = Fault(owner="model", kind="unreadable_reply", message=f"the official code drops this reply: {error}")
        raise RolloutFault(fault) from error


def ask_for_blank_or_text(lm: Lm, messages: Sequence[Message]) -> str:
    """Ask a role of the AppWorld code. A blank reply also counts as a reply."""
    try:
        return lm(messages).as_written
    except RolloutFault as error:
        if error.blank is None:
            raise
        return error.blank


def official_tags(text: str) -> list[Any]:
    """Return the list of tags in the Reflector's reply as it is; empty where it cannot be read.

    It is the first list after the name of the field. Its end is found by counting brackets, also those in strings.
    """
    marker = text.find(_TAGS)
    start = text.find("[", marker) if marker >= 0 else -1
    if start < 0:
        return []
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] == "[" else -1
        if depth == 0:
            try:
                tags: list[Any] = json.loads(text[start : bracket.end()])
            except (ValueError, RecursionError):
                return []
            return tags
    return []


def official_operations(text: str) -> list[Record]:
    """Read the Curator's operations, of all types; raises ``ValueError`` with the reason to drop the whole reply.

    Whether a section or content can be used is decided where the operations are applied.
    """
    try:
        reply = next(_objects(text), None)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it cannot be read: {error}") from error
    if not isinstance(reply, dict) or not reply:
        raise ValueError("it holds no JSON object")
    for name, kind in (("reasoning", str), ("operations", list)):
        if not isinstance(reply.get(name), kind):
            raise ValueError(f"its field {name} is {'missing' if name not in reply else 'not a ' + kind.__name__}")
    operations: list[Record] = reply["operations"]
    for operation in operations:
        _check(operation)
    return operations


def agent_operations(text: str, sections: Collection[str]) -> list[Record]:
    """Read the Curator's operations as the authors' AppWorld code does.

    An operation of another type than ADD drops the whole reply there, and one for an unknown section is left out.
    Raises ``ValueError`` as ``official_operations``.
    """
    operations = official_operations(text)
    for operation in operations:
        if operation["type"] != "ADD":
            raise ValueError(f"an operation is of type {operation['type']!r}, and only ADD is supported")
    return [row for row in operations if section_key(str(row["section"]).strip(), "appworld") in sections]


def _check(operation: Any) -> None:
    if not isinstance(operation, dict):
        raise ValueError("an operation is not an object")
    if "type" not in operation:
        raise ValueError("an operation has no type")
    missing = [name for name in ("section", "content") if name not in operation]
    if operation["type"] == "ADD" and missing:
        raise ValueError(f"an ADD has no {' and no '.join(missing)}")


def _objects(text: str) -> Iterator[Any]:
    """Yield the JSON values of a reply: the whole text, fenced blocks, then text in balanced braces."""
    for candidate in _candidates(text):
        try:
            yield json.loads(candidate.strip())
        except json.JSONDecodeError:
            continue


def _candidates(text: str) -> Iterator[str]:
    yield text
    yield from _FENCED.findall(text)
    start, depth = -1, 0
    brace = text.find("{")
    while brace >= 0:
        start, depth = brace, 0
        for token in _TOKEN.finditer(text, brace):
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if depth == 0:
                yield text[start : token.end()]
                brace = text.find("{", token.end())
                break
        else:
            return


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

    generator = GeneratorSpec(template="generator", answer_format="json")
    draws_from_seed = False
    lesson: ClassVar[type[OfficialLesson]]
    """How a step learns."""
    batches: ClassVar[str]
    """What the authors' code has in place of a batch of several samples."""

    def __post_init__(self) -> None:
        """Raise ``SettingError`` for a missing file."""
        if self.initial is not None and not Path(self.initial).is_file():
            raise SettingError(f"initial={self.initial} is not a file: give a saved playbook, or null")

    def check_batch(self, size: int) -> None:
        """Refuse a batch of several samples."""
        if size > 1:
            rule = "protocol=official method=ace learns from one sample a step"
            raise ConfigError(f"mode.batch_size={size}: {rule}; {self.batches}")

    @property
    def rounds(self) -> Rounds:
        """How often a sample is tried again."""
        return Rounds(reflections=self.max_reflection_rounds, retries="auto")

    @property
    def extra_rollouts(self) -> int:
        """The rollouts of a sample that only measure."""
        return 0

    def curations(self, reflections: int) -> Span:
        """Return how often a sample is curated that is reflected on so often."""
        return exactly(1)

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """Reflector and Curator."""
        return _ROLES

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the two templates."""
        role_fields = {REFLECTOR: REFLECTOR_FIELDS, CURATOR: CURATOR_FIELDS}
        return {name: inputs | context_fields | fields for name, fields in role_fields.items()}

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

    def update(
        self, context: TextPlaybook, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[TextPlaybook]:
        """Learn from one sample after another."""
        lesson = self.lesson(method=self, arena=arena, step=step, playbook=context)
        for rollout in rollouts:
            lesson.learn(rollout)
        return ContextUpdate(context=lesson.playbook, events=tuple(lesson.events))

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return from no retry to all reflection rounds."""
        reflections, retries = self.rounds.limits_in(arena, learning)
        per_sample = exactly(learning.samples)
        curations = self.curations(reflections).times(exactly(1 / self.curator_every))
        return Workload(
            rollouts=Span(1, 1 + retries).times(per_sample) + exactly(self.extra_rollouts).times(per_sample),
            roles={REFLECTOR: Span(1, reflections).times(per_sample), CURATOR: curations.times(per_sample)},
        )


@dataclass(kw_only=True)
class OfficialLesson(ABC):
    """Learns from the samples of a step; the result is in ``playbook``, with ``events`` for the journal."""

    method: OfficialLearner
    arena: Arena
    step: Step
    playbook: TextPlaybook
    events: list[Record] = field(default_factory=list)

    @abstractmethod
    def learn(self, first: Rollout) -> None:
        """Learn from a sample by its first rollout."""

    def ask(  # noqa: PLR0913 - who asks whom for what
        self,
        role: str,
        rollout: Rollout,
        read: Callable[[Lm, Sequence[Message]], R],
        fields: Callable[[TextPlaybook], Record],
        *,
        session: str,
        reflection: str | None,
        attempted_under: TextPlaybook | None = None,
    ) -> R | None:
        """Ask a role about a rollout and return the result of ``read``, or ``None`` if the model fails."""
        call = RoleCall(
            arena=self.arena,
            role=role,
            template=role,
            session=session,
            rollout=rollout,
            playbook=self.playbook,
            attempted_under=attempted_under,
            reflection=reflection,
            fields=fields,
        )
        reply, events = ask_role(role, call, lambda shown: read(shown.lm, shown.messages))
        self.note(rollout, *events)
        return reply

    def note(self, rollout: Rollout, *events: Record) -> None:
        """Note events about a sample."""
        self.events += [{"sample": rollout.sample.id, **event} for event in events]

    def curator_fields(self, step: int, total: int, reflection: str) -> Record:
        """Return what the Curator is shown in the ``step`` of all, counted from 0."""
        budget, sections = self.method.token_budget, self.arena.sections
        return curator_fields(
            self.playbook, sections, (step + 1, total), budget, reflection=reflection, operations=["ADD"]
        )
