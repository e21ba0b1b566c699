"""Tokens as servers report them, and dollars: unknown where anything needed is unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.core.types import Usage
from tests.backbones.openai_compatible.scripted import USAGE, answer, complete, serving

CARD = PriceCard(input=1.25, cached_input=0.125, output=10.0)


FLAT = PriceCard(input=1.0, cached_input=1.0, output=1.0)
DOLLARS = [
    (CARD, (None, 0, 1), None),
    (CARD, (1, None, 1), None),
    (CARD, (1, 0, None), None),
    (PriceCard(), (10, 5, 1), None),
    (PriceCard(input=1.0, cached_input=0.1), (10, 5, 1), None),
    (PriceCard(cached_input=0.1, output=1.0), (10, 5, 1), None),
    (PriceCard(input=1.0, output=1.0), (10, 5, 1), None),
    (PriceCard(input=1.0, output=1.0), (10, 0, 0), 1e-5),  # a price that is not needed may be unknown
    (FLAT, (10, None, 0), 1e-5),
    (PriceCard(input=0.0, cached_input=0.0, output=0.0), (10, None, 5), 0.0),
]


@pytest.mark.parametrize(("card", "tokens", "expected"), DOLLARS)
def test_unknown_tokens_or_prices_make_unknown_dollars(card, tokens, expected):
    prompt, cached, completion = tokens
    assert card.dollars(Usage(prompt=prompt, cached=cached, completion=completion)) == pytest.approx(expected)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_cache_never_costs_more_and_never_pays(prompt, cached):
    full, billed = CARD.input_dollars(prompt, 0), CARD.input_dollars(prompt, cached)
    assert 0 <= billed <= full + 1e-9


def used(reply, **settings):
    with serving(reply) as server:
        return complete(server.url, **settings).usage


COUNTED = {"prompt_tokens": 100, "completion_tokens": 20}
USAGES = [
    (USAGE, (100, 20, 60)),
    (None, (None, None, None)),
    ("none", (None, None, None)),
    (["prompt_tokens"], (None, None, None)),
    ({"prompt_tokens": 5}, (5, None, None)),
    ({**COUNTED, "prompt_tokens_details": None}, (100, 20, None)),
    ({**COUNTED, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}, (100, 20, 64)),  # DeepSeek
    ({**COUNTED, "prompt_cache_hit_tokens": 0}, (100, 20, 0)),
    ({**COUNTED, "prompt_tokens_details": {"cached_tokens": 100}}, (100, 20, 100)),
    ({**COUNTED, "prompt_tokens_details": {"cached_tokens": 101}}, (100, 20, None)),
    *(({**COUNTED, "prompt_tokens": count}, (None, 20, None)) for count in (-5, 12.5, "many", True, [100], 1e300)),
    ({**COUNTED, "prompt_tokens": float("inf")}, (None, 20, None)),
]


@pytest.mark.parametrize(("usage", "expected"), USAGES)
def test_tokens_are_what_the_server_reports_and_unknown_where_it_cannot_have_counted_them(usage, expected):
    found = used(answer(usage=usage))
    assert (found.prompt, found.completion, found.cached) == expected


def test_dollars_by_the_price_card():
    card = PriceCard(input=2.0, cached_input=0.5, output=10.0)
    expected = (40 * 2.0 + 60 * 0.5 + 20 * 10.0) / 1_000_000
    assert used(answer(), prices=card).usd == pytest.approx(expected)
    assert used(answer(usage=None), prices=card).usd is None
    assert used(answer()).usd is None
