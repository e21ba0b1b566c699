"""The cheatsheet as a value: rendering, dump, patches."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.contexts.base import NoContext
from ace_bench.contexts.cheatsheet import Cheatsheet, PastRollout
from ace_bench.contexts.loading import restore
from ace_bench.core.errors import DataError

from .making import SAMPLE, contents, count, examples

texts = st.text(max_size=30) | st.lists(contents, max_size=4).map("\n".join)
rollouts = st.builds(PastRollout, question=contents, output=contents, feedback=st.text(max_size=5))
episodes = st.lists(rollouts, max_size=3)


def sheet(text: str, *past: PastRollout) -> Cheatsheet:
    return Cheatsheet(episodes=past).rewritten(text, count=count)


def test_it_is_shown_as_a_whole_and_measured_without_its_attempts() -> None:
    value = sheet("- one\n\n- two", PastRollout(question="q" * 999, output="o"))
    assert value.render(SAMPLE) == {"cheatsheet": "- one\n\n- two"}
    assert (value.size, value.tokens) == (2, count("- one\n\n- two"))
    assert Cheatsheet().render(SAMPLE) == {"cheatsheet": "(empty)"}
    assert Cheatsheet().size == Cheatsheet().tokens == 0


@given(texts, texts, episodes, episodes)
@examples(80)
def test_a_patch_leads_from_any_sheet_to_any_later_one(
    before: str, after: str, past: list[PastRollout], new: list[PastRollout]
) -> None:
    old, later = sheet(before, *past), sheet(after, *past, *new)
    again = old.patched(json.loads(json.dumps(later.patch(old))))
    assert again == later
    assert again.digest == later.digest
    assert restore(json.loads(json.dumps(later.dump()))) == later


def test_a_patch_is_as_small_as_the_change() -> None:
    lines = [f"- lesson {number}" for number in range(300)]
    before = sheet("\n".join(lines))
    lines[150] = "- another"
    lines.append("- last")
    patch = sheet("\n".join(lines)).patch(before)
    assert patch["text"] == [(150, 151, ["- another"]), (300, 300, ["- last"])]


@pytest.mark.parametrize(
    "lines", [None, [[0]], [[0, 9, []]], [[-1, 0, []]], [[1, 0, []]], [[0, 1, [1]]], [[0, 2, []], [1, 2, []]]]
)
def test_a_patch_that_does_not_fit_is_refused(lines: object) -> None:
    with pytest.raises(DataError, match="patch"):
        sheet("a\nb").patched({"text": lines, "text_tokens": 1, "episodes": []})
    with pytest.raises(TypeError):
        sheet("a").patch(NoContext())


@pytest.mark.parametrize("record", [{}, {"text": 1, "text_tokens": 1}, {"text": "", "text_tokens": 0, "episodes": [1]}])
def test_bad_dumps_are_refused(record: dict[str, object]) -> None:
    with pytest.raises(DataError, match="not a context of kind cheatsheet"):
        Cheatsheet.load(record)
