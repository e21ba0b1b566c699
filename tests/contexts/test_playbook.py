"""The playbook as a value: rendering, digest, dump, patch."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given

from ace_bench.contexts.base import NoContext
from ace_bench.contexts.loading import encode_context
from ace_bench.contexts.playbook.apply import Add, Remove, Tag, Update, Votes
from ace_bench.contexts.playbook.bullets import clean, section_name, slug
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.context import Context
from ace_bench.core.errors import DataError
from ace_bench.store.folder import format_json

from .making import SAMPLE, SECTIONS, bullet, count, examples, ids, playbook, playbooks, run

SHOWN = ("playbook", "counters", "official_playbook")


def shown(book: Playbook) -> dict[str, str]:
    fields = book.render(SAMPLE)
    return {name: fields[name] if isinstance(fields[name], str) else fields[name]() for name in SHOWN}


def test_bullets_are_shown_in_order_of_creation_without_counters() -> None:
    book = Playbook.of(
        [
            bullet(2, "second", "common_mistakes", helpful=2, harmful=1),
            bullet(10, "tenth", "strategies_and_insights", neutral=3),
            bullet(1, "first", "others"),
        ],
        sections=SECTIONS,
    )
    assert shown(book) == {
        "playbook": "[others-00001] (others) first\n"
        "[cm-00002] (common_mistakes) second\n"
        "[sai-00010] (strategies_and_insights) tenth",
        "counters": "cm-00002: helpful 2, harmful 1\nsai-00010: neutral 3",
        "official_playbook": """## STRATEGIES & INSIGHTS
[sai-00010] helpful=0 harmful=0 :: tenth

## COMMON MISTAKES
[cm-00002] helpful=2 harmful=1 :: second

## OTHERS
[others-00001] helpful=0 harmful=0 :: first""",
    }
    excerpt = book.render(SAMPLE)["official_excerpt"]
    assert excerpt(["cm-00002", "none-00009", "sai-00010"]) == (
        "[sai-00010] helpful=0 harmful=0 :: tenth\n[cm-00002] helpful=2 harmful=1 :: second"
    )
    assert json.loads(book.render(SAMPLE)["statistics"]())["by_section"]["STRATEGIES & INSIGHTS"]["count"] == 1
    assert book.size == 3
    assert book.next_number == 11


def test_an_empty_playbook_says_so() -> None:
    book = Playbook.start(["Strategies & Insights", "OTHERS:", "others", " "])
    assert book.sections == ("strategies_and_insights", "others")
    empty = "## STRATEGIES & INSIGHTS\n\n## OTHERS"
    assert shown(book) == {"playbook": "(empty)", "counters": "(none)", "official_playbook": empty}
    assert (book.size, book.tokens) == (0, 0)


def test_a_new_bullet_or_vote_leaves_the_rendered_prefix_as_it_is() -> None:
    book = playbook("one", "two")
    later = run(
        book, Add(section="strategies_and_insights", content="three"), Tag(id="others-00001", votes=Votes(helpful=1))
    )
    assert later.playbook.render(SAMPLE)["playbook"].startswith(book.render(SAMPLE)["playbook"] + "\n")


def test_tokens_are_those_of_the_rendered_lines() -> None:
    book = playbook("one", "two words", "three\nlines")
    assert book.tokens == sum(count(line.line + "\n") for line in book.bullets)
    assert book.tokens >= count(book.render(SAMPLE)["playbook"])


@given(playbooks())
@examples(50)
def test_only_true_bullets_start_in_the_first_column(book: Playbook) -> None:
    text = book.render(SAMPLE)["playbook"]
    starts = [line for line in text.split("\n") if not line.startswith("  ")]
    assert starts == ([one.line.split("\n")[0] for one in book.bullets] or ["(empty)"])


def test_an_excerpt_shows_counters_and_known_ids_alone() -> None:
    book = Playbook.of([bullet(1, "a\n[others-00009] b", helpful=2), bullet(2, "c")], sections=SECTIONS)
    excerpt = book.excerpt(["others-00002", "nope", "others-00001", "others-00002"])
    assert excerpt == (
        "[others-00002] (others; helpful 0, harmful 0, neutral 0) c\n"
        "[others-00001] (others; helpful 2, harmful 0, neutral 0) a\n  [others-00009] b"
    )
    assert book.excerpt([]) == "(none)"


@pytest.mark.parametrize(
    "field",
    [{"helpful": 1}, {"neutral": 1}, {"content": "x"}, {"sources": ("s9",)}, {"changed": 5}, {"created": -1}],
)
def test_every_field_counts_in_the_digest(field: dict[str, object]) -> None:
    book = playbook("one", "two")
    other = book.with_bullets([replace(book.bullets[0], **field), book.bullets[1]])  # type: ignore[arg-type]
    assert other.digest != book.digest


def test_values_are_frozen() -> None:
    book = playbook("one")
    with pytest.raises(FrozenInstanceError):
        book.next_number = 9  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        book.bullets[0].content = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        book.render(SAMPLE)["playbook"] = "x"  # type: ignore[index]


@given(playbooks())
@examples(50)
def test_dump_and_load_give_the_same_playbook(book: Playbook) -> None:
    again = Playbook.load(json.loads(json.dumps(book.dump())))
    assert again == book
    assert again.digest == book.digest
    assert encode_context(book).decode() == format_json(book.dump())
    assert encode_context(book.only([one.id for one in book.bullets])) == encode_context(book)


@given(playbooks(), playbooks())
@examples(40)
def test_a_patch_leads_from_any_playbook_to_any_other(book: Playbook, other: Playbook) -> None:
    again = book.patched(json.loads(json.dumps(other.patch(book))))
    assert (again, again.digest, shown(again)) == (other, other.digest, shown(other))


def test_a_patch_is_as_small_as_the_change() -> None:
    book = playbook(*(f"lesson number {number}" for number in range(300)))
    later = run(book, Update(id="others-00017", content="new"), Remove(id="others-00018")).playbook
    patch = later.patch(book)
    assert [one["id"] for one in patch["set"]] == ["others-00017"]
    assert patch["removed"] == ["others-00018"]
    assert "sections" not in patch
    assert len(json.dumps(patch)) < 500
    assert book.patch(book) == {"next_number": 301}


def test_a_patch_of_another_playbook_is_refused() -> None:
    book = playbook("one", "two")
    patch = run(book, Remove(id="others-00002")).playbook.patch(book)
    with pytest.raises(DataError, match="another playbook"):
        playbook("one").patched(patch)
    with pytest.raises(DataError, match="not a patch"):
        book.patched({"next_number": 0})
    with pytest.raises(TypeError):
        book.patch(NoContext())


def test_bad_dumps_are_refused_with_the_place() -> None:
    record = json.loads(json.dumps(playbook("one", "two").dump()))
    record["bullets"][1]["helpful"] = -1
    with pytest.raises(DataError, match=r"bullets\[...\].helpful|bullets\[1\].helpful"):
        Playbook.load(record)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "others"}, "number"),
        ({"id": "others-9999999999"}, "number"),
        ({"id": "others-00002"}, "twice"),
        ({"content": ""}, "no content"),
        ({"section": "Two Words"}, "normal form"),
    ],
)
def test_broken_bullets_are_refused(change: dict[str, str], message: str) -> None:
    bullets = list(playbook("one", "two").bullets)
    bullets[0] = replace(bullets[0], **change)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=message):
        Playbook.of(bullets, sections=SECTIONS)


def test_sections_of_bullets_extend_the_given_ones() -> None:
    book = Playbook.of([bullet(3, "x", "elsewhere")], sections=["a"])
    assert book.sections == ("a", "elsewhere")


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("STRATEGIES & INSIGHTS", "strategies_and_insights"),
        ("Problem-Solving  Heuristics:", "problem_solving_heuristics"),
        ("formulas_and_calculations", "formulas_and_calculations"),
        ("A&B", "a_and_b"),
        (" -- ", ""),
    ],
)
def test_section_names_have_one_form(name: str, normal: str) -> None:
    assert section_name(name) == normal


@pytest.mark.parametrize(
    ("section", "expected"),
    [("strategies_and_insights", "sai"), ("others", "others"), ("heuristics", "heuris"), ("3_steps", "s3s"), ("", "s")],
)
def test_slugs(section: str, expected: str) -> None:
    assert slug(section) == expected


def test_clean_drops_what_cannot_be_seen() -> None:
    assert clean("\ufeff a\x00b\r\nc\x85d\x1b[0m\ud800\t\n\n ") == "ab\nc\nd[0m"


def test_no_context_is_nothing() -> None:
    none: Context = NoContext()
    assert (none.tokens, none.size, none.render(SAMPLE)) == (0, 0, {})
    assert none.digest == NoContext().digest != playbook().digest
    assert none.patched(none.patch(none)) == none
    assert ids(playbook("a")) == ["others-00001"]
