"""The playbook as a value: rendering, digest, dump, patch."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from ace_bench.contexts.base import NoContext
from ace_bench.contexts.loading import encode_context
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.playbook.apply import Add, Remove, Tag, Update, Votes, reject
from ace_bench.playbook.authors_text import id_prefix, title_of
from ace_bench.playbook.bullets import clean, section_name, slug
from ace_bench.playbook.feedback import give_feedback, read_vote
from ace_bench.playbook.playbook import Playbook
from ace_bench.store.folder import format_json
from tests.outcomes import outcomes_by_name

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
        "[cm-00002] (common_mistakes) second\n[others-00001] (others) first\n  [x-00009] line"
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


def load_bullet(change: dict[str, object]) -> Playbook:
    record = json.loads(json.dumps(playbook("one", "two").dump()))
    record["bullets"][0] |= change
    return Playbook.load(record)


# The names of sections, the prefixes of ids and contents have one form.
NAMES = {
    "section_name": [
        "STRATEGIES & INSIGHTS",
        "Problem-Solving  Heuristics:",
        "A&B",
        " -- ",
    ],
    "slug": [
        "strategies_and_insights",
        "others",
        "heuristics",
        "3_steps",
        "",
    ],
    "clean": [
        "\ufeff a\x00b\r\nc\x85d\x1b[0m\ud800\t\n\n ",
    ],
    # Prefix and title of a section in the authors' playbooks.
    "prefix, title": [
        ("finance", "problem_solving_heuristics"),
        ("finance", "strategies_and_insights"),
        ("finance", "a_b_c_d_e_f"),
        ("finance", "general"),
        ("appworld", "apis_to_use_for_specific_information"),
        ("appworld", "troubleshooting_and_pitfalls"),
        ("appworld", "strategies_and_insights"),
    ],
    # What a bullet of a saved playbook may not be.
    "bullet": [
        {"helpful": -1},
        {"id": "others"},
        {"id": "others-1000000001"},
        {"id": "others-00002"},
        {"content": ""},
        {"section": "Two Words"},
    ],
    # How an operation that is rejected is shown: flat and short.
    "rejected": [
        "ADD\x00",
        None,
        {
            "n": 1,
            "f": 0.5,
            "b": True,
            "x": None,
            "deep": {"a": ["\u2028"]},
            (
                "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
                "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
                "kkkkkkkkkkkkkkkkkkkkk"
            ): (
                "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
                "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
                "vvvvvvvvvvvvvvvvvvvvv"
            ),
        },
    ],
}


def test_names_ids_and_contents_have_the_recorded_forms(snapshot) -> None:
    cases: dict[str, Callable[[Any], object]] = {
        "section_name": section_name,
        "slug": slug,
        "clean": lambda text: repr(clean(text)),
        "prefix, title": lambda case: (id_prefix(case[1], case[0]), title_of(case[1], case[0])),
        "bullet": load_bullet,
        "rejected": lambda operation: reject(operation, "why")["operation"],
    }
    assert outcomes_by_name(cases, NAMES) == snapshot


def test_the_least_useful_quarter_gives_way_of_equal_ones_the_stalest() -> None:
    bullets = [bullet(number, f"b{number}", helpful=number % 3, changed=number % 2) for number in range(1, 9)]
    book: Playbook | None = Playbook.build_from(bullets, sections=[])
    left = []
    while book is not None:
        left.append([one.number for one in book.bullets])
        book = book.shrink()
    assert left == [
        [1, 2, 3, 4, 5, 6, 7, 8],
        [1, 2, 4, 5, 7, 8],
        *([1, 2, 5, 7, 8], [2, 5, 7, 8], [2, 5, 8], [5, 8], [5], []),
    ]


def test_a_users_vote_counts_and_is_read_back_from_the_sources() -> None:
    one, two = give_feedback(
        playbook("one", "two"), SECOND, vote="harmful", by="ann", note=" wrong\n since  May "
    ).bullets
    assert (one, replace(two, sources=())) == (bullet(1, "one"), bullet(2, "two", harmful=1))
    (source,) = two.sources
    assert re.fullmatch(r"ann@\d{4}-\d\d-\d\dT\S+ harmful wrong since May", source)
    assert (read_vote(source), read_vote("toy-train-1")) == (("ann", "harmful"), None)
    for bullet_id, by, problem in ((SECOND, "a b", "'a b' is not a name"), ("x-1", "ann", "there is no bullet x-1")):
        with pytest.raises(ConfigError, match=problem):
            give_feedback(playbook("one", "two"), bullet_id, vote="helpful", by=by)


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
