"""Large playbooks, to measure latency with."""

from __future__ import annotations

import random

from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook.playbook import Playbook

_SECTION = "others"
_WORDS = 22
_RARE = 0.1
"""Share of words that few bullets have, such as names and numbers."""


def filled(playbook: Playbook, size: int) -> Playbook:
    """Return the playbook with bullets of its own words in random order, and some rare ones, up to ``size``."""
    draw = random.Random(0)
    words = [word for bullet in playbook.bullets for word in bullet.content.split()]
    first = playbook.next_number
    more = [
        Bullet(
            id=f"oth-{number:05d}",
            section=_SECTION,
            content=" ".join(
                f"name{draw.randrange(size)}" if draw.random() < _RARE else draw.choice(words) for _ in range(_WORDS)
            ),
            created=0,
            changed=0,
            tokens=2 * _WORDS,
        )
        for number in range(first, first + size - playbook.size)
    ]
    return Playbook.of([*playbook.bullets, *more], sections=playbook.sections)
