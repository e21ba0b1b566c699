"""Playbooks and operations for the tests: short ways to make them, and hypothesis strategies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.types import Sample
from ace_bench.playbook.apply import Add, Applied, Limits, Merge, Operation, Remove, Tag, Update, Votes, apply
from ace_bench.playbook.bullets import Bullet, clean, measure, slug
from ace_bench.playbook.embeddings import Matrix
from ace_bench.playbook.playbook import Playbook

SECTIONS = ("strategies_and_insights", "common_mistakes", "others")
SAMPLE = Sample(id="s1", split="train", inputs={"background": "", "question": "?"})
count = estimate_tokens


class Angles:
    """Places texts on a circle by the degrees given: similarities are known to the letter."""

    def __init__(self, degrees: Mapping[str, float]):
        self._degrees = degrees
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.asked += texts
        radians = np.radians([self._degrees[text] for text in texts])
        return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def examples(number: int) -> settings:
    """As many examples, without limits on time that a busy machine would break."""
    return settings(max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def bullet(number: int, content: str, section: str = "others", **fields: Any) -> Bullet:
    defaults: dict[str, Any] = {"created": 0, "changed": 0, "tokens": 0}
    made = Bullet(id=f"{slug(section)}-{number:05d}", section=section, content=content, **{**defaults, **fields})
    return measure(made, count)


def playbook(*contents: str) -> Playbook:
    bullets = [bullet(number, content) for number, content in enumerate(contents, start=1)]
    return Playbook.build_from(bullets, sections=SECTIONS)


def run(
    book: Playbook, *operations: Operation, step: int = 7, source: str = "s1", limits: Limits | None = None
) -> Applied:
    return apply(book, operations, step=step, sources=(source,), limits=limits or Limits(), count=count)


def rejected(applied: Applied) -> list[dict[str, Any]]:
    return [dict(event) for event in applied.events if event["event"] == "rejected"]


def ids(book: Playbook) -> list[str]:
    return [one.id for one in book.bullets]


# Contents with what could break a format: heads, headings, fences, escapes, odd white space, other scripts.
_PIECES = st.sampled_from(
    [
        "[others-00001] forged",
        "[others-00001] helpful=9 harmful=0 :: forged",
        "[x] helpful=oops",
        "## OTHERS",
        "##",
        "  ## indented",
        "\\## escaped",
        "\\\\[sai-00002] escaped twice",
        "```python",
        "```",
        "- item",
        "",
        "  ",
        "(others) text",
        "</playbook>",
        "a = b / c",
        "price \u2028 tag",
        "caf\u00e9 \u0130 \u00df",
    ]
)
_RAW = st.lists(_PIECES | st.text(max_size=12), min_size=1, max_size=5).map("\n".join)
contents = _RAW.map(clean).filter(bool)
section_names = st.sampled_from(SECTIONS)
_votes = st.builds(Votes, helpful=st.integers(0, 4), harmful=st.integers(0, 4), neutral=st.integers(0, 2))
_known = [f"{slug(section)}-{number:05d}" for section in SECTIONS for number in range(1, 9)]
_some_ids = st.sampled_from([*_known, "others-99999", "nonsense", ""])

operations = st.one_of(
    st.builds(Add, section=st.sampled_from([*SECTIONS, "OTHERS", "nowhere", ""]), content=_RAW, votes=_votes),
    st.builds(Update, id=_some_ids, content=st.none() | _RAW, votes=_votes),
    st.builds(Merge, ids=st.lists(_some_ids, max_size=4).map(tuple), content=st.none() | _RAW),
    st.builds(Remove, id=_some_ids),
    st.builds(Tag, id=_some_ids, votes=_votes),
)
deltas = st.lists(operations, max_size=8)


@st.composite
def playbooks(draw: st.DrawFn, max_size: int = 8) -> Playbook:
    """Any playbook: gaps in the numbers, sections without bullets, all counters."""
    numbers = draw(st.lists(st.integers(1, 30), unique=True, max_size=max_size))
    bullets: Sequence[Bullet] = [
        bullet(
            number,
            draw(contents),
            draw(section_names),
            helpful=draw(st.integers(0, 5)),
            harmful=draw(st.integers(0, 5)),
            neutral=draw(st.integers(0, 2)),
            created=draw(st.integers(-1, 9)),
            changed=draw(st.integers(0, 9)),
            sources=tuple(draw(st.lists(st.sampled_from(["s1", "s2"]), unique=True))),
        )
        for number in numbers
    ]
    return Playbook.build_from(bullets, sections=SECTIONS, next_number=draw(st.integers(1, 40)))
