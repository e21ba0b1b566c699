"""Reading a model's raw operations: what is forgiven by rule, and what is rejected with which reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ace_bench.contexts.playbook.apply import KINDS
from ace_bench.methods.ace_parts import parse_operations
from tests.cases import check_cases
from tests.contexts.making import examples


def read(raw: Any) -> object:
    """Return the operation, or why it is rejected; good ones beside it are read all the same."""
    good = {"type": "REMOVE", "id": "a-1"}
    operations, rejections = parse_operations([good, raw, good])
    return rejections[0]["reason"] if rejections else operations[1]


def test_each_operation_is_read_or_rejected_as_the_file_says() -> None:
    check_cases(Path(__file__).with_name("operations.txt"), {"read": read})


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
