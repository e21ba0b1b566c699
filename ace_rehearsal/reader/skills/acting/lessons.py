"""Lessons on acting: snippets of code with the words that call for them, and slots. Worded and read again.

A snippet is one statement. The words it speaks of itself count most; those of the task that no other statement
explains count less. A slot is a name whose value a task's own words give.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ace_rehearsal.reader.skills.acting.statements import Statement, read_statements
from ace_rehearsal.reader.skills.base import Lesson
from ace_rehearsal.reader.words import stem

_SNIPPET = re.compile(
    r'For (?:"(?P<spoken>[^"\n]{1,400})"|whatever needs it)(?: \(as in "(?P<other>[^"\n]{1,600})"\))?'
    r"(?: \[(?P<note>[^`\n\]]{1,300})\])?:[ ]?"
    r"(?:`(?P<line>[^`\n]{1,1000})`|\n[ ]*```python\n(?P<block>.{1,4000}?)\n[ ]*```)",
    re.DOTALL,
)
_SLOT = re.compile(
    r'`(?P<name>\w{1,40})` is the word of the task at "\[\]" in "(?P<pattern>[^"\n]{1,100})"\.'
    r"|`(?P<quoted>\w{1,40})` is the text in quotation marks after \"(?P<before>[^\"\n]{0,40})\"\."
)
_LONGEST_NOTE = 300
_FENCE = re.compile(r"^[ ]*```(?:python)?[ ]*\n(.*?)\n[ ]*```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A name whose value stands in tasks: at "[]" in ``pattern`` or, where that is "", quoted after ``before``."""

    name: str
    pattern: str = ""
    before: str = ""
    owner: str = ""

    @property
    def worded(self) -> str:
        """The lesson as a playbook holds it."""
        if self.pattern:
            return f'`{self.name}` is the word of the task at "[]" in "{self.pattern}".'
        return f'`{self.name}` is the text in quotation marks after "{self.before}".'

    def value(self, question: str) -> str | None:
        """Find the value in a task; ``None`` where it does not fit."""
        if not self.pattern:
            near = re.search(rf'\b{re.escape(self.before)} "([^"\n]+)"', question, re.IGNORECASE)
            quoted = re.findall(r'"([^"\n]+)"', question)
            return near[1] if near else quoted[0] if len(quoted) == 1 else None
        for pattern in (self.pattern, self.pattern.rpartition(" ")[0]):
            if "[]" in pattern.strip() and " " in pattern:
                marked = re.escape(pattern).replace(r"\[\]", r"([\w.-]+?)")
                found = re.search(rf"(?<!\w){marked}(?!\w)", question, re.IGNORECASE)
                if found:
                    return found[1]
        return None


@dataclass(frozen=True, kw_only=True)
class Taught:
    """What lessons teach."""

    statements: tuple[Statement, ...] = ()
    slots: tuple[Slot, ...] = ()

    def and_then(self, other: Taught) -> Taught:
        """Return both, these first."""
        return Taught(statements=self.statements + other.statements, slots=self.slots + other.slots)


def word_snippet(statement: Statement, spoken: Sequence[str], other: Sequence[str]) -> str:
    """Word a snippet as a playbook holds it; quotes and backticks give way in what stands between them."""
    when = f'"{", ".join(spoken)}"' if spoken else "whatever needs it"
    further = f' (as in "{", ".join(other)}")' if other else ""
    note = re.sub(r"[`\n\[\]]+", " ", statement.note).strip(" .")[:_LONGEST_NOTE]
    head = f"For {when}{further}{f' [{note}]' if note else ''}:"
    if "\n" in statement.code or "`" in statement.code:
        return f"{head}\n```python\n{statement.code}\n```"
    return f"{head} `{statement.code}`"


@lru_cache(maxsize=8_192)
def read_taught(content: str) -> Taught:
    """Read all lessons of a text: snippets, slots, and code that stands in it without words that call for it."""
    statements = [part for match in _SNIPPET.finditer(content) for part in _statements(match)]
    free = (part for match in _FENCE.finditer(_SNIPPET.sub("", content)) for part in read_statements(match[1]))
    statements += [part for part in free if not part.completes and not part.acts]
    slots = [
        Slot(name=m["name"], pattern=m["pattern"]) if m["name"] else Slot(name=m["quoted"], before=m["before"])
        for m in _SLOT.finditer(content)
    ]
    return Taught(statements=tuple(statements), slots=tuple(slots))


def _statements(match: re.Match[str]) -> tuple[Statement, ...]:
    cues, others = (
        frozenset(stem(word) for word in (match[group] or "").split(", ") if word) for group in ("spoken", "other")
    )
    code = match["line"] or textwrap.dedent(match["block"])
    return tuple(
        replace(part, cues=cues, others=others - cues, note=match["note"] or "") for part in read_statements(code)
    )


def gather(lessons: Sequence[Lesson]) -> Taught:
    """All that the entries of a context teach, each with its entry."""
    taught = [(lesson, read_taught(lesson.content)) for lesson in lessons]
    return Taught(
        statements=tuple(
            replace(part, owner=lesson.id, trust=lesson.trust) for lesson, one in taught for part in one.statements
        ),
        slots=tuple(replace(slot, owner=lesson.id) for lesson, one in taught for slot in one.slots),
    )


def spoken_lessons(text: str) -> tuple[str, ...]:
    """Lessons of a text in their own wording, each once."""
    found = sorted((*_SNIPPET.finditer(text), *_SLOT.finditer(text)), key=lambda match: match.start())
    return tuple(dict.fromkeys(_plain(match) for match in found))


def _plain(match: re.Match[str]) -> str:
    head, fence, block = match[0].partition("\n")
    return head + fence + textwrap.dedent(block)


def same_lesson(first: str, second: str) -> bool:
    """Whether two texts teach the same: a statement of the same code, or a slot of the same name and place."""
    one, other = read_taught(first), read_taught(second)
    return any(a.code == b.code for a in one.statements for b in other.statements) or any(
        a == b for a in one.slots for b in other.slots
    )
