"""Bounds on schemas: every open end is closed, and replies within the bounds are still replies."""

import pytest

from ace_bench.backbones.openai_compatible.schemas import Bounds, response_format
from ace_bench.core.replies import schema_of
from tests.backbones.openai_compatible.scripted import ROLES, nodes

BOUNDS = Bounds(max_string=200, max_items=4)
CLOSED = {"string": {"maxLength"}, "array": {"maxItems"}, "object": {"additionalProperties"}}
CLOSED |= {kind: {"minimum", "maximum"} for kind in ("integer", "number")}


def is_closed(node):
    kind = node.get("type")
    return "enum" in node or (bool(kind or node.keys() & {"anyOf", "const"}) and CLOSED.get(kind, set()) <= node.keys())


@pytest.mark.parametrize("kind", ROLES)
def test_nothing_is_left_open_in_any_role(kind):
    schema = schema_of(kind)
    before = repr(schema)
    assert not all(map(is_closed, nodes(schema)))
    assert all(map(is_closed, nodes(BOUNDS.apply(schema))))
    assert repr(schema) == before, "the schema itself stays as it is"


def test_own_bounds_and_choices_stay():
    schema = {
        "type": "object",
        "properties": {
            "short": {"type": "string", "maxLength": 5},
            "choice": {"type": "string", "enum": ["a", "b"]},
            "always": {"const": "ADD"},
            "share": {"type": "number", "minimum": 0, "maximum": 1},
            "pair": {"type": "array", "maxItems": 2, "items": {"type": "boolean"}},
        },
    }
    assert BOUNDS.apply(schema) == {**schema, "additionalProperties": False}


def test_what_stands_for_anything_can_be_chosen_and_is_bounded_too():
    schema = {"type": "array"}
    assert BOUNDS.apply(schema) == {"type": "array", "maxItems": 4, "items": {"type": "string", "maxLength": 200}}
    anything = {"type": "object", "properties": {"content": {"type": "string"}}}
    bounded = Bounds(max_string=10, max_items=2, anything=anything).apply(schema)
    assert bounded["items"]["properties"] == {"content": {"type": "string", "maxLength": 10}}
    assert all(map(is_closed, nodes(bounded)))


def sent(schema):
    return response_format(schema, "json_schema")["json_schema"]


@pytest.mark.parametrize("kind", ROLES)
def test_the_roles_schemas_are_fit_for_strict_servers(kind):
    asked = sent(schema_of(kind))
    assert asked["strict"] is True
    for node in nodes(asked["schema"]):
        assert not node.keys() & {"default", "title", "description"}
        if node.get("type") == "object":
            assert (node["additionalProperties"], node["required"]) == (False, list(node["properties"]))


@pytest.mark.parametrize("open_part", [{}, {"type": "array"}, {"type": "object"}, {"anyOf": [{"type": "string"}, {}]}])
def test_a_schema_that_leaves_something_open_is_not_called_strict(open_part):
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": open_part}, "required": ["b"]}
    asked = sent(schema)
    assert (asked["strict"], asked["schema"]) == (False, schema)


def test_a_long_title_is_cut_and_properties_named_like_notes_stay():
    properties = {"title": {"type": "string", "title": "A title"}}
    asked = sent({"title": "My reply " * 20, "type": "object", "properties": properties})
    assert asked["name"] == ("My_reply_" * 20)[:64]
    assert asked["schema"]["properties"] == {"title": {"type": "string"}}
