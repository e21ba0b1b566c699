"""Rules for contents and section names of a playbook."""

from __future__ import annotations

import re
import unicodedata

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
