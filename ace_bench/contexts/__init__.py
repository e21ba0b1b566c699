"""What methods evolve: playbooks and the other kinds of context, all immutable values."""

from ace_bench.contexts.export import load, system_prompt

__all__ = ["load", "system_prompt"]
