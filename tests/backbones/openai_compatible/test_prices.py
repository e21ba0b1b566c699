"""Tokens as servers report them, and dollars: unknown where anything needed is unknown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.core.types import Usage
from tests.backbones.openai_compatible.scripted import answer, complete, serving
from tests.outcomes import outcomes

CARD = PriceCard(input=1.25, cached_input=0.125, output=10.0)


DOLLARS = [
    '[{"input": 1.25, "cached_input": 0.125, "output": 10.0}, null, 0, 1]',
    '[{"input": 1.25, "cached_input": 0.125, "output": 10.0}, 1, null, 1]',
    '[{"input": 1.25, "cached_input": 0.125, "output": 10.0}, 1, 0, null]',
    "[{}, 10, 5, 1]",
    '[{"input": 1.0, "cached_input": 0.1}, 10, 5, 1]',
    '[{"cached_input": 0.1, "output": 1.0}, 10, 5, 1]',
    '[{"input": 1.0, "output": 1.0}, 10, 5, 1]',
    '[{"input": 1.0, "output": 1.0}, 10, 0, 0]',
    '[{"input": 1.0, "cached_input": 1.0, "output": 1.0}, 10, null, 0]',
    '[{"input": 0.0, "cached_input": 0.0, "output": 0.0}, 10, null, 5]',
]


def test_unknown_tokens_or_prices_make_unknown_dollars(snapshot):
    """A case is a price card with the tokens of a prompt, those that were cached, and those of a reply."""

    def dollars(case):
        card, prompt, cached, completion = json.loads(case)
        usd = PriceCard(**card).dollars(Usage(prompt=prompt, cached=cached, completion=completion))
        return usd if usd is None else f"{usd:.6g}"

    assert outcomes(dollars, DOLLARS) == snapshot


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_cache_never_costs_more_and_never_pays(prompt, cached):
    full, billed = CARD.input_dollars(prompt, 0), CARD.input_dollars(prompt, cached)
    assert 0 <= billed <= full + 1e-9


def used(usage, **settings):
    with serving(answer(usage=usage)) as server:
        return complete(server.url, **settings).usage


USAGES = [
    '{"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60}}',
    "null",
    '"none"',
    '["prompt_tokens"]',
    '{"prompt_tokens": 5}',
    '{"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": null}',
    '{"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}',
    '{"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 0}',
    '{"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 100}}',
    '{"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 101}}',
    '{"prompt_tokens": -5, "completion_tokens": 20}',
    '{"prompt_tokens": 12.5, "completion_tokens": 20}',
    '{"prompt_tokens": "many", "completion_tokens": 20}',
    '{"prompt_tokens": true, "completion_tokens": 20}',
    '{"prompt_tokens": [100], "completion_tokens": 20}',
    '{"prompt_tokens": 1e+300, "completion_tokens": 20}',
    '{"prompt_tokens": Infinity, "completion_tokens": 20}',
]


def test_tokens_are_what_the_server_reports_and_unknown_where_it_cannot_have_counted_them(snapshot):
    assert outcomes(lambda case: used(json.loads(case)), USAGES) == snapshot
    counted = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60}}
    card = PriceCard(input=2.0, cached_input=0.5, output=10.0)
    assert used(counted, prices=card).usd == pytest.approx((40 * 2.0 + 60 * 0.5 + 20 * 10.0) / 1_000_000)
    assert used(None, prices=card).usd is None
