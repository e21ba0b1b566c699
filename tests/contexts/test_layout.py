"""Imported playbooks keep the text around their bullets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.contexts.loading import load_context
from ace_bench.contexts.playbook.apply import Add, Merge, Operation, Remove, Tag, Update, Votes
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.text_format import read_text
from ace_bench.core.errors import DataError

from .making import SAMPLE, SECTIONS, count, deltas, examples, rejected, run

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


def read(text: str, *sections: str) -> Playbook:
    return read_text(text, sections=sections, count=count).playbook


def changed(text: str, *operations: Operation) -> str:
    applied = run(read(text), *operations)
    assert not rejected(applied)
    return applied.playbook.official_text()


@pytest.mark.parametrize("text", [PUBLISHED, PUBLISHED.rstrip(), PLAIN, f"\n{PLAIN}\n\n"])
def test_a_published_playbook_is_written_as_it_was_read(text: str) -> None:
    book = read(text, *SECTIONS)
    assert book.official_text() == text
    assert Playbook.load(json.loads(json.dumps(book.dump()))).official_text() == text


def test_imported_prompts_show_it_as_it_was_read() -> None:
    assert read(PUBLISHED).render(SAMPLE)["official_playbook"]() == PUBLISHED
    assert read(PLAIN).render(SAMPLE)["official_playbook"](counters=False) == PLAIN


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


def test_a_changed_content_is_written_anew_and_a_merge_takes_the_older_place() -> None:
    text = PUBLISHED.replace("## get the token", "# get").replace("\n\n[hr-00001]", "\n[hr-00001]")
    assert changed(PUBLISHED, Update(id="hr-00004", content="## a\n## b")) == PUBLISHED.replace(
        "Log in first:\n```python\n## get the token\ntoken = login()\n```", "## a\n\\## b"
    )
    merged = changed(text, Merge(ids=("hr-00004", "hr-00001"), content="both"))
    assert "## Hard rules:\n[hr-00001] helpful=2 harmful=0 :: both  \n\n\n## APIs" in merged


def test_a_section_that_the_text_lacks_is_added_at_its_end() -> None:
    book = run(read(PLAIN, "strategies", "hard_rules"), Add(section="hard_rules", content="x")).playbook
    assert book.official_text() == f"{PLAIN}\n\n## HARD RULES\n[hr-00003] x"


def test_bullets_read_without_counters_get_them_only_for_votes() -> None:
    assert changed(PLAIN, Tag(id="vc-00002", votes=Votes(harmful=1))) == PLAIN.replace(
        "[vc-00002] ", "[vc-00002] helpful=0 harmful=1 :: "
    )


def test_a_saved_layout_stays_as_it_is_and_others_have_no_such_field(tmp_path: Path) -> None:
    book = read(PUBLISHED)
    later = run(book, Add(section="others", content="x")).playbook
    assert "layout" not in later.patch(book)
    assert book.patched(later.patch(book)) == later
    plain = Playbook.of(book.bullets, sections=book.sections)
    assert "layout" not in plain.dump()
    assert plain.digest != book.digest
    assert plain.patched(book.patch(plain)) == book
    assert book.patched(plain.patch(book)) == plain
    path = tmp_path / "final.json"
    path.write_text(json.dumps(later.dump()))
    loaded = load_context(path, sections=SECTIONS, count=count)
    assert isinstance(loaded, Playbook)
    assert loaded.official_text() == later.official_text()


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
    *(
        "[a-00001] helpful=0 harmful=0 :: x",
        "  [a-00002] helpful=1 harmful=0 :: y  ",
        "[a-00003] helpful=0 harmful=0 ::",
    ),
    *("[b-00004] helpful=0 harmful=0 :: ```python", "[a] helpful=0 harmful=0 ::  z"),
]
texts = st.lists(st.sampled_from(LINES), max_size=12, unique=True).map("\n".join)


@given(texts, deltas)
@examples(150)
def test_any_text_is_written_as_it_was_read_and_then_with_all_changes(text: str, delta: list[Operation]) -> None:
    try:
        book = read(text, *SECTIONS)
    except DataError:
        return
    if "[a] helpful" not in text:  # which gets an id with a number
        assert book.official_text() == text
    later = run(book, *delta).playbook
    layout = "".join(book.layout.parts[::2]) if book.layout else ""
    if not later.bullets or "```" in layout:  # a mark in prose may close a fence that a new bullet opens
        return
    again = read(later.official_text(), *SECTIONS)
    fields = ("id", "section", "content", "helpful", "harmful")
    assert [[getattr(one, name) for name in fields] for one in again.bullets] == [
        [getattr(one, name) for name in fields] for one in later.bullets
    ]
    assert again.official_text() == later.official_text()
