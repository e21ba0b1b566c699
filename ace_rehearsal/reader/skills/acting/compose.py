"""Put a program together: a statement that does what the task asks, and before it all that it needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ace_rehearsal.reader.skills.acting.adapt import Filter
from ace_rehearsal.reader.skills.acting.statements import Statement, stems_of
from ace_rehearsal.reader.words import stem

_MISSING = 0.5
"""What a cue counts against a statement where the task does not speak of it; where it does, it counts 1 for it."""
_OTHERS = 0.6
"""What the words that no statement explains count for or against one, all together."""
_DOUBT = 0.4
"""What an entry without any trust loses: it may have been used in the wrong place."""
_MOST_TRIES = 300
"""Statements that are tried for one program: lessons that need each other in circles must not take for ever."""
_COMMON = frozenset(("phone", "supervisor"))
"""Apps that any task may need: they know people and passwords."""
_ASKING = frozenset(("count", "find", "how", "list", "name", "tell", "what", "when", "where", "which", "who", "whose"))


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """A task's words and the statements at hand."""

    question: str
    pool: tuple[Statement, ...]

    @property
    def asks(self) -> bool:
        """Whether the task wants to know something."""
        first = self.question.split(maxsplit=1)[:1]
        return bool(first) and (first[0].strip(",.:").lower() in _ASKING or self.question.rstrip().endswith("?"))

    def fit(self, statement: Statement) -> float:
        """How well a statement's cues fit the words of the task."""
        cues, others = statement.cues, statement.others
        score = len(cues & self.asked) - _MISSING * len(cues - self.asked)
        if others:
            score += _OTHERS * (len(others & self.asked) - len(others - self.asked)) / len(others)
        return score - _DOUBT * max(0.0, 1.0 - statement.trust)

    @cached_property
    def asked(self) -> frozenset[str]:
        """Stems of the words of the task."""
        return stems_of(self.question)

    @cached_property
    def ranked(self) -> tuple[Statement, ...]:
        """All statements, best first."""
        return tuple(sorted(self.pool, key=lambda statement: -self.fit(statement)))

    @cached_property
    def providers(self) -> Mapping[str, Sequence[Statement]]:
        """The statements that give a name, best first."""
        found: dict[str, list[Statement]] = {}
        for statement in self.ranked:
            for name in statement.gives:
                found.setdefault(name, []).append(statement)
        return found

    def programs(self, apps: Collection[str]) -> tuple[tuple[Statement, ...], ...]:
        """Return the programs that come into question, best first; one that needs other apps stands back."""
        found: list[tuple[float, tuple[Statement, ...]]] = []
        for goal in self.ranked:
            assembly = _Assembly(self.providers)
            if (goal.answers if self.asks else goal.acts) and self.fit(goal) > 0 and assembly.add(goal):
                program = tuple(assembly.program)
                foreign = {call.split(".")[0] for one in program for call in one.calls} - {*apps, *_COMMON}
                found.append((len(foreign) - self.fit(goal), program))
        return tuple(program for _, program in sorted(found, key=lambda item: item[0]))

    def filtered(self, chosen: Sequence[Statement], found: Iterable[Filter]) -> tuple[Statement, ...]:
        """Return a program with filters put in as soon as the lists they are for are there."""
        program = list(chosen)
        for one in found:
            place = next(n for n, statement in enumerate(program) if one.name in statement.gives) + 1
            assembly, tail = _Assembly(self.providers, program[:place]), program[place:]
            if all(assembly.provide(name) for name in sorted(one.needs)):
                head = [*assembly.program, one.statement]
                program = [*head, *(statement for statement in tail if statement not in head)]
        return tuple(program)


class _Assembly:
    """A program under way: each statement goes in after the best ones that give what it needs."""

    def __init__(self, providers: Mapping[str, Sequence[Statement]], program: Sequence[Statement] = ()):
        self.program = list(program)
        self._providers = providers
        self._tries = _MOST_TRIES

    def add(self, statement: Statement, above: tuple[Statement, ...] = ()) -> bool:
        """Put a statement in; without what it needs the program stays as it is. ``above`` are those that need it."""
        self._tries -= 1
        if statement in above or self._tries < 0:
            return False
        before = len(self.program)
        if all(self.provide(name, (*above, statement)) for name in sorted(statement.needs)):
            self.program.append(statement)
            return True
        del self.program[before:]
        return False

    def provide(self, name: str, above: tuple[Statement, ...] = ()) -> bool:
        """See to it that a name is given."""
        if any(name in known.gives for known in self.program):
            return True
        return any(self.add(one, above) for one in self._providers.get(name, ()))


def plural(word: str) -> str:
    """Return the usual plural of a noun."""
    return word if word.endswith("s") else f"{word}s"


def speaks_of(words: Iterable[str], asked: frozenset[str]) -> bool:
    """Whether a task speaks of all words."""
    return all(stem(word) in asked for word in words)
