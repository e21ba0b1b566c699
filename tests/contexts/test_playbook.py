"""The playbook as a value: rendering, digest, dump, patch."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given

from ace_bench.contexts.base import NoContext
from ace_bench.contexts.loading import encode_context
from ace_bench.contexts.playbook.apply import Add, Remove, Tag, Update, Votes
from ace_bench.contexts.playbook.bullets import clean, section_name, slug
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.errors import DataError
from ace_bench.store.folder import format_json

from .making import SAMPLE, SECTIONS, bullet, count, examples, playbook, playbooks, run

FIRST, SECOND = "others-00001", "others-00002"


def shown(book: Playbook) -> list[str]:
    fields = book.render(SAMPLE)
    return [fields["playbook"], fields["counters"], fields["official_playbook"]()]


def test_bullets_are_shown_in_order_of_creation_and_counters_apart() -> None:
    book = Playbook.build_from(
        [
            bullet(2, "second", "common_mistakes", helpful=2, harmful=1),
            bullet(10, "tenth", "strategies_and_insights", neutral=3),
            bullet(1, "first\n[x-00009] line"),
        ],
        sections=SECTIONS,
    )
    strategies, mistakes = "[sai-00010] helpful=0 harmful=0 :: tenth", "[cm-00002] helpful=2 harmful=1 :: second"
    assert shown(book) == [
        "[others-00001] (others) first\n  [x-00009] line\n[cm-00002] (common_mistakes) second\n"
        "[sai-00010] (strategies_and_insights) tenth",
        "cm-00002: helpful 2, harmful 1\nsai-00010: neutral 3",
        f"## STRATEGIES & INSIGHTS\n{strategies}\n\n## COMMON MISTAKES\n{mistakes}\n\n"
        "## OTHERS\n[others-00001] helpful=0 harmful=0 :: first\n[x-00009] line",
    ]
    fields = book.render(SAMPLE)
    assert fields["official_excerpt"](["cm-00002", "none-00009", "sai-00010"]) == f"{strategies}\n{mistakes}"
    assert json.loads(fields["statistics"]())["by_section"]["STRATEGIES & INSIGHTS"]["count"] == 1
    assert book.excerpt(["cm-00002", "nope", FIRST, "cm-00002"]) == (
        "[cm-00002] (common_mistakes; helpful 2, harmful 1, neutral 0) second\n"
        "[others-00001] (others; helpful 0, harmful 0, neutral 0) first\n  [x-00009] line"
    )
    assert (book.size, book.next_number) == (3, 11)
    assert book.tokens == sum(count(f"{one.line}\n") for one in book.bullets)
    with pytest.raises(TypeError):
        fields["playbook"] = "x"  # type: ignore[index]


def test_an_empty_playbook_says_so() -> None:
    book = Playbook.start(["Strategies & Insights", "OTHERS:", "others", " "])
    assert book.sections == ("strategies_and_insights", "others")
    assert shown(book) == ["(empty)", "(none)", "## STRATEGIES & INSIGHTS\n\n## OTHERS"]
    assert (book.size, book.tokens, book.excerpt([])) == (0, 0, "(none)")


def test_a_new_bullet_or_vote_leaves_the_rendered_prefix_as_it_is() -> None:
    book = playbook("one", "two")
    later = run(book, Add(section="others", content="three"), Tag(id=FIRST, votes=Votes(helpful=1))).playbook
    assert later.render(SAMPLE)["playbook"].startswith(book.render(SAMPLE)["playbook"] + "\n")


@pytest.mark.parametrize(
    "field",
    [{"helpful": 1}, {"neutral": 1}, {"content": "x"}, {"sources": ("s9",)}, {"changed": 5}, {"created": -1}],
)
def test_every_field_counts_in_the_digest(field: dict[str, object]) -> None:
    book = playbook("one", "two")
    other = book.with_bullets([replace(book.bullets[0], **field), book.bullets[1]])  # type: ignore[arg-type]
    assert other.digest != book.digest


@given(playbooks(), playbooks())
@examples(60)
def test_saved_and_patched_it_is_the_same(book: Playbook, other: Playbook) -> None:
    again = Playbook.load(json.loads(json.dumps(book.dump())))
    assert (again, again.digest) == (book, book.digest)
    assert encode_context(book).decode() == format_json(book.dump())
    assert encode_context(book.only([one.id for one in book.bullets])) == encode_context(book)
    patched = book.patched(json.loads(json.dumps(other.patch(book))))
    assert (patched, patched.digest, shown(patched)) == (other, other.digest, shown(other))


def test_a_patch_is_as_small_as_the_change() -> None:
    book = playbook(*(f"lesson number {number}" for number in range(300)))
    patch = run(book, Update(id="others-00017", content="new"), Remove(id="others-00018")).playbook.patch(book)
    assert [one["id"] for one in patch["set"]] == ["others-00017"]
    assert patch["removed"] == ["others-00018"]
    assert patch.keys() == {"next_number", "set", "removed"}
    assert book.patch(book) == {"next_number": 301}


def test_a_patch_of_another_playbook_is_refused() -> None:
    book = playbook("one", "two")
    with pytest.raises(DataError, match="another playbook"):
        playbook("one").patched(run(book, Remove(id=SECOND)).playbook.patch(book))
    with pytest.raises(DataError, match="not a patch"):
        book.patched({"next_number": 0})
    with pytest.raises(TypeError):
        book.patch(NoContext())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"helpful": -1}, r"bullets\[...\].helpful|bullets\[0\].helpful"),
        ({"id": "others"}, "number"),
        ({"id": "others-9999999999"}, "number"),
        ({"id": SECOND}, "twice"),
        ({"content": ""}, "no content"),
        ({"section": "Two Words"}, "normal form"),
    ],
)
def test_broken_bullets_are_refused_with_the_place(change: dict[str, object], message: str) -> None:
    record = json.loads(json.dumps(playbook("one", "two").dump()))
    record["bullets"][0] |= change
    with pytest.raises(DataError, match=message):
        Playbook.load(record)


@pytest.mark.parametrize(
    ("rule", "text", "result"),
    [
        (section_name, "STRATEGIES & INSIGHTS", "strategies_and_insights"),
        (section_name, "Problem-Solving  Heuristics:", "problem_solving_heuristics"),
        (section_name, "A&B", "a_and_b"),
        (section_name, " -- ", ""),
        (slug, "strategies_and_insights", "sai"),
        (slug, "others", "others"),
        (slug, "heuristics", "heuris"),
        (slug, "3_steps", "s3s"),
        (slug, "", "s"),
        (clean, "\ufeff a\x00b\r\nc\x85d\x1b[0m\ud800\t\n\n ", "ab\nc\nd[0m"),
    ],
)
def test_names_ids_and_contents_have_one_form(rule, text: str, result: str) -> None:
    assert rule(text) == result


def test_helpful_bullets_first_is_part_of_the_digest_and_never_saved() -> None:
    bullets = [bullet(1, "old"), bullet(2, "bad", harmful=1), bullet(3, "good", helpful=2), bullet(4, "new")]
    book = Playbook.build_from(bullets, sections=[])
    ordered = replace(book, helpful_first=True)
    lines = ordered.render(SAMPLE)["playbook"].splitlines()
    assert [line.split(") ")[1] for line in lines] == ["good", "old", "new", "bad"]
    assert ordered.digest != book.digest
    assert ordered.dump() == book.dump()
    assert Playbook.load(ordered.dump()) == book
    assert book.sections == ("others",)
