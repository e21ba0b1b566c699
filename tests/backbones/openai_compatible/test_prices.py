"""Tokens as servers report them, and dollars: unknown where anything needed is unknown."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.core.types import Usage
from tests.backbones.openai_compatible.scripted import answer, complete, serving
from tests.expected import check_cases

CARD = PriceCard(input=1.25, cached_input=0.125, output=10.0)
EXPECTED = Path(__file__).parent / "expected"


def test_unknown_tokens_or_prices_make_unknown_dollars():
    """A case is a price card with the tokens of a prompt, those that were cached, and those of a reply."""

    def dollars(case):
        card, prompt, cached, completion = json.loads(case)
        usd = PriceCard(**card).dollars(Usage(prompt=prompt, cached=cached, completion=completion))
        return usd if usd is None else f"{usd:.6g}"

    check_cases(dollars, EXPECTED / "dollars.txt")


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_cache_never_costs_more_and_never_pays(prompt, cached):
    full, billed = CARD.input_dollars(prompt, 0), CARD.input_dollars(prompt, cached)
    assert 0 <= billed <= full + 1e-9


def used(usage, **settings):
    with serving(answer(usage=usage)) as server:
        return complete(server.url, **settings).usage


def test_tokens_are_what_the_server_reports_and_unknown_where_it_cannot_have_counted_them():
    check_cases(lambda case: used(json.loads(case)), EXPECTED / "usages.txt")
    counted = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60}}
    card = PriceCard(input=2.0, cached_input=0.5, output=10.0)
    assert used(counted, prices=card).usd == pytest.approx((40 * 2.0 + 60 * 0.5 + 20 * 10.0) / 1_000_000)
    assert used(None, prices=card).usd is None
