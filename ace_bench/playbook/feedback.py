"""Votes and edits of users. Votes count like the Reflector's. A bullet's sources say who voted or edited."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from ace_bench.core.errors import ConfigError
from ace_bench.core.prompts import estimate_tokens
from ace_bench.playbook.bullets import (
    BEFORE_FIRST_STEP,
    Bullet,
    clean,
    comparable,
    measure,
    section_name,
    slug,
    tidy,
)
from ace_bench.playbook.playbook import MAX_NUMBER, Playbook

Vote = Literal["helpful", "harmful", "neutral"]

_NAME = re.compile(r"[^\s@#]+")
_CAST = re.compile(r"(?P<by>[^\s@#]+)@\d{4}-\d\d-\d\dT\S+ (?P<vote>helpful|harmful|neutral)(?: .*)?")


def give_feedback(playbook: Playbook, bullet: str, *, vote: Vote, by: str = "user", note: str = "") -> Playbook:
    """Return the playbook with one more vote on a bullet; ``NAME@TIME VOTE NOTE`` joins the bullet's sources.

    Refinement uses the vote: enough harmful votes remove a bullet, and pruning removes the least useful first. Raises
    ``ConfigError`` for an unknown bullet, and a name with a blank, @ or #.
    """
    current = _find(playbook, bullet)
    if not _NAME.fullmatch(by):
        raise ConfigError(f"{by!r} is not a name without blanks, @ and #")
    cast = " ".join(f"{by}@{datetime.now(UTC).isoformat()} {vote} {tidy(note)}".split())
    voted = replace(current, sources=(*current.sources, cast), **{vote: getattr(current, vote) + 1})
    return playbook.with_index(playbook.index.changed(put=[voted]))


def edit_bullet(playbook: Playbook, bullet: str, *, content: str, by: str = "user") -> Playbook:
    """Return the playbook with other words in a bullet, which keeps its counters; ``NAME#ID`` joins its sources.

    Raises ``ConfigError`` for an unknown bullet, no words, and the words of another bullet.
    """
    current, words = _find(playbook, bullet), _words(playbook, content, besides=(bullet,))
    sources = tuple(dict.fromkeys((*current.sources, f"{by}#{bullet}")))
    edited = measure(replace(current, content=words, sources=sources), estimate_tokens)
    return playbook.with_index(playbook.index.changed(put=[edited]))


def add_bullet(playbook: Playbook, *, section: str, content: str, by: str = "user") -> Playbook:
    """Return the playbook with a new bullet, and with its section if that is new; ``NAME#ID`` is its source.

    Raises ``ConfigError`` for no words, the words of another bullet, and no name of a section.
    """
    name, words, number = section_name(section), _words(playbook, content), playbook.next_number
    if not name:
        raise ConfigError("a bullet needs a section; name one in letters")
    if number > MAX_NUMBER:
        raise ConfigError("the playbook has no number left for another bullet")
    bullet_id = f"{slug(name)}-{number:05d}"
    at, source = BEFORE_FIRST_STEP, f"{by}#{bullet_id}"
    bullet = Bullet(id=bullet_id, section=name, content=words, created=at, changed=at, sources=(source,))
    sections = tuple(dict.fromkeys((*playbook.sections, name)))
    index = playbook.index.changed(put=[measure(bullet, estimate_tokens)])
    return playbook.with_index(index, sections=sections, next_number=number + 1)


def remove_bullet(playbook: Playbook, bullet: str) -> Playbook:
    """Return the playbook without a bullet. Raises ``ConfigError`` for an unknown one."""
    return playbook.with_index(playbook.index.changed(gone=[_find(playbook, bullet).id]))


def put_back(playbook: Playbook, bullet: Bullet) -> Playbook:
    """Return the playbook with a bullet that was removed. Raises ``ConfigError`` if it is there."""
    if bullet.id in playbook.index:
        raise ConfigError(f"bullet {bullet.id} is in the playbook")
    _words(playbook, bullet.content)
    return playbook.with_index(playbook.index.changed(put=[bullet]))


def _words(playbook: Playbook, content: str, besides: Collection[str] = ()) -> str:
    """Return a content as a bullet has it. Raises ``ConfigError`` if it is empty or another bullet's."""
    words = clean(content)
    if not words:
        raise ConfigError("a bullet needs words; remove it if it should say nothing")
    if twin := playbook.index.find_by_content(comparable(words), besides=besides):
        raise ConfigError(f"bullet {twin} already says exactly this")
    return words


def _find(playbook: Playbook, bullet: str) -> Bullet:
    found = playbook.index.get(bullet)
    if found is None:
        raise ConfigError(f"there is no bullet {bullet}; `ace-bench playbook show` lists them")
    return found


def read_vote(source: str) -> tuple[str, str] | None:
    """Return who cast which vote if a bullet's source is one."""
    cast = _CAST.fullmatch(source)
    return (cast["by"], cast["vote"]) if cast else None
