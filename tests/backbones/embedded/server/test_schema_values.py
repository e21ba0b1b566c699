"""Values made of what is said for a JSON schema: they obey it, and keep what fits."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.backbones.embedded.server.requests import BadRequest
from ace_bench.backbones.embedded.server.schema_values import obey

TREE = {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}, "v": {"const": 7}}
CAT = {"type": "object", "properties": {"kind": {"const": "cat"}, "name": {"type": "string"}}}
SCHEMAS = [
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 20}, "b": {"type": "boolean"}}},
    {"type": "object", "properties": {}, "additionalProperties": False},
    {"$ref": "#/$defs/Tree", "$defs": {"Tree": {"type": "object", "properties": TREE, "required": ["kids", "v"]}}},
    {"anyOf": [CAT, {"type": "object", "properties": {"kind": {"enum": ["dog"]}}, "required": ["kind"]}]},
    {"allOf": [{"properties": {"a": {"type": "number"}}, "required": ["a"]}, {"required": ["b"]}]},
    {"type": "array", "items": {"type": ["string", "null"]}, "minItems": 2, "maxItems": 3},
    {"type": "number", "minimum": 0.5, "maximum": 0.75},
    {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}, "required": ["a"]},
]
LIST = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}
TEXTS = ["", "a green frog weighs 12.5", '{"a": 25, "b": "x"}', '{"kind": "dog"}', "[1, [2], {}]", "null", "NaN"]


@given(
    st.sampled_from(SCHEMAS),
    st.sampled_from(TEXTS)
    | st.text()
    | st.recursive(
        st.none() | st.integers() | st.text(),
        lambda one: st.lists(one) | st.dictionaries(st.sampled_from("abkv") | st.text(), one),
    ).map(json.dumps),
)
def test_what_is_said_is_turned_into_json_that_obeys_the_schema(schema, text):
    jsonschema.validate(json.loads(obey(text, schema)), schema)


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (SCHEMAS[0], '{"b":true,  "a": 21}', '{"b":true,  "a": 21}'),  # it obeys already
        (SCHEMAS[0], "Yes, 1,234", '{"a": 1234, "b": true}'),
        (SCHEMAS[0], "3 or 12.5", '{"a": 20, "b": false}'),
        (SCHEMAS[2], "x", '{"kids": [{"kids": [{"kids": [], "v": 7}], "v": 7}], "v": 7}'),
        (SCHEMAS[3], '{"kind": "dog"}', '{"kind": "dog"}'),
        (SCHEMAS[3], "A Dog", '{"kind": "cat", "name": "A Dog"}'),
        (SCHEMAS[5], "[1, null, 3, 4]", '["1", null, "3"]'),
        (SCHEMAS[5], "a", '["a", null]'),
        (SCHEMAS[6], "12.5", "0.75"),
        (SCHEMAS[7], '"abcd"', '{"a": "abc"}'),
        ({"enum": ["green", "light green", 7]}, "A Light Green frog", '"light green"'),
        ({"enum": ["green", "light green", 7]}, "7", "7"),
        ({"enum": ["green", "light green", 7]}, "red", '"green"'),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, "no 3", "3"),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, '{"b": 1}', "{}"),
        (
            {"type": "object", "required": ["z"], "properties": {"a": {}}},
            '{"c": 2, "a": 1}',
            '{"a": 1, "c": 2, "z": ""}',
        ),
        ({"items": {"type": "integer"}, "minItems": 1}, '["5", "6.5"]', "[5, 7]"),
        ({"type": "string"}, "[1]", '"[1]"'),
        (LIST, "x", '{"next": {"next": {"next": {"next": null}}}}'),
        ({}, "[1]", "[1]"),
    ],
)
def test_what_fits_is_kept(schema, text, value):
    assert obey(text, schema) == value


@pytest.mark.parametrize(
    ("schema", "cause"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "no value of finite depth"),
        ({"type": "array", "items": {"type": "integer", "multipleOf": 5}, "minItems": 1}, "it uses multipleOf"),
        ({"$ref": "#/$defs/absent"}, "leads nowhere"),
        ({"type": "integer", "minimum": 1, "maximum": 0}, "no number lies within"),
        ({"type": "array", "minItems": 10**9}, "too many values"),
        ({"properties": 7}, "it is broken"),
        ({"enum": []}, "no options"),
        ({"type": "colour"}, "no type colour"),
    ],
)
def test_a_schema_that_cannot_be_obeyed_is_refused(schema, cause):
    with pytest.raises(BadRequest, match=cause):
        obey("green", schema)
