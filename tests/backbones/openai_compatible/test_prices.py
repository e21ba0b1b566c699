"""Dollars: cached tokens at their own price, and unknown where anything needed is unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.core.types import Usage

CARD = PriceCard(input=1.25, cached_input=0.125, output=10.0)


def test_the_papers_saving():
    # Section 4.7: 91.8 % of the input served from cache, 82.6 % less billed; only a cached price of a tenth gives it.
    def saved(card):
        return round(1 - card.input_dollars(1_000, 918) / card.input_dollars(1_000, 0), 3)

    assert saved(CARD) == 0.826
    assert saved(PriceCard(input=1, cached_input=0.25)) != 0.826
    assert saved(PriceCard(input=1, cached_input=0.5)) != 0.826


def test_dollars_of_a_call():
    usage = Usage(prompt=1_000_000, cached=400_000, completion=100_000)
    assert CARD.dollars(usage) == pytest.approx(0.6 * 1.25 + 0.4 * 0.125 + 1.0)


@pytest.mark.parametrize(
    "usage",
    [
        Usage(prompt=None, cached=0, completion=1),
        Usage(prompt=1, cached=None, completion=1),
        Usage(prompt=1, cached=0, completion=None),
    ],
)
def test_unknown_tokens_make_unknown_dollars(usage):
    assert CARD.dollars(usage) is None


@pytest.mark.parametrize(
    "card",
    [
        PriceCard(),
        PriceCard(input=1.0, cached_input=0.1),
        PriceCard(cached_input=0.1, output=1.0),
        PriceCard(input=1.0, output=1.0),
    ],
)
def test_unknown_prices_make_unknown_dollars(card):
    assert card.dollars(Usage(prompt=10, cached=5, completion=1)) is None


def test_a_price_that_is_not_needed_may_be_unknown():
    assert PriceCard(input=1.0, output=1.0).dollars(Usage(prompt=10, cached=0, completion=0)) == pytest.approx(1e-5)
    flat = PriceCard(input=1.0, cached_input=1.0, output=1.0)
    assert flat.dollars(Usage(prompt=10, cached=None, completion=0)) == pytest.approx(1e-5)
    free = PriceCard(input=0.0, cached_input=0.0, output=0.0)
    assert free.dollars(Usage(prompt=10, cached=None, completion=5)) == 0.0


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_cache_never_costs_more_and_never_pays(prompt, cached):
    full, billed = CARD.input_dollars(prompt, 0), CARD.input_dollars(prompt, cached)
    assert full is not None
    assert billed is not None
    assert 0 <= billed <= full + 1e-9
