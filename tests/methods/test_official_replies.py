"""How Reflector's and Curator's replies are read by the rules of the authors' finance code."""

import json
import time

import pytest

from ace_bench.methods.ace.official_replies import official_curation, official_tags

ADD = {"type": "ADD", "section": "others", "content": "Round once."}
TAG = {"id": "calc-00001", "tag": "helpful"}


def curation(*operations, **fields):
    return json.dumps({"reasoning": "because", "operations": list(operations), **fields})


def tags(value):
    return json.dumps({"reasoning": "because", "bullet_tags": value})


@pytest.mark.parametrize(
    ("text", "additions"),
    [
        (curation(ADD), [("others", "Round once.")]),
        (f"So:\n```json\n{curation(ADD)}\n```", [("others", "Round once.")]),
        (f"```JSON {{broken ``` ```json{curation(ADD)}```", [("others", "Round once.")]),
        (f'Use {{x}} and {{"y": 1,}}: {curation(ADD)} or {curation()}', [("others", "Round once.")]),
        (curation(), []),
        (curation({**ADD, "content": ""}, {**ADD, "content": " x "}), [("others", ""), ("others", " x ")]),
        (curation({**ADD, "content": None}, {**ADD, "content": [1]}), [("others", "None"), ("others", "[1]")]),
        (curation({"type": "UPDATE"}, {"type": "add"}, {"type": None}, ADD), [("others", "Round once.")]),
    ],
)
def test_a_curation_is_taken_whole(text, additions):
    read = official_curation(text)
    assert [tuple(addition) for addition in read.additions] == additions


def test_operations_without_effect_are_named():
    assert [one["type"] for one in official_curation(curation({"type": "MERGE"}, ADD)).ignored] == ["MERGE"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (json.dumps({"operations": [ADD]}), "reasoning is missing"),
        (curation(ADD, reasoning=None), "reasoning is not a str"),
        (json.dumps({"reasoning": ""}), "operations is missing"),
        (curation(operations={}), "operations is not a list"),
        (curation(ADD, {"type": "ADD", "section": "others"}), "no content"),
        (curation(ADD, {"type": "ADD", "content": "x"}), "no section"),
        (curation(ADD, {**ADD, "section": 3}), "section of an ADD is not a text"),
        (curation(ADD, {"section": "others", "content": "x"}), "no type"),
        (curation(ADD, "ADD"), "not an object"),
        (f"[{curation(ADD)}]", "no JSON object"),
        (f'{{"x": 1}} {curation(ADD)}', "reasoning is missing"),
        (curation(ADD)[:-1] + ",}", "no JSON object"),
        ("{}", "no JSON object"),
        ("", "no JSON object"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_one_slip_drops_the_whole_curation(text, reason):
    with pytest.raises(ValueError, match=reason):
        official_curation(text)


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        (tags([TAG, {"id": "x", "tag": "harmful"}]), {"calc-00001": "helpful", "x": "harmful"}),
        (f'In words: "bullet_tags": {json.dumps([TAG])}, and so on', {"calc-00001": "helpful"}),
        (tags([{"bullet": "calc-00001", "tag": "harmful"}]), {"calc-00001": "harmful"}),
        (tags([TAG, {**TAG, "tag": "harmful"}]), {"calc-00001": "harmful"}),
        (tags([{"tag": "helpful"}, TAG, "no object", {"id": None}]), {"calc-00001": "helpful"}),
        (
            tags([{"id": "a"}, {"id": "b", "tag": "HELPFUL"}, {"id": "c", "tag": 1}]),
            {"a": "neutral", "b": "HELPFUL", "c": ""},
        ),
        (tags([{"id": ["unhashable"], "tag": "helpful"}]), {}),
        (tags(None), {}),
        (tags([{**TAG, "why": "see ["}]), {}),
        (tags(None)[:-1] + ', "steps": ["a"]}', {}),
        (f"{{'bullet_tags': {json.dumps([TAG])}}}", {}),
        (tags([TAG]).replace("}]", "},]"), {}),
        (tags([TAG])[:-2], {}),
        ("nothing", {}),
    ],
)
def test_tags_are_read_from_the_first_list_behind_their_name(text, verdicts):
    assert official_tags(text) == verdicts


@pytest.mark.parametrize(
    "text",
    [
        "```json" + " " * 1_000_000,
        "```json" * 140_000,
        "{" * 1_000_000,
        '{"' * 500_000,
        '"bullet_tags"[' * 70_000,
        "{}" * 500_000,
    ],
)
def test_hostile_texts_of_a_megabyte_cost_no_time(text):
    started = time.process_time()
    official_tags(text)
    with pytest.raises(ValueError, match="it"):
        official_curation(text)
    assert time.process_time() - started < 20, "a rule that is not linear takes hours"
