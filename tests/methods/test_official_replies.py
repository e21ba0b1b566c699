"""How Reflector's and Curator's replies are read by the rules of the authors' finance code."""

import time

import pytest

from ace_bench.methods.official.learner import official_operations, official_tags
from tests.outcomes import outcomes_by_name

# Replies of the Curator, by the rules of the authors' finance code: one slip drops the whole curation.
OFFICIAL_REPLIES = {
    "operations": [
        '{"reasoning": "because", "operations": [{"type": "ADD", "section": "others", "content": "Round once."}]}',
        (
            'So:\n```json\n{"reasoning": "because", "operations": [{"type": "ADD", "section": "others", '
            '"content": "Round once."}]}\n```'
        ),
        (
            '```JSON {broken ``` ```json{"reasoning": "because", "operations": [{"type": "ADD", "section": '
            '"others", "content": "Round once."}]}```'
        ),
        (
            'Use {x} and {"y": 1,}: {"reasoning": "because", "operations": [{"type": "ADD", "section": '
            '"others", "content": "Round once."}]} or {"reasoning": "because", "operations": []}'
        ),
        '{"reasoning": "because", "operations": []}',
        (
            '{"reasoning": "because", "operations": [{"type": "ADD", "section": "others", "content": ""}, '
            '{"type": "ADD", "section": "others", "content": " x "}]}'
        ),
        (
            '{"reasoning": "because", "operations": [{"type": "ADD", "section": "others", "content": null}, '
            '{"type": "add"}, {"type": null}]}'
        ),
        '{"operations": [{"type": "ADD", "section": "others", "content": "Round once."}]}',
        '{"reasoning": null, "operations": [{"type": "ADD", "section": "others", "content": "Round once."}]}',
        '{"reasoning": ""}',
        '{"reasoning": "because", "operations": {}}',
        (
            '{"reasoning": "because", "operations": [{"type": "ADD", "section": "others", "content": "Round '
            'once."}, {"type": "ADD", "section": "others"}]}'
        ),
        (
            '{"reasoning": "because", "operations": [{"type": "ADD", "section": "others", "content": "Round '
            'once."}, {"type": "ADD", "content": "x"}]}'
        ),
        (
            '{"reasoning": "because", "operations": [{"type": "ADD", "section": "others", "content": "Round '
            'once."}, {"section": "others", "content": "x"}]}'
        ),
        (
            '{"reasoning": "because", "operations": [{"type": "ADD", "section": "others", "content": "Round '
            'once."}, "ADD"]}'
        ),
        '[{"reasoning": "because", "operations": [{"type": "ADD", "section": "others", "content": "Round once."}]}]',
        (
            '{"x": 1} {"reasoning": "because", "operations": [{"type": "ADD", "section": "others", "content": '
            '"Round once."}]}'
        ),
        '{"reasoning": "because", "operations": [{"type": "ADD", "section": "others", "content": "Round once."}],}',
        "{}",
        "",
    ],
    # Replies of the Reflector: tags are the first list behind their name.
    "tags": [
        (
            '{"reasoning": "because", "bullet_tags": [{"id": "calc-00001", "tag": "helpful"}, {"id": "x", '
            '"tag": "harmful"}]}'
        ),
        'In words: "bullet_tags": [{"id": "calc-00001", "tag": "helpful"}], and so on',
        '{"reasoning": "because", "bullet_tags": [{"tag": "helpful"}, "no object", {"id": null}]}',
        '{"reasoning": "because", "bullet_tags": null}',
        '{"reasoning": "because", "bullet_tags": null, "steps": ["a"]}',
        '{"reasoning": "because", "bullet_tags": [{"id": "calc-00001", "tag": "helpful", "why": "see ["}]}',
        '{\'bullet_tags\': [{"id": "calc-00001", "tag": "helpful"}]}',
        '{"reasoning": "because", "bullet_tags": [{"id": "calc-00001", "tag": "helpful"},]}',
        '{"reasoning": "because", "bullet_tags": [{"id": "calc-00001", "tag": "helpful"}',
        "nothing",
    ],
}


def test_replies_are_read_as_recorded(snapshot):
    cases = {"operations": official_operations, "tags": official_tags}
    assert outcomes_by_name(cases, OFFICIAL_REPLIES) == snapshot


@pytest.mark.parametrize(
    "text",
    [
        "```json" + " " * 1_000_000,
        "[" * 100_000,
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
    with pytest.raises(ValueError, match=r"."):
        official_operations(text)
    assert time.process_time() - started < 20, "a rule that is not linear takes hours"
