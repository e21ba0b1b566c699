"""Dollars of hosted models by the list that the package genai-prices keeps, because a list of ours would grow old.

The list knows a provider by the address of its API, so a server of one's own has no price. The package holds the list,
sends nothing, and is imported with the first price that is asked for (0.13 s).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

from ace_bench.backbones.openai_compatible.settings import ChatSettings, PriceCard
from ace_bench.core.types import Usage

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

_PACKAGE = "genai-prices"
_UNKNOWN = PriceCard()


@dataclass(frozen=True, kw_only=True)
class ListPrices(PriceCard):
    """Today's list prices of a model at the provider behind ``base_url``; none if the list does not know them.

    ``service_tier`` is the tier that requests ask for, such as ``flex``.
    """

    base_url: str
    model: str
    service_tier: str | None = None

    @property
    def source(self) -> str | None:
        """The list and its version, ``None`` if it does not know the model."""
        return f"{_PACKAGE} {metadata.version(_PACKAGE)}" if self._listed(0, 0, 0) else None

    @property
    def card(self) -> PriceCard:
        """The prices of short prompts."""
        listed = self._listed(0, 0, 0)
        if listed is None:
            return _UNKNOWN
        fresh = _per_million(listed.model_price.input_mtok)
        cached = _per_million(listed.model_price.cache_read_mtok)
        output = _per_million(listed.model_price.output_mtok)
        return PriceCard(input=fresh, cached_input=fresh if cached is None else cached, output=output)

    def dollars(self, usage: Usage) -> float | None:
        """Return the price of some tokens, in calls with short prompts."""
        return self.card.dollars(usage)

    def call_dollars(self, usage: Usage) -> float | None:
        """Return the price of one call; some providers charge more for the tokens of a long prompt."""
        if usage.prompt is None or usage.completion is None or self.card.dollars(usage) is None:
            return None
        listed = self._listed(usage.prompt, min(usage.cached or 0, usage.prompt), usage.completion)
        return None if listed is None else float(listed.total_price)

    def _listed(self, prompt: int, cached: int, completion: int) -> PriceCalculation | None:
        import genai_prices  # loads pydantic and a list of 1.6 MB

        tokens = genai_prices.Usage(input_tokens=prompt, cache_read_tokens=cached, output_tokens=completion)
        tier = {} if self.service_tier is None else {"service_tier": self.service_tier}
        try:
            return genai_prices.calc_price(tokens, self.model, provider_api_url=self.base_url, price_context=tier)
        except LookupError:
            return None


def with_list_prices(settings: ChatSettings) -> ChatSettings:
    """Return settings with list prices in place of prices that are not set."""
    if settings.prices != _UNKNOWN or settings.simulated:
        return settings
    tier = (settings.extra_body or {}).get("service_tier")
    listed = list_prices(settings.base_url, settings.model or "", tier if isinstance(tier, str) else None)
    return replace(settings, prices=listed)


def list_prices(base_url: str, model: str, service_tier: str | None = None) -> PriceCard:
    """Return the list's prices of a model. An address without TLS belongs to no provider, so the list is not loaded."""
    if not base_url.startswith("https://"):
        return _UNKNOWN
    return ListPrices(base_url=base_url, model=model, service_tier=service_tier)


def configured_prices(backbone: Mapping[str, Any]) -> PriceCard:
    """Return the prices of a backbone's configuration: its own, else today's of the list, for short prompts."""
    configured = {name: value for name, value in (backbone.get("prices") or {}).items() if name in asdict(_UNKNOWN)}
    card = PriceCard(**configured)
    if card != _UNKNOWN:
        return card
    listed = list_prices(backbone.get("base_url") or "", backbone.get("model") or "")
    return listed.card if isinstance(listed, ListPrices) else listed


def _per_million(price: Any) -> float | None:
    """Return the price of a million tokens. Where long prompts cost more, it is the price for short ones."""
    base = getattr(price, "base", price)
    return None if base is None else float(base)
