"""Contexts from files, and as text for system prompts elsewhere."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ace_bench import contexts
from ace_bench.contexts import system_prompt
from ace_bench.contexts.base import NoContext
from ace_bench.contexts.cheatsheet import Cheatsheet, PastRollout
from ace_bench.contexts.instruction import Demonstration, Demonstrations, Instruction
from ace_bench.contexts.loading import (
    KINDS,
    change_playbook,
    is_known,
    kind_of,
    load_context,
    load_kind,
    restore,
    save_context,
)
from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.methods.official.playbook import TextPlaybook
from ace_bench.playbook.apply import Add
from ace_bench.playbook.playbook import Playbook
from tests.outcomes import outcomes
from tests.playbook.making import SECTIONS, count, ids, playbook, run


def load(path: Path) -> Context:
    return load_context(path, sections=SECTIONS, count=count)


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_official_text_is_recognised_whatever_the_file_is_called(tmp_path: Path) -> None:
    loaded = load(write(tmp_path / "playbook", b"\xef\xbb\xbf" + playbook("one").official_text().encode()))
    assert isinstance(loaded, Playbook)
    assert ids(loaded) == ["others-00001"]


def test_a_file_in_the_working_folder_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "final.json", json.dumps(playbook("one").dump()))
    monkeypatch.chdir(tmp_path)
    assert load(Path("final.json")) == playbook("one")


def test_a_playbook_is_fitted_to_the_run(tmp_path: Path) -> None:
    record = json.loads(
        json.dumps(Playbook.build_from(playbook("a b").bullets, sections=["old"], next_number=9).dump())
    )
    record["bullets"][0]["tokens"] = 12345
    record["bullets"][0]["content"] = "  a\x00 b\r\n"
    loaded = load_context(write(tmp_path / "p.json", json.dumps(record)), sections=["Task Section"], count=len)
    assert isinstance(loaded, Playbook)
    assert loaded.sections == ("task_section", "old", "others")
    assert loaded.next_number == 9
    assert loaded.bullets[0].content == "a b"
    assert loaded.tokens == len(loaded.bullets[0].line) + 1


def test_every_kind_restores_its_own_dump() -> None:
    example = Demonstration(question="q", answer="a")
    values: list[Context] = [
        NoContext(),
        playbook("one"),
        Demonstrations(items=(example,)),
        Instruction(text="x", demonstrations=(example,)),
        Cheatsheet(text="y", text_tokens=1, episodes=(PastRollout(question="q", output="a"),)),
        TextPlaybook(text="## OTHERS\n", dialect="finance", next_number=2, text_tokens=3),
    ]
    assert {str(value.dump()["kind"]) for value in values} == {*(kind.kind for kind in KINDS), TextPlaybook.kind}
    for value in values:
        assert restore(value.dump()) == value
        assert is_known(str(value.dump()["kind"]))
    assert not is_known("diary")


def test_notes_are_logged_with_file_and_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "p.txt", "## A\nstray\n[a-00001] x\n")
    with caplog.at_level(logging.WARNING):
        load(path)
    assert f"{path}, line 2: text outside" in caplog.text


# Content of a context's file that is refused.
FILES = [
    '{\n"kind": "playbook",\n"sections": [}',
    '{"kind": "diary"}',
    "{}",
    '{"kind": "playbook", "sections": ["a"], "next_number": 1}',
    '{"kind": "playbook", "sections": ["a\\ud800"], "next_number": 1, "bullets": []}',
    "## A\n\n[a-00001] helpful=x harmful=1 :: y",
    "prose",
    b"## A\n[a-00001] \xff",
]


def test_files_are_refused_as_recorded(snapshot, tmp_path: Path) -> None:
    def refuse(content: str | bytes) -> Context:
        return load(write(tmp_path / "start.txt", content))

    assert outcomes(refuse, FILES, {str(tmp_path): "FOLDER"}) == snapshot
    with pytest.raises(DataError, match="broken JSON"):
        refuse('{"a": ' * 100_000)


def test_a_missing_file_and_a_folder_are_data_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        load(tmp_path / "nothing.json")
    with pytest.raises(DataError, match="directory"):
        load(tmp_path)


def test_a_saved_playbook_is_changed_in_place_unless_a_run_keeps_it(tmp_path: Path) -> None:
    path, sheet, text = (tmp_path / "contexts" / name for name in ("book.json", "sheet.json", "book.txt"))
    path.parent.mkdir()
    save_context(playbook("one"), path)
    save_context(Cheatsheet(), sheet)
    grown = change_playbook(path, lambda book: run(book, Add(section="others", content="two")).playbook)
    assert (ids(grown), contexts.load(path)) == (["others-00001", "others-00002"], grown)
    with pytest.raises(ConfigError, match=r"sheet.json holds a context of kind cheatsheet; give a playbook"):
        change_playbook(sheet, lambda book: book)
    (tmp_path / "checksums.jsonl").touch()
    for kept in (path, text):
        with pytest.raises(ConfigError, match=f"{kept} must be a .json file outside of run folders"):
            change_playbook(kept, lambda book: book)


def test_a_method_starts_from_a_file_of_its_kind_alone(tmp_path: Path) -> None:
    arena: Any = SimpleNamespace(sections=SECTIONS, counter=lambda _: count)
    sheet, text = str(tmp_path / "sheet.json"), str(write(tmp_path / "book.txt", playbook("one").official_text()))
    save_context(Cheatsheet(), sheet)
    assert (kind_of(Path(sheet)), kind_of(Path(text))) == (Cheatsheet, Playbook)
    assert load_kind(Cheatsheet, sheet, arena=arena, required_by="DC") == Cheatsheet()
    with pytest.raises(ConfigError, match=f"method.initial={text} holds no cheatsheet; DC starts from one"):
        load_kind(Cheatsheet, text, arena=arena, required_by="DC")


EXAMPLE = Demonstration(question="2 + 2?", answer="4")
VALUES = [
    playbook("one", "two\nlines"),
    TextPlaybook(text="## OTHERS\n[misc-00001] helpful=1 harmful=0 :: one\ntwo", dialect="finance"),
    Cheatsheet(text="a note", text_tokens=2),
    Demonstrations(items=(EXAMPLE,)),
    Instruction(text="Add.", demonstrations=(EXAMPLE,)),
]
EMPTY = [NoContext(), playbook(), Cheatsheet(), Demonstrations(), Instruction(text="")]


def test_every_kind_becomes_text_between_its_tags_and_an_empty_one_none(snapshot, tmp_path: Path) -> None:
    """The texts are those of ``system_prompts.txt``: without counters and empty sections."""
    path = tmp_path / "final.json"
    texts = []
    for value in VALUES:
        path.write_text(json.dumps(value.dump()))
        texts.append(f"# {value.kind}\n{system_prompt(contexts.load(path))}\n")
    assert "\n".join(texts) == snapshot
    assert {system_prompt(value) for value in EMPTY} == {""}
