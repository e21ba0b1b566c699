"""Votes and edits of users. Votes count like the Reflector's. A bullet's sources say who voted or edited, and when."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from ace_bench.core.errors import ConfigError
from ace_bench.core.prompts import estimate_tokens
from ace_bench.playbook.bullets import Bullet, clean, comparable, measure, tidy
from ace_bench.playbook.playbook import Playbook

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
    current, words = _find(playbook, bullet), clean(content)
    if not words:
        raise ConfigError(f"bullet {bullet} needs words; `ace-bench playbook forget` removes one")
    if twin := playbook.index.find_by_content(comparable(words), besides=(bullet,)):
        raise ConfigError(f"bullet {twin} already says exactly this")
    sources = tuple(dict.fromkeys((*current.sources, f"{by}#{bullet}")))
    edited = measure(replace(current, content=words, sources=sources), estimate_tokens)
    return playbook.with_index(playbook.index.changed(put=[edited]))


def _find(playbook: Playbook, bullet: str) -> Bullet:
    found = playbook.index.get(bullet)
    if found is None:
        raise ConfigError(f"there is no bullet {bullet}; `ace-bench playbook show` lists them")
    return found


def read_vote(source: str) -> tuple[str, str] | None:
    """Return who cast which vote if a bullet's source is one."""
    cast = _CAST.fullmatch(source)
    return (cast["by"], cast["vote"]) if cast else None
