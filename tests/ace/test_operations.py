"""Reading a model's raw operations: what is forgiven by rule, and what is rejected with which reason."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ace_bench.ace.replies import parse_operations
from ace_bench.playbook.apply import KINDS
from tests.outcomes import outcomes
from tests.playbook.making import examples


def read(raw: Any) -> object:
    """Return the operation, or why it is rejected; good ones beside it are read all the same."""
    good = {"type": "REMOVE", "id": "a-1"}
    operations, rejections = parse_operations([good, raw, good])
    return rejections[0]["reason"] if rejections else operations[1]


# Operations as a Curator writes them: what is forgiven by rule, and what is rejected with which reason.
OPERATIONS = [
    {"type": "ADD", "section": "s", "content": "c"},
    {"type": " add ", "section": "s", "content": "c", "why": [1]},
    {"type": "ADD", "section": "s", "content": "c", "metadata": {"helpful": 1, "x": "y"}},
    {"type": "UPDATE", "bullet_id": "a-1", "content": "c"},
    {"type": "update", "id": "a-1", "bullet_id": "b-2", "content": "c"},
    {"type": "UPDATE", "bullet_id": "a-1", "content": "c", "metadata": {"helpful": 3}},
    {"type": "MERGE", "ids": ["a-1", "a-2"]},
    {"type": "REMOVE", "bullet_id": "a-1"},
    {"type": "TAG", "id": "a-1", "tag": "Harmful"},
    {"type": "TAG", "id": "a-1", "neutral": 2},
    {"type": "tag", "bullet_id": "a-1", "metadata": {"helpful": 1}},
    {"type": "TAG", "id": "a-1", "tag": "helpful", "metadata": None},
    {"type": "DELETE", "id": "a-1"},
    {"section": "s", "content": "c"},
    {"type": ["ADD"]},
    "ADD this",
    None,
    {"type": "ADD", "section": "s"},
    {"type": "ADD", "section": "s", "content": 5},
    {"type": "ADD", "section": None, "content": "c"},
    {"type": "UPDATE", "content": "c"},
    {"type": "MERGE", "ids": "a-1"},
    {"type": "MERGE", "id": "a-1"},
    {"type": "REMOVE", "id": 7},
    {"type": "TAG", "id": "a-1"},
    {"type": "TAG", "id": "a-1", "tag": "great"},
    {"type": "TAG", "id": "a-1", "tag": 1},
    {"type": "TAG", "id": "a-1", "helpful": -1},
    {"type": "TAG", "id": "a-1", "helpful": 1000000000},
    {"type": "TAG", "id": "a-1", "metadata": {"helpful": True}},
    {"type": "TAG", "id": "a-1", "metadata": ["helpful"]},
]


def test_each_operation_is_read_or_rejected_as_recorded(snapshot) -> None:
    assert outcomes(read, OPERATIONS) == snapshot


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
