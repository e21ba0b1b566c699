"""What an estimate says: one sentence with what a run typically takes and its bound, and one with its time."""

from __future__ import annotations

from collections.abc import Collection

from ace_bench.runners.rehearsal import Estimate
from ace_bench.runners.summary import duration
from ace_bench.store.call_log import Account

_MILLION = 1_000_000


def describe(estimate: Estimate) -> str:
    """Say what a run typically takes and its bound, and what the bound assumes."""
    about = about_in_words(estimate.typical, estimate.high)
    prices = prices_in_words(estimate.price_lists, known=estimate.typical.usage.usd is not None)
    return f"Estimate: {about}.\n{most_in_words(limited=estimate.limited, answered_by=estimate.answered_by)} {prices}"


def about_in_words(typical: Account, high: Account) -> str:
    """Return the typical cost and its bound."""
    return f"about {cost_in_words(typical)}; at most {cost_in_words(high)}"


def most_in_words(*, limited: bool, answered_by: str) -> str:
    """Say what the bound assumes, with replies that are ``limited``, or like those of the rehearsal's stand-in."""
    assumed = (
        "each reply as long as backbone.sampling.max_tokens allows, unreadable JSON asked for again"
        if limited
        else f"replies like those of {answered_by}"
    )
    return f"The most is with {assumed}, all retries and a context that keeps growing."


def prices_in_words(price_lists: Collection[str], *, known: bool) -> str:
    """Say whose prices the dollars are."""
    if not known:
        return "No price is known for this model at this address: set backbone.prices."
    listed = f"at the list prices of {', '.join(price_lists)}, " if price_lists else ""
    return f"Dollars are {listed}without cache discounts."


def describe_time(estimate: Estimate, tokens_per_s: float | None) -> str | None:
    """Say how long a run takes at the speed of the probe, ``None`` if that is unknown.

    It is the time of writing alone, by a server that does nothing else.
    """
    if not tokens_per_s or not estimate.chain:
        return None
    least = duration(estimate.chain / tokens_per_s)
    return f"It takes {least} or more, as a call of the probe wrote {tokens_per_s:,.0f} tokens a second."


def cost_in_words(cost: Account) -> str:
    """Return calls, tokens and dollars, such as "720 calls, 0.71 million tokens, $0.31"."""
    return f"{cost.calls:,} calls, {_tokens_in_words(cost.usage.tokens)}, {_dollars_in_words(cost.usage.usd)}"


def _dollars_in_words(usd: float | None) -> str:
    if usd is None:
        return "dollars n/a"
    return "under $0.01" if 0 < usd < 0.01 else f"${usd:,.2f}"


def _tokens_in_words(tokens: float | None) -> str:
    """Return a count of tokens in about two digits, in millions where it is large."""
    if tokens is None:
        return "tokens n/a"
    if tokens < _MILLION / 10:
        return f"{tokens:,.0f} tokens"
    return f"{float(f'{tokens / _MILLION:.2g}'):,g} million tokens"
