"""The authors' playbook text: titles, prefixes of ids, excerpts and counts."""

from __future__ import annotations

import json
from typing import get_args

from ace_bench.playbook.authors_text import (
    Dialect,
    Line,
    dialect_of,
    excerpt,
    read_line,
    section_key,
    statistics,
)

LINES = {
    "a-1": "[a-1] helpful=6 harmful=1 :: much",
    "a-2": "[a-2] helpful=6 harmful=2 :: often wrong, too",
    "b-3": "[b-3] helpful=1 harmful=1 :: as often wrong",
    "b-4": "[b-4] helpful=0 harmful=0 :: never used",
    "b-5": "[b-5] helpful=5 harmful=0 :: good",
}
TEXT = "{a-1}\n  {a-2}\n## ONE\n{b-3}\ntext\n## TWO\n## ONE\n{b-4}\n{b-5}\n{b-5}".format_map(LINES)


def test_appworlds_lines_have_no_counters_and_its_titles_may_end_in_a_colon() -> None:
    assert read_line("  [a-1]  text ", "appworld") == Line("a-1", 0, 0, "text")
    assert (read_line("[a-1] text", "finance"), read_line("text", "appworld")) == (None, None)
    keys = [section_key("Hard Rules & More:", dialect) for dialect in get_args(Dialect)]
    assert keys == ["hard_rules_and_more:", "hard_rules_and_more"]


def test_a_task_is_appworlds_if_the_authors_appworld_code_knows_all_its_sections() -> None:
    assert dialect_of(["verification_checklist", "others"]) == "appworld"
    assert dialect_of(["verification_checklist", "own"]) == "finance"


def test_an_excerpt_holds_the_lines_of_some_ids_in_the_order_of_the_text() -> None:
    assert excerpt(TEXT, ["b-5", "a-2", "x"], "finance").split("\n") == [LINES["a-2"], LINES["b-5"], LINES["b-5"]]
    assert excerpt(TEXT, [], "finance") == "(No bullets used by generator)"
    assert excerpt(TEXT, ["x"], "finance") == "(Generator referenced bullet IDs but none were found in playbook)"


def test_statistics_count_bullets_in_total_and_by_section() -> None:
    sections = {"general": {"count": 2, "helpful": 12, "harmful": 3}, "ONE": {"count": 4, "helpful": 11, "harmful": 1}}
    total = {"total_bullets": 6, "high_performing": 1, "problematic": 1, "unused": 1}
    assert statistics(TEXT, "finance") == json.dumps({**total, "by_section": sections}, indent=2)
    plain = {"general": {"count": 2}, "ONE": {"count": 4}}
    assert statistics(TEXT, "appworld") == json.dumps({"total_bullets": 6, "by_section": plain}, indent=2)
