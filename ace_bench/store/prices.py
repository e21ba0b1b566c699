"""The price of tokens (paper, section 4.7 and appendix A.3)."""

from __future__ import annotations

from dataclasses import dataclass

from ace_bench.core.settings import NotNegative
from ace_bench.core.types import Usage

_MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class PriceCard:
    """Dollars per million tokens; ``None`` is unknown. A provider without a discount has ``cached_input = input``."""

    input: NotNegative | None = None
    cached_input: NotNegative | None = None
    output: NotNegative | None = None

    def dollars(self, usage: Usage) -> float | None:
        """Return the price of a call; ``None`` if a price or token count is unknown."""
        parts = (self.input_dollars(usage.prompt, usage.cached), _cost(usage.completion, self.output))
        return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]

    def input_dollars(self, prompt: int | None, cached: int | None) -> float | None:
        """Return the price of the input; ``cached`` tokens have their own price."""
        if prompt is None or self.input is None:
            return None
        if self.cached_input == self.input:
            return _cost(prompt, self.input)
        if cached is None:
            return None
        found = min(cached, prompt)
        fresh, reused = _cost(prompt - found, self.input), _cost(found, self.cached_input)
        return None if fresh is None or reused is None else fresh + reused


def _cost(tokens: int | None, price: float | None) -> float | None:
    if tokens == 0:
        return 0.0
    return None if tokens is None or price is None else tokens * price / _MILLION
