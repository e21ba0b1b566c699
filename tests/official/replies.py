"""Scripted replies of the three roles. They depend on the prompt alone: both sides get the same for the same prompt."""

from __future__ import annotations

import random
import re
import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.official import shapes
from tests.official.data import TAGS
from tests.official.serving import Refusal, Reply, draw_by, role_of, spoken

_CASE = re.compile(r"\bcase ([a-z]+-\d+)")
_BULLET = re.compile(r"\[([a-z]+-\d{5})\]")
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_WORDS = ("check", "every", "amount", "against", "its", "unit", "before", "naming", "a", "tag", "for", "lease", "debt")
_ROLES = {"generator": "GENERATOR_PROMPT", "reflector": "REFLECTOR_PROMPT", "curator": "CURATOR_PROMPT"}


def openings(checkout: Path) -> dict[str, str]:
    """How the authors' prompt of each role begins."""
    found = {}
    for role, name in _ROLES.items():
        text = runpy.run_path(str(checkout / "ace" / "prompts" / f"{role}.py"))[name]
        found[role] = text[:40]
    return found


class FinanceReplies:
    """Replies to the prompts of one task; ``messy`` replies take all shapes, others those of a model at its best.

    ``refused`` is the share of prompts about training samples, but the Curator's, that get no reply.
    """

    def __init__(
        self,
        openings: Mapping[str, str],
        targets: Mapping[str, str],
        *,
        messy: bool,
        seed: str = "",
        refused: float = 0.0,
    ):
        self._openings = openings
        self._targets = targets
        self._messy = messy
        self._seed = seed
        self._refused = refused

    def __call__(self, messages: Sequence[dict[str, str]]) -> Reply:
        prompt = spoken(messages)
        rng = draw_by(messages, self._seed)
        role = role_of(self._openings, prompt)
        if role != "curator" and self._refuses(messages, prompt):
            raise Refusal
        fields, other = (getattr(self, f"_{role}")(prompt, rng) for _ in range(2))
        forms: dict[str, str] = getattr(shapes, role)(fields, other)
        name = rng.choice([*forms]) if self._messy and rng.random() < 0.7 else rng.choice(shapes.CLEAN)
        return Reply(forms[name], "length" if name.startswith("cut") else "stop")

    def _refuses(self, messages: Sequence[dict[str, str]], prompt: str) -> bool:
        about_training = _CASE.findall(prompt)[-1].startswith("train")
        return about_training and draw_by(messages, f"{self._seed} refused").random() < self._refused

    def _generator(self, prompt: str, rng: random.Random) -> dict[str, Any]:
        target = self._targets[_CASE.findall(prompt)[-1]]
        ids = _some(rng, prompt, 3) or ["calc-00001"]
        named = " and ".join(f"[{one}]" for one in ids) if rng.random() < 0.7 else "no bullet"
        return {
            "reasoning": f"I use {named}: {_sentence(rng)}.",
            "bullet_ids": ids,
            "final_answer": target if rng.random() < 0.4 else _wrong(rng, target),
        }

    def _reflector(self, prompt: str, rng: random.Random) -> dict[str, Any]:
        ids = _some(rng, prompt, 4) or ["calc-00001"]
        return {
            "reasoning": _sentence(rng),
            "error_identification": _sentence(rng),
            "root_cause_analysis": _sentence(rng),
            "correct_approach": _sentence(rng),
            "key_insight": _sentence(rng),
            "bullet_tags": [{"id": one, "tag": rng.choice(("helpful", "harmful", "neutral"))} for one in ids],
        }

    def _curator(self, prompt: str, rng: random.Random) -> dict[str, Any]:
        sections = [heading.lower().replace("&", "and").replace(" ", "_") for heading in _HEADING.findall(prompt)]
        adds = [
            {"type": "ADD", "section": rng.choice(sections or ["others"]), "content": _sentence(rng)}
            for _ in range(rng.randint(1, 2))
        ]
        return {"reasoning": _sentence(rng), "operations": adds}


def _some(rng: random.Random, prompt: str, most: int) -> list[str]:
    known = sorted({*_BULLET.findall(prompt)})
    return rng.sample(known, min(len(known), rng.randint(1, most)))


def _sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.randint(4, 9))) + rng.choice(("", ", in {braces}", " at 5%"))


def _wrong(rng: random.Random, target: str) -> str:
    if "," not in target:
        return str(float(rng.randint(1, 99_999)))
    labels = target.split(",")
    labels[rng.randrange(len(labels))] = rng.choice(TAGS)
    return rng.choice((",".join(labels), ", ".join(labels[:3]), "\n".join(labels)))
