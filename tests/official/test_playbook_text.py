"""The playbook as text beside the authors' own functions, after any operations."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from functools import cache
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.methods.official import editing as ours
from ace_bench.playbook import authors_text
from ace_bench.playbook.authors_text import Dialect
from ace_bench.playbook.text_writer import official_text
from ace_bench.tasks.appworld.task import SECTIONS as APPWORLD
from ace_bench.tasks.finance import SECTIONS as FINANCE
from tests.official.authors import checkout
from tests.playbook.making import examples

pytestmark = pytest.mark.official

FILES: dict[Dialect, tuple[str, str, str]] = {
    "finance": ("ace", "playbook_utils.py", "utils.py"),
    "appworld": ("ace-appworld", "experiments/code/ace/playbook.py", "experiments/code/ace/utils.py"),
}
LINES = [
    *("## OTHERS", "\t## OTHERS ", "## STRATEGIES & INSIGHTS", "## PROBLEM-SOLVING HEURISTICS", "## general", "##"),
    *("## TROUBLESHOOTING AND PITFALLS:", "## TWO  SPACES", "### smaller", "## İstanbul Q&A", "# a comment"),
    *("[a-00001] helpful=1 harmful=2 :: x", "[a-00001]helpful=06 harmful=0::  y  ", "  [misc-00007] plain :: text"),
    *("[é-٣] helpful=٣ harmful=1 :: u", "[x] helpful=1 harmful=1 neutral=2 :: z", "[o-99999] helpful=0 harmful=0 ::"),
    *("[x]", "[] a", "::", "some text", "", "  ", "\r", "\x0b", "\u2028", "\x85", "\xa0"),
]
SECTIONS = [
    *("others", "OTHERS", "others:", " others", "general", "", "x", "Strategies & Insights", "two  spaces"),
    *("problem_solving_heuristics", "Problem-Solving Heuristics", "troubleshooting and pitfalls", "# smaller", "q&a"),
]
IDS = ["a-00001", "misc-00007", "x", "misc-00001", "sai-00001", "sai-00002", "o-99999"]

texts = st.lists(st.sampled_from(LINES) | st.text(max_size=9), max_size=12).map("\n".join)
"""Any text, mostly with headings and bullets in it."""
books = texts | texts.map("## OTHERS\n{}".format) | texts.map("## STRATEGIES & INSIGHTS\n{}\n\n## OTHERS".format)
sections = st.sampled_from(SECTIONS) | st.sampled_from([None, 3])
contents = texts | st.none() | st.integers() | st.lists(st.floats(allow_nan=False), max_size=2) | st.booleans()
operations = st.fixed_dictionaries(
    {"type": st.sampled_from(["ADD"] * 9 + ["UPDATE", "add"])}, optional={"section": sections, "content": contents}
)
tags = st.lists(
    st.fixed_dictionaries(
        {"tag": st.sampled_from(["helpful", "harmful", "neutral", "Helpful"])},
        optional={"id": st.sampled_from([*IDS, "", None, 5]), "bullet": st.sampled_from(IDS)},
    )
    | st.just("x"),
    max_size=4,
)
ids_asked = st.lists(st.sampled_from(IDS), max_size=3)
steps = st.lists(st.tuples(st.lists(operations, max_size=4), tags, ids_asked), max_size=6)


@cache
def authors(dialect: Dialect) -> ModuleType:
    """Return the authors' module without what it imports but the one function that names prefixes."""
    folder, *names = FILES[dialect]
    file, helpers = (checkout(folder) / name for name in names)
    kept = [node for node in ast.parse(file.read_text()).body if not isinstance(node, ast.ImportFrom)]
    prefix = [
        node
        for node in ast.parse(helpers.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "get_section_slug"
    ]
    module = ModuleType(f"authors_{dialect}")
    exec(compile(ast.Module(body=[*prefix, *kept], type_ignores=[]), str(file), "exec"), module.__dict__)
    return module


def theirs(dialect: Dialect, name: str, *arguments: object) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        return getattr(authors(dialect), name)(*arguments)


def encodable(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


@pytest.mark.parametrize("dialect", FILES)
@given(book=books, steps=steps)
@examples(1_000)
def test_any_steps_lead_to_the_text_of_the_authors(dialect: Dialect, book: str, steps: list[Any]) -> None:
    number = theirs(dialect, "get_next_global_id", book)
    assert ours.number_after(book, dialect) == number
    for proposed, counted, ids in steps:
        try:
            expected = theirs(dialect, "apply_curator_operations", book, proposed, number)
        except Exception:
            expected = None
        if expected is None or not encodable(expected[0]):
            with pytest.raises(ours.DroppedOperations):
                ours.add_bullets(book, proposed, next_number=number, dialect=dialect)
        else:
            assert ours.add_bullets(book, proposed, next_number=number, dialect=dialect) == expected
            book, number = expected
        expected_tags = theirs(dialect, "update_bullet_counts", book, counted)
        assert ours.count_tags(book, counted, dialect) == expected_tags
        book = expected_tags
        assert authors_text.statistics(book, dialect) == json.dumps(
            theirs(dialect, "get_playbook_stats", book), indent=2
        )
        assert authors_text.excerpt(book, ids, dialect) == theirs(dialect, "extract_playbook_bullets", book, ids)


def test_the_empty_playbooks_have_the_headings_of_the_authors() -> None:
    assert f'"""{official_text(FINANCE, (), None, "finance")}"""' in (checkout("ace") / "ace/ace.py").read_text()
    initial = checkout("ace-appworld") / "experiments/playbooks/appworld_initial_playbook.txt"
    headings = [line for line in initial.read_text().split("\n") if line.startswith("##")]
    assert official_text(APPWORLD, (), None, "appworld").split("\n\n") == headings
