"""How Reflector's and Curator's replies are read by the rules of the authors' finance code."""

import time
from pathlib import Path

import pytest

from ace_bench.methods.official.learner import official_operations, official_tags
from tests.cases import check_cases


def test_replies_are_read_as_the_file_says():
    cases = {"operations": official_operations, "tags": official_tags}
    check_cases(Path(__file__).with_name("official_replies.txt"), cases)


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
