"""The playbook as text, edited as the authors' code edits it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ace_bench.contexts.loading import restore
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.methods.official.playbook import TextPlaybook, load_text_playbook
from ace_bench.playbook.authors_text import Dialect
from tests.outcomes import outcomes
from tests.playbook.making import SAMPLE, count, playbook

READ, ROUND = (
    "[sai-00004] helpful=6 harmful=1 :: Read the unit.",
    "[err-00002] helpful=1 harmful=1 :: Rounding too early.",
)
SAME = "[err-00002] helpful=0 harmful=0 :: The same id."
BULLETS = f"""## STRATEGIES & INSIGHTS
{READ}
 - it is in the table

## COMMON MISTAKES TO AVOID
  [err-00002] helpful=1  harmful=1 ::  Rounding too early.\x20
{SAME}

## OTHERS
"""


def book(text: str, dialect: Dialect = "finance") -> TextPlaybook:
    return TextPlaybook.build_from(text, dialect=dialect, count=count)


def add(section: object, content: object) -> dict[str, Any]:
    return {"type": "ADD", "section": section, "content": content}


def test_it_starts_with_the_headings_of_the_authors() -> None:
    start = TextPlaybook.start(("strategies_and_insights", "others"), dialect="finance", count=count)
    assert (start.text, start.size, start.next_number) == ("## STRATEGIES & INSIGHTS\n\n## OTHERS", 0, 1)
    assert start.tokens == count(start.text)
    assert TextPlaybook(text="", dialect="finance").dump() == book("").dump()


def add_all(case: tuple[Dialect, str, list[tuple[object, ...]]]) -> str:
    """Add bullets of sections and contents; one without a content is no ADD."""
    dialect, text, added = case
    operations = [add(*one) if len(one) == 2 else {"section": one[0], "content": "x"} for one in added]
    return book(text, dialect).with_bullets_added(operations, count=count).text


# Dialect, text of a playbook and operations: a section is found by its words, and the text afterwards.
OFFICIAL_PLAYBOOK = [
    (
        "finance",
        "## COMMON MISTAKES TO AVOID\n[a-1] helpful=0 harmful=0 :: x\n## PROBLEM-SOLVING HEURISTICS\n\n## OTHERS",
        [("common_mistakes_to_avoid", "new")],
    ),
    (
        "finance",
        "## COMMON MISTAKES TO AVOID\n[a-1] helpful=0 harmful=0 :: x\n## PROBLEM-SOLVING HEURISTICS\n\n## OTHERS",
        [("problem_solving_heuristics", "new")],
    ),
    (
        "finance",
        "## COMMON MISTAKES TO AVOID\n[a-1] helpful=0 harmful=0 :: x\n## PROBLEM-SOLVING HEURISTICS\n\n## OTHERS",
        [("problem-solving_heuristics", "new")],
    ),
    (
        "finance",
        "## COMMON MISTAKES TO AVOID\n[a-1] helpful=0 harmful=0 :: x\n## PROBLEM-SOLVING HEURISTICS\n\n## OTHERS",
        [("general", "new")],
    ),
    (
        "finance",
        "## COMMON MISTAKES TO AVOID\n[a-1] helpful=0 harmful=0 :: x\n## PROBLEM-SOLVING HEURISTICS\n\n## OTHERS",
        [(" others", "new")],
    ),
    ("finance", "## OTHERS:", [("others", "new")]),
    ("finance", "## OTHERS\n[misc-00001] helpful=0 harmful=0 :: old", [("others", "new"), ("general", "new")]),
    (
        "appworld",
        "## TROUBLESHOOTING AND PITFALLS:\n[ts-00041] helpful=3 harmful=0 :: old\n\n## OTHERS\n",
        [("troubleshooting_and_pitfalls", "new")],
    ),
    # Operations at which the authors' code fails are dropped.
    ("finance", "My playbook\n## OTHERS", [("others", "fine"), ("others", "x")]),
    ("finance", "(empty)", [("others", "fine"), ("others", "x")]),
    ("finance", "## OTHERS", [("others", "fine"), (None, "x")]),
    ("finance", "## OTHERS", [("others", "fine"), ("others",)]),
    ("finance", "## TWO  SPACES", [("others", "fine"), ("two  spaces", "x")]),
    ("finance", "## OTHERS", [("others", "fine"), ("others", "\ud800")]),
]


def test_bullets_are_added_as_recorded(snapshot) -> None:
    assert outcomes(add_all, OFFICIAL_PLAYBOOK) == snapshot


def test_new_bullets_end_their_section_after_its_blank_lines() -> None:
    strategies, others = "Strategies & Insights", add("OTHERS", " blanks kept ")
    added = [add(strategies, "one\ntwo\n"), others, {"type": "UPDATE", "id": "x"}, add(strategies, None)]
    new = book(BULLETS).with_bullets_added(added, count=count)
    first, rest = BULLETS.rstrip().split("\n## COMMON")
    bullets = "[sai-00001] helpful=0 harmful=0 :: one\ntwo\n\n[sai-00003] helpful=0 harmful=0 :: None"
    end = "[misc-00002] helpful=0 harmful=0 ::  blanks kept "
    assert new.text == f"{first}\n{bullets}\n## COMMON{rest}\n{end}"
    assert (new.size, new.next_number, new.tokens) == (6, 4, count(new.text))


def test_tags_are_counted_and_their_lines_written_anew() -> None:
    tags = [
        {"id": "err-00002", "tag": "harmful"},
        {"id": "err-00002", "tag": "helpful"},
        {"bullet": "sai-00004", "tag": "HELPFUL"},
        {"tag": "helpful"},
        {"id": ["sai-00004"], "tag": "helpful"},
        "err-00002",
    ]
    lines = book(BULLETS).with_tags(tags, count=count).text.split("\n")
    assert lines[1] == READ
    assert lines[5:] == [
        ROUND.replace("helpful=1", "helpful=2"),
        SAME.replace("helpful=0", "helpful=1"),
        "",
        "## OTHERS",
    ]
    for nothing in (None, [], "sai-00004", [{"tag": "helpful"}, 3]):
        assert book(BULLETS).with_tags(nothing, count=count) == book(BULLETS)


def test_prompts_get_the_text_its_counts_and_excerpts_under_the_names_of_a_playbook() -> None:
    fields = book(BULLETS).render(SAMPLE)
    assert fields.keys() == playbook("x").render(SAMPLE).keys()
    assert fields["playbook"] == fields["official_playbook"]() == fields["official_playbook"](counters=False) == BULLETS
    assert fields["official_excerpt"](["err-00002", "misc-00009", "sai-00004"]) == f"{READ}\n{ROUND}\n{SAME}"
    assert json.loads(fields["statistics"]())["total_bullets"] == 3
    assert book("## A\n [a-1] helpful=1 harmful=0 ::  x\ny\n").prompt_text() == "## A\n[a-1] x\ny\n"


@pytest.mark.parametrize("text", [BULLETS, "", "\r\n##\u2028 \x85x\n\n"])
def test_it_is_saved_and_patched_exactly(text: str) -> None:
    before = book(text)
    after = book(text + "\n[a-00009] helpful=0 harmful=0 :: x").with_tags([{"id": "a-00009"}], count=count)
    assert restore(before.dump()) == before
    assert before.patched(after.patch(before)) == after
    assert before.patched(after.patch(before)).digest == after.digest != before.digest


def test_a_file_is_taken_as_it_is_if_it_is_of_this_kind(tmp_path: Path) -> None:
    path = tmp_path / "playbook.txt"
    path.write_bytes(BULLETS.replace("\n", "\r\n").encode())
    assert load_text_playbook(path, dialect="finance", count=count) == book(BULLETS)
    assert load_text_playbook(path, dialect="appworld", count=count).next_number == 5
    path.write_text(json.dumps(book(BULLETS).dump()))
    assert load_text_playbook(path, dialect="finance", count=len).tokens == len(BULLETS)
    with pytest.raises(ConfigError, match="dialect finance"):
        load_text_playbook(path, dialect="appworld", count=count)
    assert book("[a-1000000000] x", "appworld").next_number == 10**9 + 1
    with pytest.raises(DataError, match="number above 1000000000"):
        book("[a-1000000001] x", "appworld")
    path.write_text(json.dumps(playbook("one").dump()))
    with pytest.raises(ConfigError, match="kind playbook;"):
        load_text_playbook(path, dialect="finance", count=count)


def test_readers_get_its_bullets_with_all_their_lines_and_what_each_step_changed() -> None:
    before = book(BULLETS)
    later = before.with_bullets_added([add("others", "new")], count=count)
    first, (change,) = before.bullet_changes([later], [["s1"]])
    assert [one["id"] for one in first] == ["sai-00004", "err-00002", "err-00002 (2)"]
    assert first[0]["content"] == "Read the unit.\n - it is in the table"
    assert [(one["content"], one["created"], one["sources"]) for one in change["set"]] == [("new", 0, ["s1"])]
    assert change["removed"] == []
    assert later.bullet_changes([before], [[]])[1][0]["removed"] == ["misc-00001"]
