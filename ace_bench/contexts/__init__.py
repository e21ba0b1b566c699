"""Contexts: playbooks and the other kinds, all immutable values."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ace_bench.contexts.loading import load, system_prompt

__all__ = ["load", "system_prompt"]


def __getattr__(name: str) -> Any:
    """Import what this package exports on its first use: it takes all kinds of contexts."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ace_bench.contexts import loading

    return getattr(loading, name)
