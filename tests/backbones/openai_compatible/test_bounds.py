"""Bounds on schemas: every open end is closed, and replies within the bounds are still replies."""

import pytest

from ace_bench.agents.single_turn import GeneratorReply
from ace_bench.backbones.openai_compatible.schemas import Bounds
from ace_bench.core.replies import schema_of
from ace_bench.methods.ace_parts import CuratorReply, ReflectorReply
from ace_bench.methods.ace_variants.ablations import MergerReply, RewriterReply

BOUNDS = Bounds(max_string=200, max_items=4)
ROLES = (GeneratorReply, ReflectorReply, CuratorReply, MergerReply, RewriterReply)


def open_ends(node, where="reply"):
    if not isinstance(node, dict) or not node.keys() & {"type", "anyOf", "enum", "const"}:
        return [f"{where}: anything"]
    found = []
    kind = node.get("type")
    needed = {
        "string": {"maxLength"},
        "array": {"maxItems"},
        "integer": {"minimum", "maximum"},
        "number": {"minimum", "maximum"},
        "object": {"additionalProperties"},
    }.get(kind, set())
    if "enum" not in node and not needed <= node.keys():
        found.append(f"{where}: {kind} without {needed}")
    if kind == "array":
        found += open_ends(node.get("items"), f"{where}[]")
    for name, part in node.get("properties", {}).items():
        found += open_ends(part, f"{where}.{name}")
    for part in node.get("anyOf", ()):
        found += open_ends(part, f"{where}|")
    return found


@pytest.mark.parametrize("kind", ROLES)
def test_nothing_is_left_open_in_any_role(kind):
    schema = schema_of(kind)
    before = repr(schema)
    assert open_ends(schema) != []
    assert open_ends(BOUNDS.apply(schema)) == []
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
    assert open_ends(bounded) == []
