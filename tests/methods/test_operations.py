"""Reading a model's raw operations: what is forgiven by rule, and what is rejected with which reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.contexts.playbook.apply import KINDS, Add, Merge, Operation, Remove, Tag, Update, Votes
from ace_bench.methods.ace_parts import parse_operations
from tests.contexts.making import examples


@pytest.mark.parametrize(
    ("raw", "operation"),
    [
        ({"type": "ADD", "section": "s", "content": "c"}, Add(section="s", content="c")),
        ({"type": " add ", "section": "s", "content": "c", "why": [1]}, Add(section="s", content="c")),
        (
            {"type": "ADD", "section": "s", "content": "c", "metadata": {"helpful": 1, "x": "y"}},
            Add(section="s", content="c", votes=Votes(helpful=1)),
        ),
        ({"type": "UPDATE", "bullet_id": "a-1", "content": "c"}, Update(id="a-1", content="c")),
        ({"type": "update", "id": "a-1", "bullet_id": "b-2", "content": "c"}, Update(id="a-1", content="c")),
        (
            {"type": "UPDATE", "bullet_id": "a-1", "content": "c", "metadata": {"helpful": 3}},
            Update(id="a-1", content="c", votes=Votes(helpful=3)),
        ),
        ({"type": "MERGE", "ids": ["a-1", "a-2"]}, Merge(ids=("a-1", "a-2"))),
        ({"type": "REMOVE", "bullet_id": "a-1"}, Remove(id="a-1")),
        ({"type": "TAG", "id": "a-1", "tag": "Harmful"}, Tag(id="a-1", votes=Votes(harmful=1))),
        ({"type": "TAG", "id": "a-1", "neutral": 2}, Tag(id="a-1", votes=Votes(neutral=2))),
        ({"type": "tag", "bullet_id": "a-1", "metadata": {"helpful": 1}}, Tag(id="a-1", votes=Votes(helpful=1))),
        ({"type": "TAG", "id": "a-1", "tag": "helpful", "metadata": None}, Tag(id="a-1", votes=Votes(helpful=1))),
    ],
)
def test_read_by_the_written_rules(raw: dict[str, Any], operation: Operation) -> None:
    assert parse_operations([raw]) == ((operation,), ())


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({"type": "DELETE", "id": "a-1"}, "unknown operation type 'DELETE'"),
        ({"section": "s", "content": "c"}, "unknown operation type None"),
        ({"type": ["ADD"]}, "unknown operation type"),
        ("ADD this", "must be a JSON object"),
        (None, "must be a JSON object"),
        ({"type": "ADD", "section": "s"}, "content"),
        ({"type": "ADD", "section": "s", "content": 5}, r"Expected `str`, got `int` - at `\$.content`"),
        ({"type": "ADD", "section": None, "content": "c"}, "section"),
        ({"type": "UPDATE", "content": "c"}, "id"),
        ({"type": "MERGE", "ids": "a-1"}, "ids"),
        ({"type": "MERGE", "id": "a-1"}, "ids"),
        ({"type": "REMOVE", "id": 7}, "id"),
        ({"type": "TAG", "id": "a-1"}, "must count something"),
        ({"type": "TAG", "id": "a-1", "tag": "great"}, "unknown tag 'great'"),
        ({"type": "TAG", "id": "a-1", "tag": 1}, "unknown tag"),
        ({"type": "TAG", "id": "a-1", "helpful": -1}, "votes.helpful"),
        ({"type": "TAG", "id": "a-1", "helpful": 10**9}, "votes.helpful"),
        ({"type": "TAG", "id": "a-1", "metadata": {"helpful": True}}, "votes.helpful"),
        ({"type": "TAG", "id": "a-1", "metadata": ["helpful"]}, "metadata must be an object"),
    ],
)
def test_rejected_with_a_reason(raw: Any, reason: str) -> None:
    operations, (rejection,) = parse_operations([raw])
    assert operations == ()
    with pytest.raises(ValueError, match=reason):
        raise ValueError(rejection["reason"])


def test_one_bad_item_does_not_touch_the_others() -> None:
    good = {"type": "REMOVE", "id": "a-1"}
    operations, rejections = parse_operations([good, {"type": "?"}, good])
    assert len(operations) == 2
    assert len(rejections) == 1


def test_a_rejection_is_a_short_json_object() -> None:
    raw = {"type": "ADD", "section": {"deep": ["x" * 999]}, "content": "y" * 9_999}
    _, (rejection,) = parse_operations([raw])
    assert len(json.dumps(rejection)) < 800
    assert rejection["event"] == "rejected"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = ["id", "bullet_id", "ids", "section", "content", "tag", "metadata", "helpful", "harmful", "neutral", "votes"]


@given(
    st.lists(
        _JSON
        | st.builds(
            lambda kind, fields: {"type": kind, **fields},
            st.sampled_from(KINDS),
            st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=5),
        ),
        max_size=4,
    )
)
@examples(100)
def test_whatever_a_model_sends_is_read_or_rejected(raw: list[Any]) -> None:
    operations, rejections = parse_operations(raw)
    assert len(operations) + len(rejections) == len(raw)
    json.dumps(rejections)
