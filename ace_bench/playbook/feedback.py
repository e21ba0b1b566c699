"""Votes of users on bullets. They count like the Reflector's, and the bullet's sources say who cast them, and when."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from ace_bench.core.errors import ConfigError
from ace_bench.playbook.bullets import tidy
from ace_bench.playbook.playbook import Playbook

Vote = Literal["helpful", "harmful", "neutral"]

_NAME = re.compile(r"[^\s@#]+")
_CAST = re.compile(r"(?P<by>[^\s@#]+)@\d{4}-\d\d-\d\dT\S+ (?P<vote>helpful|harmful|neutral)(?: .*)?")


def give_feedback(playbook: Playbook, bullet: str, *, vote: Vote, by: str = "user", note: str = "") -> Playbook:
    """Return the playbook with one more vote on a bullet; ``NAME@TIME VOTE NOTE`` joins the bullet's sources.

    Refinement uses the vote: enough harmful votes remove a bullet, and pruning removes the least useful first. Raises
    ``ConfigError`` for an unknown bullet, and a name with a blank, @ or #.
    """
    current = playbook.index.get(bullet)
    if current is None:
        raise ConfigError(f"there is no bullet {bullet}; `ace-bench playbook show` lists them")
    if not _NAME.fullmatch(by):
        raise ConfigError(f"{by!r} is not a name without blanks, @ and #")
    cast = " ".join(f"{by}@{datetime.now(UTC).isoformat()} {vote} {tidy(note)}".split())
    voted = replace(current, sources=(*current.sources, cast), **{vote: getattr(current, vote) + 1})
    return playbook.with_index(playbook.index.changed(put=[voted]))


def read_vote(source: str) -> tuple[str, str] | None:
    """Return who cast which vote if a bullet's source is one."""
    cast = _CAST.fullmatch(source)
    return (cast["by"], cast["vote"]) if cast else None
