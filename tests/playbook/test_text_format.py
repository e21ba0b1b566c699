"""The official playbook text, in and out, and the text around the bullets of an imported playbook."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.errors import DataError
from ace_bench.playbook.apply import Add, Merge, Operation, Remove, Tag, Update, Votes
from ace_bench.playbook.playbook import Playbook
from ace_bench.playbook.text_format import Imported, read_text
from tests.outcomes import outcomes

from .making import SAMPLE, SECTIONS, bullet, count, deltas, examples, playbooks, rejected, run

FIELDS = ("id", "section", "content", "helpful", "harmful")


def read(text: str, *sections: str) -> Imported:
    return read_text(text, sections=sections, count=count)


def fields_of(book: Playbook) -> list[tuple[object, ...]]:
    return [tuple(getattr(one, name) for name in FIELDS) for one in book.bullets]


def describe(text: str) -> str:
    imported = read(text, *SECTIONS)
    book = imported.playbook
    return f"{fields_of(book)}, {book.sections[len(SECTIONS) :]}, {book.next_number}, {imported.notes}"


# Text of a playbook: bullets with their counters, sections, the next number and notes; or why it cannot be read.
TEXTS = [
    (
        "## STRATEGIES & INSIGHTS\n[sai-00002] helpful=3 harmful=1 :: Look for the unit.\n\n## COMMON "
        "MISTAKES TO AVOID:\n## OTHERS\n[misc-00001] helpful=0 harmful=0 :: Answer with the tag alone.\n"
    ),
    (
        "## APIs TO USE FOR SPECIFIC INFORMATION\n[api-00004] Ask the supervisor app.\n\n## USEFUL CODE "
        "SNIPPETS AND TEMPLATES\n\n[code-00013] Log in first:\n```python\n## get the token\ntoken = "
        "login()\n\n# then use it\n```\n- keep it\n- never print it\n## TROUBLESHOOTING AND PITFALLS:\n\n"
        "## OTHERS\n[misc-00003] Close code blocks with ``` and a newline.\n"
    ),
    "##OTHERS\n  [a-1]   helpful = 2 , harmful=1::  text  \n",
    "##OTHERS\n[a-1]helpful=2 harmful=1 :: text\n",
    "##OTHERS\n\t[a-1] helpful=2   harmful=1 neutral=0 ::text\n",
    "##OTHERS\n\ufeff[a-1] helpful=2 harmful=1 :: text\r\n\r\n\n",
    # What was changed or left out is noted.
    (
        "My playbook\n\n[a-00007] x\n## OTHERS\nintroduction\n[a-00007] y\n[rule_one] helpful=1 harmful=0 "
        ":: z\n[b-00007] w\n[c-00001] :: \n[d-00002] helpful=1 harmful=0 ::\n"
    ),
    "[rule] helpful=1 harmful=0 :: x",
    # What only resembles a bullet or heading is content, and a fence never closed swallows none.
    (
        "## OTHERS\n[a-00001] See\n[1] a footnote\n[x] a box\n[note] helpful advice\n"
        "[link-00001](http://example.org)\n### smaller\n# a\n##\n[a-00002] end"
    ),
    "## A\n[a-00001] code ```python\nx = 1\n## B\n[b-00002] next\n```\n## C\n[c-00003] last",
    # What cannot be read is an error with its line.
    "## OTHERS\n\n[a-00001] helpful=many harmful=0 :: x",
    "[a-00001] helpful=1 harmful=0 no colons",
    "just prose\nand more",
    "",
    "[a-9999999999999] helpful=1 harmful=0 :: x",
    # Markdown lists, with ids of others.
    (
        "# Playbook\n\n## DO\n- [strat-00001] helpful=15 harmful=2 :: a\n  - detail\n- [strat-00002] "
        "helpful=1 harmful=0 :: b\n\n## DO NOT\n* **[err-00003]** helpful=0 harmful=1 :: c"
    ),
    "## DO\n1. [strat-00001] a\n2) [strat-00002] b\n+ `[strat-00003]` c\n• [strat-00004] d",
    "## DO\n[a-00001] helpful=1 harmful=0 :: a\n- [a-00002] helpful=2 harmful=0 :: b\nSee:\n- [a-00001] above",
    (
        "## DO\n[550e8400-e29b-41d4-a716-446655440000] helpful=1 harmful=0 :: a\n"
        "[550e8400-e29b-41d4-a716-4466554400ab] b\n[x-00003] helpful=1 harmful=0 :: c"
    ),
    "## DO\n\n## DO NOT\n",
    # A line that resembles a bullet and is none is an error, and so is a file without any.
    "## DO\n- check the units\n- round down",
    "## DO\nProse alone.",
    "## DO\n[a-00001] helpful=1 harmful=0 ::",
    "## DO\n- [strat 1] helpful=15 harmful=2 :: a",
    "## DO\n- strat-00001 (helpful: 15, harmful: 2) a",
    "## DO\n[a-00001] helpful=1 harmful=0 :: a\n(a-00002) helpful=2 harmful=0 :: b",
    "## DO\n- [strat-1] a\n- [strat-2] b",
    "## DO\n[a-00001] (helpful=3, harmful=1) a",
    "## DO\n[a-00001] helpful: 3 harmful: 1 :: a",
    "[a-00001] helpful=1 harmful=0 :: a\n\\- [a-2] helpful=1 harmful=0 :: quoted",
    (
        "# Playbook\n\nBullets read as `[id] helpful=X harmful=Y :: content`.\n## DO\n[a-00001] helpful=1 "
        "harmful=0 :: a\nCounters: helpful=up, harmful=down"
    ),
]


def test_texts_are_read_as_recorded(snapshot) -> None:
    assert outcomes(describe, TEXTS) == snapshot
    (one,) = read("[sai-00002] helpful=3 harmful=1 :: x").playbook.bullets
    assert (one.created, one.changed, one.sources) == (-1, -1, ())


def test_writing() -> None:
    bullets = [bullet(1, "one\n## OTHERS\n[x-00009] two", neutral=2), bullet(2, "three", "common_mistakes", helpful=1)]
    book = Playbook.build_from(bullets, sections=SECTIONS)
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
    again = read(book.official_text(), *SECTIONS)
    assert again.notes == ()
    assert fields_of(again.playbook) == fields_of(book)
    assert again.playbook.tokens == book.tokens
    assert again.playbook.sections == book.sections
    assert again.playbook.official_text() == book.official_text()
    assert again.playbook.layout is None


HARD_CONTENTS = (
    "a\n- [x-00009] helpful=1 harmful=0 :: b",
    "a\n1. [x-00009] helpful=1 harmful=0 :: b",
    "a\n* **[x-00009]** helpful=1 harmful=0 :: b",
    "a\n- [x-00009] b",
    "a\nhelpful: 3, harmful: 2",
    "a\n\\\\- [x-00009] helpful=1 harmful=0 :: b",
    "a\n[550e8400-e29b-41d4-a716-446655440000] b",
    "- a\n- b",
    "a\n\n## B\n```\n## c\n```",
    "helpful=1 words",
)


@pytest.mark.parametrize("counters", [True, False])
def test_contents_that_look_like_bullets_come_back_from_each_form(counters: bool) -> None:
    book = Playbook.build_from([bullet(n, text) for n, text in enumerate(HARD_CONTENTS, 1)], sections=SECTIONS)
    if not counters:
        book = Playbook.build_from(book.bullets[:-1], sections=SECTIONS)  # which begins as counters do
    assert fields_of(read(book.official_text(counters=counters), *SECTIONS).playbook) == fields_of(book)
    assert fields_of(Playbook.load(json.loads(json.dumps(book.dump())))) == fields_of(book)


def test_a_changed_markdown_list_keeps_its_other_lines() -> None:
    text = "# Ours\n\n## DO\n- [a-00001] helpful=1 harmful=0 :: x\n- [a-00002] helpful=0 harmful=0 :: y\n\nEnd"
    assert changed(text, Remove(id="a-00001"), Add(section="do", content="z")) == (
        "# Ours\n\n## DO\n[a-00002] helpful=0 harmful=0 :: y\n\nEnd\n[do-00003] helpful=0 harmful=0 :: z"
    )


def test_an_export_for_agents_is_refused_with_the_command_that_reads_it() -> None:
    with pytest.raises(DataError, match="line 2: an export for agents; `ace-bench playbook import` makes"):
        read("# Rules\n<!-- ace-bench playbook: edit -->\n## Playbook\n### do\n- [do-00001] x\n")


PUBLISHED = """\
My playbook, second edition

## Hard rules:
[hr-00004] helpful=2 harmful=0 :: Log in first:
```python
## get the token
token = login()
```

[hr-00001] helpful=0 harmful=0 ::  two blanks before, two after\x20\x20


## APIs TO USE FOR SPECIFIC INFORMATION
Some words on this section.

  [api-00002] helpful=0 harmful=3 ::\x20
begins on the next line

[api-00009] helpful=0 harmful=0 ::
## OTHERS
"""
PLAIN = "## VERIFICATION CHECKLIST\n[vc-00001] one\n\n[vc-00002] two\n\n## TROUBLESHOOTING AND PITFALLS:\n\n## OTHERS"


def changed(text: str, *operations: Operation, sections: tuple[str, ...] = ()) -> str:
    applied = run(read(text, *sections).playbook, *operations)
    assert not rejected(applied)
    return applied.playbook.official_text()


@pytest.mark.parametrize("text", [PUBLISHED, PUBLISHED.rstrip(), PLAIN, f"\n{PLAIN}\n\n"])
def test_a_published_playbook_is_written_and_shown_as_it_was_read(text: str) -> None:
    book = read(text, *SECTIONS).playbook
    assert book.official_text() == text
    assert Playbook.load(json.loads(json.dumps(book.dump()))).official_text() == text
    assert book.render(SAMPLE)["official_playbook"](counters="helpful" in text) == text


def test_operations_change_no_other_line() -> None:
    operations = (
        Add(section="hard_rules", content="new\nrule"),
        Add(section="others", content="## a heading"),
        Tag(id="hr-00001", votes=Votes(helpful=1, neutral=2)),
        Remove(id="api-00002"),
        Add(section="hard_rules", content="newer"),
    )
    added = "[hr-00005] helpful=0 harmful=0 :: new\nrule\n[hr-00007] helpful=0 harmful=0 :: newer"
    assert changed(PUBLISHED, *operations) == (
        PUBLISHED.replace("[hr-00001] helpful=0", "[hr-00001] helpful=1")
        .replace("after  \n", f"after\n{added}  \n")
        .replace("\n  [api-00002] helpful=0 harmful=3 :: \nbegins on the next line", "")
        .replace("## OTHERS", "## OTHERS\n[others-00006] helpful=0 harmful=0 :: ## a heading")
    )


def test_changed_contents_merges_lacking_sections_and_first_votes_are_written_in_their_places() -> None:
    text = PUBLISHED.replace("## get the token", "# get").replace("\n\n[hr-00001]", "\n[hr-00001]")
    assert changed(PUBLISHED, Update(id="hr-00004", content="## a\n## b")) == PUBLISHED.replace(
        "Log in first:\n```python\n## get the token\ntoken = login()\n```", "## a\n\\## b"
    )
    merged = changed(text, Merge(ids=("hr-00004", "hr-00001"), content="both"))
    assert "## Hard rules:\n[hr-00001] helpful=2 harmful=0 :: both  \n\n\n## APIs" in merged
    added = changed(PLAIN, Add(section="hard_rules", content="x"), sections=("strategies", "hard_rules"))
    assert added == f"{PLAIN}\n\n## HARD RULES\n[hr-00003] x"
    voted = changed(PLAIN, Tag(id="vc-00002", votes=Votes(harmful=1)))
    assert voted == PLAIN.replace("[vc-00002] ", "[vc-00002] helpful=0 harmful=1 :: ")


def test_a_layout_stays_as_it_is_and_playbooks_without_have_no_such_field() -> None:
    book = read(PUBLISHED).playbook
    later = run(book, Add(section="others", content="x")).playbook
    assert book.layout.limited(["hr-00001"]).contents == (("hr-00001", "  two blanks before, two after"),)
    assert "layout" not in later.patch(book)
    assert book.patched(later.patch(book)) == later
    plain = Playbook.build_from(book.bullets, sections=book.sections)
    assert "layout" not in plain.dump()
    assert plain.digest != book.digest
    assert plain.patched(book.patch(plain)) == book
    assert book.patched(plain.patch(book)) == plain
    assert later.fitted(SECTIONS, len).official_text() == later.official_text()


LINES = [
    *(
        "## OTHERS",
        "## Strategies & insights:",
        "##",
        "### x",
        "text",
        "",
        "  ",
        "```",
        "\\## A",
        "\\[a-00009] x",
        "##A",
    ),
    *("[a-00001] helpful=0 harmful=0 :: x", "  [a-00002] helpful=1 harmful=0 :: y  "),
    *(
        "[a-00003] helpful=0 harmful=0 ::",
        "[b-00004] helpful=0 harmful=0 :: ```python",
        "[a] helpful=0 harmful=0 ::  z",
    ),
]
texts = st.lists(st.sampled_from(LINES), max_size=12, unique=True).map("\n".join)


@given(texts, deltas)
@examples(150)
def test_any_text_is_written_as_it_was_read_and_then_with_all_changes(text: str, delta: list[Operation]) -> None:
    try:
        book = read(text, *SECTIONS).playbook
    except DataError:
        return
    if "[a] helpful" not in text:  # which gets an id with a number
        assert book.official_text() == text
    later = run(book, *delta).playbook
    layout = "".join(book.layout.parts[::2]) if book.layout else ""
    if not later.bullets or "```" in layout:  # a mark in prose may close a fence that a new bullet opens
        return
    again = read(later.official_text(), *SECTIONS).playbook
    assert fields_of(again) == fields_of(later)
    assert again.official_text() == later.official_text()
