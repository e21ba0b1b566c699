"""Playbooks that are one text, as the bullets that the page shows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ace_bench.contexts.playbook.bullets import BEFORE_FIRST_STEP
from ace_bench.contexts.playbook_text.bullets import TextBullet, bullets_of
from ace_bench.contexts.playbook_text.text_playbook import TextPlaybook
from ace_bench.core.tokens import estimate_tokens
from ace_bench.core.types import Record
from ace_bench.store.journal import StepRecord


def text_changes(
    playbooks: Sequence[TextPlaybook], steps: Sequence[StepRecord]
) -> tuple[Sequence[Record], Sequence[Record]]:
    """Return the bullets of the first playbook, and what each step changed: ``set`` and ``removed``.

    ``playbooks`` are the one before the first step and those after the steps.
    """
    versions = [{bullet.key: bullet for bullet in bullets_of(one.text, one.dialect)} for one in playbooks]
    origins: dict[str, tuple[int, Sequence[str]]] = {}
    first = [_record(bullet, BEFORE_FIRST_STEP, origins) for bullet in versions[0].values()] if versions else []
    changes = []
    for index, (step, (before, now)) in enumerate(zip(steps, pairwise(versions), strict=False)):
        for key in now.keys() - before.keys():
            origins[key] = (index, step.samples)
        changed = [_record(bullet, index, origins) for key, bullet in now.items() if before.get(key) != bullet]
        changes.append({"set": changed, "removed": [key for key in before if key not in now]})
    return first, changes


def _record(bullet: TextBullet, changed: int, origins: dict[str, tuple[int, Sequence[str]]]) -> Record:
    created, sources = origins.get(bullet.key, (BEFORE_FIRST_STEP, ()))
    return {
        "id": bullet.key,
        "section": bullet.section,
        "content": bullet.content,
        "helpful": bullet.helpful,
        "harmful": bullet.harmful,
        "neutral": 0,
        "created": created,
        "changed": changed,
        "sources": list(sources),
        "tokens": estimate_tokens(bullet.content),
    }
