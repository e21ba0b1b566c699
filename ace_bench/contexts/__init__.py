"""Contexts: playbooks and the other kinds, all immutable values."""

from ace_bench.contexts.export import load, system_prompt

__all__ = ["load", "system_prompt"]
