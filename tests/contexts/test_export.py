"""Contexts as text for system prompts elsewhere."""

from __future__ import annotations

import json

import pytest

from ace_bench.contexts import load, system_prompt
from ace_bench.contexts.base import NoContext
from ace_bench.contexts.cheatsheet import Cheatsheet
from ace_bench.contexts.instruction import Demonstration, Demonstrations, Instruction
from ace_bench.core.errors import DataError
from ace_bench.methods.official.playbook import TextPlaybook

from .making import playbook

EXAMPLE = Demonstration(question="2 + 2?", answer="4")


def test_a_saved_playbook_becomes_text_without_counters_and_empty_sections(tmp_path):
    path = tmp_path / "final.json"
    path.write_text(json.dumps(playbook("one", "two\nlines").dump()))
    text = system_prompt(load(path))
    assert text.endswith("<playbook>\n## OTHERS\n[others-00001] one\n[others-00002] two\nlines\n</playbook>")
    assert text.startswith("Lessons from earlier work")


@pytest.mark.parametrize(
    ("context", "parts"),
    [
        (
            TextPlaybook(text="## OTHERS\n[misc-00001] helpful=1 harmful=0 :: one\ntwo", dialect="finance"),
            ["<playbook>\n## OTHERS\n[misc-00001] one\ntwo\n</playbook>"],
        ),
        (Cheatsheet(text="a note", text_tokens=2), ["<cheatsheet>\na note\n</cheatsheet>"]),
        (Demonstrations(items=(EXAMPLE,)), ["<demonstrations>\nQuestion: 2 + 2?\nAnswer: 4\n</demonstrations>"]),
        (
            Instruction(text="Add.", demonstrations=(EXAMPLE,)),
            ["<instruction>\nAdd.\n</instruction>", "<demonstrations>\nQuestion: 2 + 2?"],
        ),
    ],
)
def test_every_kind_stands_between_its_tags(context, parts):
    assert all(part in system_prompt(context) for part in parts)


@pytest.mark.parametrize(
    "context",
    [
        NoContext(),
        playbook(),
        Cheatsheet(),
        Demonstrations(),
        Instruction(text=""),
    ],
)
def test_an_empty_context_adds_nothing(context):
    assert system_prompt(context) == ""


def test_a_file_that_is_no_context_is_told(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path / "missing.json")
