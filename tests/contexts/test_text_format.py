"""The official playbook text, in and out."""

from __future__ import annotations

import json
from collections import Counter
from textwrap import dedent

import pytest
from hypothesis import given

from ace_bench.contexts.playbook.authors_text import Line, bullet_lines, statistics
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.text_format import Imported, read_text
from ace_bench.core.errors import DataError

from .making import SECTIONS, bullet, count, examples, ids, playbooks


def read(text: str, sections: tuple[str, ...] = SECTIONS) -> Imported:
    return read_text(text, sections=sections, count=count)


def contents_of(text: str) -> dict[str, str]:
    return {one.id: one.content for one in read(dedent(text)).playbook.bullets}


def test_the_finance_dialect() -> None:
    imported = read(
        dedent("""\
        ## STRATEGIES & INSIGHTS
        [sai-00002] helpful=3 harmful=1 :: Look for the unit.

        ## COMMON MISTAKES TO AVOID:
        ## OTHERS
        [misc-00001] helpful=0 harmful=0 :: Answer with the tag alone.
        """)
    )
    book = imported.playbook
    assert [(one.id, one.section, one.content) for one in book.bullets] == [
        ("misc-00001", "others", "Answer with the tag alone."),
        ("sai-00002", "strategies_and_insights", "Look for the unit."),
    ]
    assert book.bullets[1] == bullet(
        2, "Look for the unit.", "strategies_and_insights", helpful=3, harmful=1, created=-1, changed=-1
    )
    assert book.sections == (*SECTIONS, "common_mistakes_to_avoid")
    assert book.next_number == 3
    assert imported.notes == ()


def test_the_appworld_dialect() -> None:
    imported = read(
        dedent("""\
        ## APIs TO USE FOR SPECIFIC INFORMATION
        [api-00004] Ask the supervisor app.

        ## USEFUL CODE SNIPPETS AND TEMPLATES

        [code-00013] Log in first:
        ```python
        ## get the token
        token = login()

        # then use it
        ```
        - keep it
        - never print it
        ## TROUBLESHOOTING AND PITFALLS:

        ## OTHERS
        [misc-00003] Close code blocks with ``` and a newline.
        """),
        sections=(),
    )
    book = imported.playbook
    assert {one.id: one.content for one in book.bullets} == {
        "misc-00003": "Close code blocks with ``` and a newline.",
        "api-00004": "Ask the supervisor app.",
        "code-00013": "Log in first:\n```python\n## get the token\ntoken = login()\n\n# then use it\n```\n"
        "- keep it\n- never print it",
    }
    assert book.sections == (
        "apis_to_use_for_specific_information",
        "useful_code_snippets_and_templates",
        "troubleshooting_and_pitfalls",
        "others",
    )
    assert book.next_number == 14


@pytest.mark.parametrize(
    "line",
    [
        "  [a-1]   helpful = 2 , harmful=1::  text  ",
        "[a-1]helpful=2 harmful=1 :: text",
        "\t[a-1] helpful=2   harmful=1 neutral=0 ::text",
        "\ufeff[a-1] helpful=2 harmful=1 :: text\r\n\r\n",
    ],
)
def test_odd_spacing(line: str) -> None:
    (one,) = read(f"##OTHERS\n{line}\n").playbook.bullets
    assert (one.id, one.helpful, one.harmful, one.neutral, one.content) == ("a-1", 2, 1, 0, "text")


def test_text_outside_of_bullets_is_noted() -> None:
    imported = read("My playbook\n\n[a-00001] first\n## OTHERS\nintroduction\n[a-00002] second\n")
    assert ids(imported.playbook) == ["a-00001", "a-00002"]
    assert {one.section for one in imported.playbook.bullets} == {"others"}
    assert imported.notes == (
        "line 1: text outside of bullets stays in the official text alone: 'My playbook'",
        "line 5: text outside of bullets stays in the official text alone: 'introduction'",
    )


def test_ids_used_twice_and_ids_without_number_are_replaced_and_noted() -> None:
    imported = read(
        "## OTHERS\n[a-00007] x\n[a-00007] y\n[rule_one] helpful=1 harmful=0 :: z\n[b-00007] w\n[c-00001] :: \n"
        "[d-00002] helpful=1 harmful=0 ::\n"
    )
    assert {one.id: one.content for one in imported.playbook.bullets} == {
        "c-00001": "::",
        "a-00007": "x",
        "b-00007": "w",
        "others-00008": "y",
        "others-00009": "z",
    }
    assert imported.playbook.next_number == 10
    said = (("line 3: id [a-00007]", "used twice"), ("line 4: id [rule_one]", "no number"), ("line 7: ", "no content"))
    for note, (start, reason) in zip(imported.notes, said, strict=True):
        assert note.startswith(start)
        assert reason in note


def test_what_only_resembles_a_bullet_or_heading_is_content() -> None:
    assert contents_of("""\
        ## OTHERS
        [a-00001] See
        [1] a footnote
        [x] a box
        [note] helpful advice
        [link-00001](http://example.org)
        ### a smaller heading
        # a comment
        ##
        [a-00002] end
        """) == {
        "a-00001": "See\n[1] a footnote\n[x] a box\n[note] helpful advice\n[link-00001](http://example.org)\n"
        "### a smaller heading\n# a comment\n##",
        "a-00002": "end",
    }


def test_a_fence_never_closed_does_not_swallow_headings_or_bullets() -> None:
    book = read("## A\n[a-00001] code ```python\nx = 1\n## B\n[b-00002] next\n```\n## C\n[c-00003] last").playbook
    assert {one.id: (one.section, one.content) for one in book.bullets} == {
        "a-00001": ("a", "code ```python\nx = 1"),
        "b-00002": ("b", "next\n```"),
        "c-00003": ("c", "last"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("## OTHERS\n\n[a-00001] helpful=many harmful=0 :: x", "line 3: counters"),
        ("[a-00001] helpful=1 harmful=0 no colons", "line 1: counters"),
        ("just prose\nand more", "line 1: no playbook"),
        ("", "line 1: no playbook"),
        ("[a-9999999999999] helpful=1 harmful=0 :: x", "number"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_line(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(text)


def test_writing() -> None:
    book = Playbook.of(
        [
            bullet(1, "one\n## OTHERS\n[x-00009] two", neutral=2),
            bullet(2, "three", "common_mistakes", helpful=1),
        ],
        sections=SECTIONS,
    )
    assert book.official_text() == dedent("""\
        ## STRATEGIES AND INSIGHTS

        ## COMMON MISTAKES
        [cm-00002] helpful=1 harmful=0 :: three

        ## OTHERS
        [others-00001] helpful=0 harmful=0 :: one
        \\## OTHERS
        \\[x-00009] two
        """)
    assert book.official_text(counters=False).split("\n")[3] == "[cm-00002] three"


@given(playbooks())
@examples(100)
def test_writing_and_reading_lose_only_neutral_votes(book: Playbook) -> None:
    again = read(book.official_text())
    fields = ("id", "section", "content", "helpful", "harmful", "tokens")
    assert again.notes == ()
    assert [[getattr(one, name) for name in fields] for one in again.playbook.bullets] == [
        [getattr(one, name) for name in fields] for one in book.bullets
    ]
    assert again.playbook.sections == book.sections
    assert again.playbook.official_text() == book.official_text()
    assert again.playbook.layout is None


@pytest.mark.slow
@given(playbooks())
@examples(100)
def test_the_authors_code_sees_every_bullet_that_is_written(book: Playbook) -> None:
    text = book.official_text()
    by_section = sorted(book.bullets, key=lambda one: book.sections.index(one.section))
    shown = [Line(one.id, one.helpful, one.harmful, one.content.split("\n")[0].strip()) for one in by_section]
    assert bullet_lines(text, "finance") == shown
    counted = json.loads(statistics(text, "finance"))["by_section"]
    counts = {title.lower().replace(" ", "_"): one["count"] for title, one in counted.items()}
    assert counts == Counter(one.section for one in book.bullets)
