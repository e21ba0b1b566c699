"""Finds bullets to look at before a playbook is shared: repetitions, contradictions, leaks, and what is too large."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook.embeddings import Embedder
from ace_bench.contexts.playbook.playbook import Playbook

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_MARKED = re.compile(r"`[^`]+`|\"[^\"]+\"|\b\d[\d.,]*\b")
_NEGATIONS = (
    *("not", "no", "never", "without", "don't", "doesn't", "cannot", "can't", "avoid"),
    *("neither", "nor", "isn't", "aren't"),
)
_NEGATING = frozenset((*_NEGATIONS, "do", "does"))
_PAIRS = (
    *(("always", "never"), ("include", "exclude"), ("before", "after"), ("first", "last"), ("increase", "decrease")),
    *(("add", "remove"), ("more", "less"), ("true", "false"), ("yes", "no"), ("allow", "forbid"), ("above", "below")),
    *(("ascending", "descending"), ("minimum", "maximum"), ("start", "end"), ("upper", "lower")),
)
_OPPOSITES: Mapping[str, str] = MappingProxyType({one: other for pair in _PAIRS for one, other in (pair, pair[::-1])})
_WINDOW = 8
"""Adjacent words of a sample that a bullet must repeat, beside its answer, to count as a leak."""
_SHORTEST_ANSWER = 2
_BLOCK = 512


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding of ``kind`` repetition, contradiction, leak, harmful or size; ``bullets`` are ids, maybe none."""

    kind: str
    bullets: tuple[str, ...]
    message: str


@dataclass(frozen=True, kw_only=True)
class Solved:
    """A sample with its reference answer, as adaptation saw it."""

    sample: str
    split: str
    text: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class Limits:
    """``similar`` is the cosine from which two bullets are compared; ``None`` of a size means no limit."""

    similar: float = 0.85
    tokens: int | None = None
    bullet_tokens: int | None = None


def lint(book: Playbook, *, embedder: Embedder, limits: Limits, solved: Sequence[Solved] = ()) -> list[Finding]:
    """Check a playbook. ``solved`` are samples that it must not repeat.

    Repetitions and contradictions are pairs of similar bullets. Two bullets may contradict each other if they differ
    in a negation or an opposite, or are alike but for a value they mark (quoted, in backticks, or a number). It is a
    hint for a reader: bullets on the same matter in other words are not found.
    """
    return [
        *_pairs(book.bullets, embedder, limits.similar),
        *find_leaks(book, solved),
        *_find_harmful(book),
        *_sizes(book, limits),
    ]


def _pairs(bullets: Sequence[Bullet], embedder: Embedder, similar: float) -> Iterator[Finding]:
    for first, second in _find_similar(bullets, embedder, similar):
        ids = (first.id, second.id)
        reason = _contradiction(first.content, second.content)
        if reason:
            yield Finding(kind="contradiction", bullets=ids, message=f"may contradict each other: {reason}")
        elif _join_words(first.content) == _join_words(second.content):
            yield Finding(kind="repetition", bullets=ids, message="say the same in the same words")


def _find_similar(bullets: Sequence[Bullet], embedder: Embedder, similar: float) -> Iterator[tuple[Bullet, Bullet]]:
    """Yield pairs alike but for marked values, negations and opposites, older bullets first."""
    masked = [_without_polarity(_MARKED.sub("#", bullet.content)) for bullet in bullets]
    rows = embedder.embed(masked) if bullets else np.zeros((0, 1), dtype=np.float32)
    for start in range(0, len(bullets), _BLOCK):  # not the whole square at once
        close = rows[start : start + _BLOCK] @ rows.T >= similar
        for row, column in np.argwhere(close).tolist():
            if start + row < column:
                yield bullets[start + row], bullets[column]


def _without_polarity(text: str) -> str:
    words = (word for word in _WORD.findall(text.casefold()) if word not in _NEGATING or word in _OPPOSITES)
    return " ".join(min(word, _OPPOSITES.get(word, word)) for word in words)


def _contradiction(one: str, other: str) -> str:
    """Return why two similar contents may contradict each other, "" if nothing says so."""
    words = [_WORD.findall(text.casefold()) for text in (one, other)]
    only = set(words[0]) - set(words[1]), set(words[1]) - set(words[0])
    for word in only[0]:
        if len(only[0]) == len(only[1]) == 1 and _OPPOSITES.get(word) in only[1]:
            return f"{word} against {_OPPOSITES[word]}"
    negations = [sum(word in _NEGATIONS for word in some) for some in words]
    if negations[0] % 2 != negations[1] % 2 and set(words[0]) - _NEGATING == set(words[1]) - _NEGATING:
        return "one negates the other"
    marked = [_MARKED.findall(text) for text in (one, other)]
    if _MARKED.sub("#", one).casefold() == _MARKED.sub("#", other).casefold() and len(marked[0]) > 1:
        differing = [place for place, (left, right) in enumerate(zip(*marked, strict=True)) if left != right]
        if len(differing) == 1:  # the same condition with another value
            place = differing[0]
            return f"{marked[0][place]} against {marked[1][place]}"
    return ""


def _join_words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def find_leaks(book: Playbook, solved: Iterable[Solved]) -> Iterator[Finding]:
    """Find bullets that repeat eight adjacent words of a sample together with its answer."""
    windows: dict[tuple[str, ...], list[Solved]] = {}
    for one in solved:
        if len(_join_words(one.answer)) >= _SHORTEST_ANSWER:
            for window in _windows(one.text):
                windows.setdefault(window, []).append(one)
    for bullet in book.bullets:
        text = f" {_join_words(bullet.content)} "
        hits = {one.sample: one for window in _windows(bullet.content) for one in windows.get(window, ())}
        for one in hits.values():
            # A question may have several answers, separated by commas.
            answers = [_join_words(part) for part in (one.answer, *one.answer.split(","))]
            if any(f" {answer} " in text for answer in answers if len(answer) >= _SHORTEST_ANSWER):
                message = f"repeats the {one.split} sample {one.sample} with its answer"
                yield Finding(kind="leak", bullets=(bullet.id,), message=message)


def _windows(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    return (tuple(words[place : place + _WINDOW]) for place in range(len(words) - _WINDOW + 1))


def _find_harmful(book: Playbook) -> Iterator[Finding]:
    for bullet in book.bullets:
        if bullet.harmful > bullet.helpful:
            message = f"has {bullet.harmful} harmful and {bullet.helpful} helpful votes"
            yield Finding(kind="harmful", bullets=(bullet.id,), message=message)


def _sizes(book: Playbook, limits: Limits) -> Iterator[Finding]:
    if limits.tokens is not None and book.tokens > limits.tokens:
        yield Finding(kind="size", bullets=(), message=f"the playbook has {book.tokens:,} tokens of {limits.tokens:,}")
    for bullet in book.bullets:
        if limits.bullet_tokens is not None and bullet.tokens > limits.bullet_tokens:
            message = f"has {bullet.tokens:,} tokens of {limits.bullet_tokens:,}"
            yield Finding(kind="size", bullets=(bullet.id,), message=message)
