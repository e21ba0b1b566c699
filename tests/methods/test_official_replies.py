"""How Reflector's and Curator's replies are read by the rules of the authors' finance code."""

import json
import time

import pytest

from ace_bench.methods.official.learner import official_operations, official_tags

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
        (
            curation({**ADD, "content": None}, {"type": "add"}, {"type": None}),
            [("others", None), (None, None), (None, None)],
        ),
    ],
)
def test_a_curation_is_taken_whole(text, additions):
    assert [(one.get("section"), one.get("content")) for one in official_operations(text)] == additions


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (json.dumps({"operations": [ADD]}), "reasoning is missing"),
        (curation(ADD, reasoning=None), "reasoning is not a str"),
        (json.dumps({"reasoning": ""}), "operations is missing"),
        (curation(operations={}), "operations is not a list"),
        (curation(ADD, {"type": "ADD", "section": "others"}), "no content"),
        (curation(ADD, {"type": "ADD", "content": "x"}), "no section"),
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
        official_operations(text)


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        (tags([TAG, {"id": "x", "tag": "harmful"}]), [TAG, {"id": "x", "tag": "harmful"}]),
        (f'In words: "bullet_tags": {json.dumps([TAG])}, and so on', [TAG]),
        (tags([{"tag": "helpful"}, "no object", {"id": None}]), [{"tag": "helpful"}, "no object", {"id": None}]),
        (tags(None), []),
        (tags(None)[:-1] + ', "steps": ["a"]}', ["a"]),
        (tags([{**TAG, "why": "see ["}]), []),
        (f"{{'bullet_tags': {json.dumps([TAG])}}}", []),
        (tags([TAG]).replace("}]", "},]"), []),
        (tags([TAG])[:-2], []),
        ("nothing", []),
    ],
)
def test_tags_are_the_first_list_behind_their_name(text, listed):
    assert official_tags(text) == listed


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
        official_operations(text)
    assert time.process_time() - started < 20, "a rule that is not linear takes hours"
