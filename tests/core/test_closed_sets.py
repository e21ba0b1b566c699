"""Closed sets: what a field may name is an enum of the schema, and what has no members is not in it."""

from typing import Annotated, Any

import msgspec
import pytest

from ace_bench.core.closed_sets import MARK, one_of
from ace_bench.core.replies import parse, schema_of

_EITHER = {
    "anyOf": [
        {"type": "object", "properties": {"a": {"type": "string", MARK: "letters"}}, "required": ["a"]},
        {"type": "object", "properties": {"kind": {"type": "string", "enum": ["x", "y"], MARK: "kinds"}}},
    ]
}


class Vote(msgspec.Struct):
    name: Annotated[str, one_of("letters")]
    why: str = ""


class Reply(msgspec.Struct):
    text: str
    best: Annotated[str, one_of("letters")] = ""
    votes: list[Vote] = []
    either: Annotated[list[Any], msgspec.Meta(extra_json_schema={"items": _EITHER})] = []


class Needed(msgspec.Struct):
    name: Annotated[str, one_of("letters")]


def described(schema):
    """Return a schema in short: properties by name, and enums as lists."""
    if "enum" in schema:
        return schema["enum"]
    if "anyOf" in schema:
        return [described(part) for part in schema["anyOf"]]
    if "properties" in schema:
        return {name: described(part) for name, part in schema["properties"].items()}
    return [described(schema["items"])] if "items" in schema else schema["type"]


def test_a_set_is_closed_wherever_it_is_named_and_nothing_else_is():
    either = [{"a": "string"}, {"kind": ["x", "y"]}]
    vote = {"name": "string", "why": "string"}
    assert described(schema_of(Reply)) == {"text": "string", "best": "string", "votes": [vote], "either": [either]}
    assert described(schema_of(Reply, {"letters": ("b", "a", "b"), "kinds": {"y"}, "unused": ("z",)})) == {
        "text": "string",
        "best": ["b", "a"],
        "votes": [{"name": ["b", "a"], "why": "string"}],
        "either": [[{"a": ["b", "a"]}, {"kind": ["y"]}]],
    }
    for sets in ({}, {"letters": ("a",)}):
        assert MARK not in str(schema_of(Reply, sets))


def test_nothing_can_be_named_from_an_empty_set():
    assert described(schema_of(Reply, {"letters": ()})) == {"text": "string", "either": [[{"kind": ["x", "y"]}]]}
    assert described(schema_of(Reply, {"letters": (), "kinds": ()})) == {"text": "string", "either": [[{}]]}
    assert schema_of(Needed, {"letters": ()}) == schema_of(Needed), "without it no reply could be written"


@pytest.mark.parametrize(
    ("members", "closed"),
    [
        ([f"a-{number:05}" for number in range(1000)], True),
        ([f"a-{number:05}" for number in range(1001)], False),
        (["a" * 60 + str(number) for number in range(250)], True),
        (["a" * 60 + str(number) for number in range(251)], False),
    ],
)
def test_a_set_that_is_larger_than_servers_take_stays_open(members, closed):
    assert ("enum" in schema_of(Needed, {"letters": members})["properties"]["name"]) is closed


def test_a_set_counts_as_often_as_it_is_named_and_small_sets_stay_closed():
    members = [f"a-{number:05}" for number in range(400)]
    both = described(schema_of(Reply, {"letters": members, "kinds": ("x",)}))
    assert (both["best"], both["either"][0]) == ("string", [{"a": "string"}, {"kind": ["x"]}])
    assert described(schema_of(Reply, {"letters": members[:300]}))["best"] == members[:300]


def test_replies_are_read_as_they_come_whatever_the_sets_are():
    schema_of(Reply, {"letters": ("a",)})
    assert parse('{"text": "t", "best": "z", "votes": [{"name": "q"}]}', Reply).votes == [Vote(name="q")]
