"""Shared by the two finance tasks, FiNER and Formula: the publisher's files and the playbook's sections."""

from __future__ import annotations

OFFICIAL = "https://github.com/ace-agent/ace/raw/ba78d34/finance/data"
"""Where the authors of ACE publish both data sets, at a fixed revision."""

SECTIONS = (
    "strategies_and_insights",
    "formulas_and_calculations",
    "code_snippets_and_templates",
    "common_mistakes_to_avoid",
    "problem_solving_heuristics",
    "context_clues_and_indicators",
    "others",
)
"""Sections of the official empty playbook for finance."""
