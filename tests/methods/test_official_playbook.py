"""The playbook as text, edited as the authors' code edits it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ace_bench.contexts.loading import restore
from ace_bench.contexts.playbook.authors_text import Dialect
from ace_bench.core.errors import ConfigError
from ace_bench.core.types import Sample
from ace_bench.methods.official.editing import DroppedOperations
from ace_bench.methods.official.playbook import TextPlaybook, load_text_playbook
from tests.contexts.making import count, playbook

SAMPLE = Sample(id="1", split="train", inputs={})
BULLETS = """## STRATEGIES & INSIGHTS
[sai-00004] helpful=6 harmful=1 :: Read the unit.
 - it is in the table

## COMMON MISTAKES TO AVOID
  [err-00002] helpful=1  harmful=1 ::  Rounding too early. 
[err-00002] helpful=0 harmful=0 :: The same id.

## OTHERS
"""  # noqa: W291


def book(text: str, dialect: Dialect = "finance") -> TextPlaybook:
    return TextPlaybook.of_text(text, dialect=dialect, count=count)


def add(section: object, content: object) -> dict[str, Any]:
    return {"type": "ADD", "section": section, "content": content}


def added(text: str, *operations: dict[str, Any], dialect: Dialect = "finance") -> str:
    return book(text, dialect).with_bullets_added(operations, count=count).text


def test_it_starts_with_the_headings_of_the_authors() -> None:
    sections = ("strategies_and_insights", "problem_solving_heuristics", "others")
    finance = TextPlaybook.start(sections, dialect="finance", count=count)
    assert finance.text == "## STRATEGIES & INSIGHTS\n\n## PROBLEM-SOLVING HEURISTICS\n\n## OTHERS"
    sections = ("apis_to_use_for_specific_information", "troubleshooting_and_pitfalls")
    appworld = TextPlaybook.start(sections, dialect="appworld", count=count)
    assert appworld.text == "## APIs TO USE FOR SPECIFIC INFORMATION\n\n## TROUBLESHOOTING AND PITFALLS:"
    assert (finance.size, finance.next_number, finance.tokens) == (0, 1, count(finance.text))


def test_new_bullets_end_their_section_after_its_blank_lines() -> None:
    new = book(BULLETS).with_bullets_added(
        [
            add("strategies_and_insights", "one\ntwo\n"),
            add("OTHERS", " blanks kept "),
            {"type": "UPDATE", "id": "x"},
            add("Strategies & Insights", None),
        ],
        count=count,
    )
    assert new.text == (
        "## STRATEGIES & INSIGHTS\n"
        "[sai-00004] helpful=6 harmful=1 :: Read the unit.\n"
        " - it is in the table\n"
        "\n"
        "[sai-00001] helpful=0 harmful=0 :: one\ntwo\n\n"
        "[sai-00003] helpful=0 harmful=0 :: None\n"
        "## COMMON MISTAKES TO AVOID\n"
        "  [err-00002] helpful=1  harmful=1 ::  Rounding too early. \n"
        "[err-00002] helpful=0 harmful=0 :: The same id.\n"
        "\n"
        "## OTHERS\n"
        "[misc-00002] helpful=0 harmful=0 ::  blanks kept "
    )
    assert (new.size, new.next_number, new.tokens) == (6, 4, count(new.text))


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ("common_mistakes_to_avoid", 2),
        ("problem_solving_heuristics", 5),  # the heading has a hyphen, so this is another section: others
        ("problem-solving_heuristics", 4),
        ("general", 5),
        (" others", 5),
    ],
)
def test_a_section_is_found_by_its_words(section: str, line: int) -> None:
    text = "## COMMON MISTAKES TO AVOID\n[a-1] helpful=0 harmful=0 :: x\n## PROBLEM-SOLVING HEURISTICS\n\n## OTHERS"
    assert added(text, add(section, "new")).split("\n")[line].endswith(":: new")


def test_bullets_without_section_follow_the_heading_of_others_or_end_the_text() -> None:
    text = "## OTHERS\n[misc-00001] helpful=0 harmful=0 :: old"
    assert added(text, add("others", "last"), add("general", "first")).split("\n") == [
        "## OTHERS",
        "[gene-00002] helpful=0 harmful=0 :: first",
        "[misc-00001] helpful=0 harmful=0 :: old",
        "[misc-00001] helpful=0 harmful=0 :: last",
    ]
    assert added("## OTHERS:", add("others", "x")) == "## OTHERS:\n[misc-00001] helpful=0 harmful=0 :: x"


def test_appworld_numbers_on_and_writes_no_counters() -> None:
    text = "## TROUBLESHOOTING AND PITFALLS:\n[ts-00041] helpful=3 harmful=0 :: old\n\n## OTHERS\n"
    assert added(text, add("troubleshooting_and_pitfalls", "new"), dialect="appworld") == (
        "## TROUBLESHOOTING AND PITFALLS:\n[ts-00041] helpful=3 harmful=0 :: old\n\n[ts-00042] new\n## OTHERS"
    )


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("My playbook\n## OTHERS", add("others", "x")),
        ("(empty)", add("others", "x")),
        ("## OTHERS", add(None, "x")),
        ("## OTHERS", {"section": "others", "content": "x"}),
        ("## TWO  SPACES", add("two  spaces", "x")),
        ("## OTHERS", add("others", "\ud800")),
    ],
)
def test_operations_at_which_the_authors_code_fails_are_dropped(text: str, operation: dict[str, Any]) -> None:
    with pytest.raises(DroppedOperations):
        book(text).with_bullets_added([add("others", "fine"), operation], count=count)


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
    assert lines[1] == "[sai-00004] helpful=6 harmful=1 :: Read the unit."
    assert lines[5:] == [
        "[err-00002] helpful=2 harmful=1 :: Rounding too early.",
        "[err-00002] helpful=1 harmful=0 :: The same id.",
        "",
        "## OTHERS",
    ]


@pytest.mark.parametrize("tags", [None, [], "sai-00004", [{"tag": "helpful"}, 3]])
def test_without_an_id_the_text_stays_as_it_is(tags: object) -> None:
    assert book(BULLETS).with_tags(tags, count=count) == book(BULLETS)


def test_statistics_are_the_json_of_the_curators_prompt() -> None:
    text = BULLETS.replace("harmful=0", "harmful=2")
    assert json.loads(book(text).statistics) == {
        "total_bullets": 3,
        "high_performing": 1,
        "problematic": 2,
        "unused": 0,
        "by_section": {
            "STRATEGIES & INSIGHTS": {"count": 1, "helpful": 6, "harmful": 1},
            "COMMON MISTAKES TO AVOID": {"count": 2, "helpful": 1, "harmful": 3},
        },
    }
    assert book(BULLETS, "appworld").statistics.startswith('{\n  "total_bullets": 3,\n  "by_section": {\n    "STRAT')


def test_an_excerpt_keeps_the_order_of_the_text() -> None:
    excerpt = book(BULLETS).excerpt(["err-00002", "misc-00009", "sai-00004"])
    assert excerpt == (
        "[sai-00004] helpful=6 harmful=1 :: Read the unit.\n"
        "[err-00002] helpful=1 harmful=1 :: Rounding too early.\n"
        "[err-00002] helpful=0 harmful=0 :: The same id."
    )
    assert book(BULLETS).excerpt([]) == "(No bullets used by generator)"
    none_found = "(Generator referenced bullet IDs but none were found in playbook)"
    assert book(BULLETS).excerpt(["misc-00009"]) == none_found


def test_prompts_get_the_text_under_the_names_of_a_playbook() -> None:
    fields = book(BULLETS).render(SAMPLE)
    assert fields.keys() == playbook("x").render(SAMPLE).keys()
    assert fields["playbook"] == fields["official_playbook"]() == fields["official_playbook"](counters=False) == BULLETS
    assert fields["statistics"]() == book(BULLETS).statistics


@pytest.mark.parametrize("text", [BULLETS, "", "\r\n##\u2028 \x85x\n\n"])
def test_it_is_saved_and_patched_exactly(text: str) -> None:
    before = book(text)
    after = book(text + "\n[a-00009] helpful=0 harmful=0 :: x").with_tags([{"id": "a-00009"}], count=count)
    assert restore(before.dump()) == before
    assert before.patched(after.patch(before)) == after
    assert before.patched(after.patch(before)).digest == after.digest != before.digest


def test_a_text_file_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "playbook.txt"
    path.write_bytes(BULLETS.replace("\n", "\r\n").encode())
    loaded = load_text_playbook(path, dialect="finance", count=count)
    assert (loaded.text, loaded.next_number) == (BULLETS, 1)
    assert load_text_playbook(path, dialect="appworld", count=count).next_number == 5


def test_a_saved_playbook_is_loaded_if_it_is_of_this_kind(tmp_path: Path) -> None:
    path = tmp_path / "final.json"
    path.write_text(json.dumps(book(BULLETS).dump()))
    assert load_text_playbook(path, dialect="finance", count=len) == TextPlaybook.of_text(
        BULLETS, dialect="finance", count=len
    )
    with pytest.raises(ConfigError, match="dialect finance"):
        load_text_playbook(path, dialect="appworld", count=count)
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
