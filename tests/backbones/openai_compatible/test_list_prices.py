"""Prices of hosted models come from a list; prices that are set win, and a server of one's own has none."""

import subprocess
import sys

import pytest

from ace_bench.backbones.openai_compatible.list_prices import configured_prices, list_prices
from ace_bench.core.types import Usage

OPENAI, OPENROUTER = "https://api.openai.com/v1", "https://openrouter.ai/api/v1"
CALL = Usage(prompt=1_000_000, cached=918_000, completion=1_000_000)


def test_a_hosted_model_costs_what_the_list_says_and_a_cached_token_less():
    prices = list_prices(OPENAI, "gpt-5.1-2025-11-13")
    assert prices.dollars(CALL) == pytest.approx(0.082 * 1.25 + 0.918 * 0.125 + 10.0)
    assert prices.call_dollars(CALL) == pytest.approx(prices.dollars(CALL))
    assert prices.source.startswith("genai-prices ")


@pytest.mark.parametrize(
    ("base_url", "model"),
    [("http://localhost:8000/v1", "gpt-5.1"), ("https://vllm.example.org/v1", "gpt-5.1"), (OPENAI, "gpt-unheard-of")],
)
def test_an_own_server_and_an_unheard_of_model_have_no_price(base_url, model):
    prices = list_prices(base_url, model)
    assert prices.dollars(CALL) is prices.call_dollars(CALL) is prices.source is None


def test_unknown_tokens_stay_unknown():
    prices = list_prices(OPENAI, "gpt-4o-mini")
    assert prices.call_dollars(Usage(prompt=10, cached=None, completion=10)) is None
    assert prices.call_dollars(Usage(prompt=10, cached=0, completion=None)) is None


def test_long_prompts_cost_more_where_the_provider_says_so():
    prices = list_prices("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-pro")
    long = Usage(prompt=300_000, cached=0, completion=1_000)
    short = Usage(prompt=30_000, cached=0, completion=100)
    assert prices.call_dollars(short) == pytest.approx(prices.dollars(short))
    assert prices.call_dollars(long) > 1.4 * prices.dollars(long)


def test_a_service_tier_has_its_own_prices():
    flex = list_prices(OPENAI, "gpt-5.1", "flex")
    assert flex.dollars(CALL) < list_prices(OPENAI, "gpt-5.1").dollars(CALL)


def test_prices_that_are_set_win_even_if_only_some_are():
    address = {"base_url": OPENAI, "model": "gpt-5.1"}
    assert configured_prices({**address, "prices": {"input": 1.0, "cached_input": 1.0, "output": 2.0}}).dollars(
        CALL
    ) == pytest.approx(3.0)
    assert configured_prices({**address, "prices": {"input": 1.0}}).dollars(CALL) is None
    assert configured_prices({**address, "prices": {"input": None}}).dollars(CALL) == pytest.approx(
        list_prices(OPENAI, "gpt-5.1").dollars(CALL)
    )


def test_the_list_is_loaded_with_the_first_price_and_not_before():
    code = (
        "import sys; from ace_bench.backbones.openai_compatible.list_prices import list_prices; "
        "prices = list_prices('https://api.openai.com/v1', 'gpt-5.1'); loaded = 'genai_prices' in sys.modules; "
        "list_prices('http://localhost/v1', 'gpt-5.1').source; sys.exit(loaded or 'genai_prices' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
