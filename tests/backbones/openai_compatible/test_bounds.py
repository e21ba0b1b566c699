"""Bounds on schemas: every open end is closed, and replies within the bounds are still replies."""

import json
import re
from pathlib import Path

import pytest

from ace_bench.ace.replies import CuratorReply
from ace_bench.backbones.openai_compatible.schemas import Bounds, response_format
from ace_bench.core.errors import ConfigError
from ace_bench.core.replies import schema_of
from ace_bench.core.resources import configs_folder
from tests.backbones.openai_compatible.scripted import PROMPT, ROLES, answer, client, nodes, serving
from tests.outcomes import as_texts

BOUNDS = Bounds(max_string=200, max_items=4)
CLOSED = {"string": {"maxLength"}, "array": {"maxItems"}, "object": {"additionalProperties"}}
CLOSED |= {kind: {"minimum", "maximum"} for kind in ("integer", "number")}


def is_closed(node):
    kind = node.get("type")
    return "enum" in node or (bool(kind or node.keys() & {"anyOf", "const"}) and CLOSED.get(kind, set()) <= node.keys())


@pytest.mark.parametrize("kind", ROLES)
def test_the_schema_of_every_role_can_be_bounded_and_is_fit_for_strict_servers(kind):
    schema = schema_of(kind)
    before = repr(schema)
    assert not all(map(is_closed, nodes(schema)))
    assert all(map(is_closed, nodes(BOUNDS.apply(schema))))
    asked = response_format(schema, "json_schema")["json_schema"]
    assert asked["strict"] is True
    for node in nodes(asked["schema"]):
        assert not node.keys() & {"default", "title", "description"}
        if node.get("type") == "object":
            assert (node["additionalProperties"], node["required"]) == (False, list(node["properties"]))
    assert repr(schema) == before, "the schema itself stays as it is"


OWN = {
    "short": {"type": "string", "maxLength": 5},
    "choice": {"type": "string", "enum": ["a", "b"]},
    "always": {"const": "ADD"},
    "share": {"type": "number", "minimum": 0, "maximum": 1},
    "pair": {"type": "array", "maxItems": 2, "items": {"type": "boolean"}},
}
ANYTHING = Bounds(max_string=10, max_items=2, anything={"type": "object", "properties": {"text": {"type": "string"}}})
OPEN = ({}, {"type": "array"}, {"type": "object"}, {"anyOf": [{"type": "string"}, {}]})


def test_what_bounds_and_strictness_make_of_schemas(snapshot):
    found = [("bounds and choices of its own", BOUNDS.apply({"type": "object", "properties": OWN}))]
    lists = {"a list of anything": BOUNDS, "a list of anything, which is texts": ANYTHING}
    found += [(name, bounds.apply({"type": "array"})) for name, bounds in lists.items()]
    parts = [{"type": "object", "properties": {"a": {"type": "string"}, "b": part}, "required": ["b"]} for part in OPEN]
    titled = {"type": "object", "properties": {"title": {"type": "string", "title": "A title"}}}
    for schema in (*parts, {"title": "My reply " * 20, **titled}):
        found.append((schema, response_format(schema, "json_schema")["json_schema"]))
    assert as_texts(found) == snapshot


def test_requests_have_no_bounds_unless_a_setting_names_them():
    sent = {}
    for name, bounds in {"default": {}, "null": {"bound_replies": None}, "false": {"bound_replies": False}}.items():
        with serving(answer("{}")) as server:
            backbone = client(server.url, structured="auto", **bounds)
            backbone.complete(PROMPT, role="curator", session="s", schema=schema_of(CuratorReply))
            sent[name] = json.dumps(server.asked()[-1])
    assert len(set(sent.values())) == 1
    assert "maxLength" not in sent["default"]
    assert "maxItems" not in sent["default"]
    with pytest.raises(ConfigError, match=r"bound_replies=true says no bounds: write \{max_string: 200"):
        client("http://localhost:1", bound_replies=True)


def test_no_preset_bounds_replies_but_those_of_weak_models():
    presets = Path(configs_folder(), "backbone").glob("*.yaml")
    bounded = {path.stem for path in presets if "max_string:" in re.sub("#.*", "", path.read_text())}
    assert bounded == {"smollm2"}
