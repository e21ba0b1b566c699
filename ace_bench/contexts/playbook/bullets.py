"""One entry of a playbook (paper, section 3.1: metadata and content), and the rules for contents and section names."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import Record

T = TypeVar("T")

OTHERS = "others"
"""The section for bullets that fit no other (official code: OTHERS)."""

_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_UNPRINTABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff]")
_NOT_WORD = re.compile(r"[\W_]+")
_LONGEST_WORD_SLUG = 6


def tidy(text: str) -> str:
    """Make every line break a newline and drop control characters, byte order marks and lone surrogates."""
    return _UNPRINTABLE.sub("", _BREAKS.sub("\n", text))


def clean(text: str) -> str:
    """Return ``text`` as a valid bullet content: tidied and stripped. Idempotent."""
    return tidy(text).strip()


def comparable(text: str) -> str:
    """Fold case and white space; contents with equal results are exact duplicates."""
    return " ".join(text.casefold().split())


def section_name(name: str) -> str:
    """Normalise a section's name: ``STRATEGIES & INSIGHTS:`` -> ``strategies_and_insights``.

    Case, spaces, hyphens and punctuation are ignored; ``&`` becomes "and". The result may be empty.
    """
    return _NOT_WORD.sub("_", name.casefold().replace("&", " and ")).strip("_")


def slug(section: str) -> str:
    """Return the prefix of the ids of a section's bullets: initials, or the word itself if there is only one."""
    ascii_name = unicodedata.normalize("NFKD", section).encode("ascii", "ignore").decode()
    words = [word for word in ascii_name.split("_") if word]
    letters = words[0][:_LONGEST_WORD_SLUG] if len(words) == 1 else "".join(word[0] for word in words)
    return letters if letters[:1].isalpha() else f"s{letters}"


BEFORE_FIRST_STEP = -1
"""Value of ``created`` and ``changed`` for bullets that come from a file and not from a step of this run."""

_Count = Annotated[int, msgspec.Meta(ge=0)]
_ID = re.compile(r"[^\s\[\]]*[^\s\[\]0-9]([0-9]{1,18})")


class _Once(Generic[T]):
    """A property of a bullet that is computed once and kept in the slot of its name, with an underscore."""

    def __init__(self, compute: Callable[[Any], T]):
        self._compute, self._slot = compute, f"_{compute.__name__}"

    def __get__(self, bullet: Any, owner: type) -> T:
        try:
            known: T = getattr(bullet, self._slot)
        except AttributeError:
            known = self._compute(bullet)
            object.__setattr__(bullet, self._slot, known)
        return known


class _Kept:
    """Slots for what is computed once: a large playbook has no room for a dict in each bullet."""

    __slots__ = ("_content_hash", "_fingerprint", "_number")


@dataclass(frozen=True, kw_only=True, slots=True)
class Bullet(_Kept):
    """One lesson. ``content`` is clean text (see ``wording.clean``) and may have several lines.

    ``created`` is the step that added the bullet and ``changed`` the last step that changed content or counters;
    ``sources`` are the samples that led to the content. ``tokens`` is the size of ``line`` with its line break, counted
    when the content is set (``measured``).
    """

    id: str
    section: str
    content: str
    helpful: _Count = 0
    harmful: _Count = 0
    neutral: _Count = 0
    created: int
    changed: int
    sources: tuple[str, ...] = ()
    tokens: _Count

    @_Once
    def number(self) -> int:
        """The number in the id, which orders bullets from old to new."""
        number = number_of(self.id)
        if number is None:
            raise ValueError(f"bullet id {self.id!r} does not end in a number")
        return number

    @property
    def line(self) -> str:
        """The bullet as prompts show it: ``[id] (section) content``, without counters (they change too often).

        Further lines of the content are indent, so that a content cannot imitate a bullet or the tag that closes the
        playbook in a prompt.
        """
        return f"[{self.id}] ({self.section}) {indent(self.content)}"

    @property
    def counter_line(self) -> str:
        """``id: helpful 2, neutral 1``: what is not zero; empty while all counters are zero.

        Votes change often and stand behind a playbook that grows, so servers read them anew: they are short.
        """
        votes = {"helpful": self.helpful, "harmful": self.harmful, "neutral": self.neutral}
        cast = ", ".join(f"{tag} {number}" for tag, number in votes.items() if number)
        return f"{self.id}: {cast}" if cast else ""

    @property
    def counters(self) -> str:
        """The three counters in words."""
        return f"helpful {self.helpful}, harmful {self.harmful}, neutral {self.neutral}"

    @property
    def utility(self) -> int:
        """Helpful minus harmful votes; pruning removes the lowest first."""
        return self.helpful - self.harmful

    @property
    def comparable(self) -> str:
        """The content with case and white space folded."""
        return comparable(self.content)

    @_Once
    def content_hash(self) -> int:
        """A hash of ``comparable``, for this process alone: a large playbook is too large to keep the text twice."""
        return hash(self.comparable)

    @_Once
    def fingerprint(self) -> bytes:
        """SHA-256 of all fields; cached, because versions of a playbook share most bullets."""
        return hashlib.sha256(msgspec.json.encode(list(self.record().values()))).digest()

    def record(self) -> Record:
        """All fields as a JSON object."""
        return {
            "id": self.id,
            "section": self.section,
            "content": self.content,
            "helpful": self.helpful,
            "harmful": self.harmful,
            "neutral": self.neutral,
            "created": self.created,
            "changed": self.changed,
            "sources": list(self.sources),
            "tokens": self.tokens,
        }


def number_of(bullet_id: str) -> int | None:
    """Return the number at the end of an id; ``None`` if there is none."""
    match = _ID.fullmatch(bullet_id)
    return int(match[1]) if match else None


def indent(content: str) -> str:
    """Indent all lines of a content but the first."""
    return content.replace("\n", "\n  ")


def measure(bullet: Bullet, count: TokenCounter) -> Bullet:
    """Return the bullet with its tokens counted; call it whenever a content is set."""
    return replace(bullet, tokens=count(f"{bullet.line}\n"))


def join_bullets(bullets: Sequence[Bullet], *, step: int) -> Bullet:
    """Merge bullets, oldest first, into the oldest: its id, section and content, all counters and all sources."""
    oldest = bullets[0]
    sources = dict.fromkeys(source for bullet in bullets for source in bullet.sources)
    return replace(
        oldest,
        helpful=sum(bullet.helpful for bullet in bullets),
        harmful=sum(bullet.harmful for bullet in bullets),
        neutral=sum(bullet.neutral for bullet in bullets),
        changed=step,
        sources=tuple(sources),
    )
