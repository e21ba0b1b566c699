"""A playbook goes out as AGENTS.md or a skill, people edit it, and it comes back."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import yaml
from hypothesis import given

from ace_bench.cli.main import start
from ace_bench.cli.playbook.markdown import merge_edits, read_block, write_block
from ace_bench.contexts import load, system_prompt
from ace_bench.contexts.loading import change_playbook, save_context
from ace_bench.playbook.feedback import give_feedback
from ace_bench.playbook.playbook import Playbook
from tests.launching import launch
from tests.playbook.making import bullet, examples, playbooks


@pytest.fixture
def book(tmp_path):
    """The file of a playbook with counters, a content of several lines, and one with what imitates an entry."""
    made = Playbook.build_from(
        [
            bullet(1, "Read the units.", "strategies", helpful=3, harmful=1),
            bullet(2, "First\n\n- [strate-00009] second\n### third", "strategies", neutral=2),
            bullet(3, "Ask the ledger.", "tool_use"),
        ],
        sections=["strategies", "tool_use"],
    )
    save_context(made, tmp_path / "book.json")
    return tmp_path / "book.json"


def export(book, out, form="agents", about="Check the books."):
    assert start("playbook", ["export", str(book), "--as", form, "--out", str(out), "--about", about]) == 0


def back(source, into):
    assert start("playbook", ["import", str(source), "--into", str(into)]) == 0
    return load(into)


@given(playbooks())
@examples(15)
def test_every_playbook_comes_back_as_it_was(book):
    block = read_block(write_block(book.bullets, title="Playbook"), "x")
    assert merge_edits(book, block, source="x").bullets == book.bullets
    empty = merge_edits(Playbook.start(()), block, source="x")
    shown = [(one.id, one.section, one.content, one.counters) for one in book.bullets]
    assert [(one.id, one.section, one.content, one.counters) for one in empty.bullets] == shown


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_users_own_text_is_left_alone_however_often_it_is_exported(book, tmp_path, end):
    agents, link = tmp_path / "AGENTS.md", tmp_path / "CLAUDE.md"
    agents.write_bytes(f"# Mine{end}{end}- run make".encode())
    link.symlink_to(agents)
    export(book, link)
    text = agents.read_bytes()
    agents.write_bytes(text + f"{end}Below.{end}".encode())
    export(book, link)
    assert link.is_symlink()
    assert agents.read_bytes() == text + f"{end}Below.{end}".encode()
    assert text.startswith(f"# Mine{end}{end}- run make{end}{end}<!--".encode())
    assert text.count(end.encode()) == text.count(b"\n")


@pytest.mark.parametrize("form", ["agents", "skill"])
def test_edits_come_back_with_counters_and_what_was_learnt_since_stays(book, tmp_path, form):
    out = tmp_path / ("AGENTS.md" if form == "agents" else "my-skill")
    export(book, out, form)
    file = out if form == "agents" else out / "references" / "strategies.md"
    text = file.read_text().replace("Read the units.", "Read all units.\n  And the dates.")
    text = text.replace("### strategies\n", "### strategies\n\n* [ ] A new one\n  in two lines\n")
    file.write_text(text)
    asked = out if form == "agents" else out / "references" / "tool_use.md"
    asked.write_text(asked.read_text().replace("- [tu-00003] Ask the ledger.\n", ""))
    since = load(book)
    grown = Playbook.build_from([*since.bullets, bullet(4, "Learnt since.", "strategies")], sections=[])
    save_context(grown, book)
    assert start("playbook", ["feedback", str(book), "--bullet", "strate-00001", "--helpful"]) == 0
    found = {one.id: one for one in back(out, book).bullets}
    assert [*found] == ["strate-00001", "strate-00002", "strate-00004", "strate-00005"]
    edited, added = found["strate-00001"], found["strate-00005"]
    assert (edited.content, edited.helpful, edited.harmful) == ("Read all units.\nAnd the dates.", 4, 1)
    assert (added.content, added.helpful, added.sources) == (
        "[ ] A new one\nin two lines",
        0,
        (f"{out.name}#strate-00005",),
    )
    assert found["strate-00002"] == since.index["strate-00002"]
    export(book, out, form)
    assert back(out, book) == back(out, book)
    assert back(out, book).size == 4


def test_a_skill_has_front_matter_and_keeps_its_users_words(snapshot, book, tmp_path):
    folder = tmp_path / "accounting"
    export(book, folder, "skill")
    export(book, tmp_path / "AGENTS.md")
    files = [tmp_path / "AGENTS.md", *sorted(folder.rglob("*.md"))]
    assert "".join(f"#### {file.name}\n{file.read_text()}" for file in files) == snapshot
    skill = folder / "SKILL.md"
    skill.write_text(skill.read_text().replace("description: ", "description: Mine. "))
    export(book, folder, "skill")
    assert "description: Mine. " in skill.read_text()


def test_a_prompt_is_what_a_system_prompt_takes(book, tmp_path):
    export(book, tmp_path / "prompt.txt", "prompt")
    assert (tmp_path / "prompt.txt").read_text() == f"{system_prompt(load(book))}\n"


def test_a_skill_says_what_it_is_for_by_its_runs_task(book, tmp_path, capsys):
    """A file says nothing of its task, so the user is asked; quotes and line breaks stay within the description."""
    run = launch(
        tmp_path / "results", "task=finer", "task.source=sample", "limit=2", "mode.before=false", "mode.epochs=1"
    )
    export(run.folder, tmp_path / "tags", "skill", about="")
    description = yaml.safe_load((tmp_path / "tags" / "SKILL.md").read_text().split("---")[1])["description"]
    assert "FiNER: US-GAAP tags for numbers in filings, four questions a sample." in description
    export(book, tmp_path / "books", "skill", about='Say "yes":\nname: x')
    head = yaml.safe_load((tmp_path / "books" / "SKILL.md").read_text().split("---")[1])
    assert (head["name"], 'Say "yes": name: x' in head["description"]) == ("books", True)
    assert start("playbook", ["export", str(book), "--as", "skill", "--out", str(tmp_path / "other")]) == 2
    assert "say what its tasks are" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: text.replace("<!-- ace-bench playbook ends", "<!-- ends"), "not one pair"),
        (lambda text: text.replace("### tool_use\n", "### tool_use\n\n  further\n"), "line 16: neither an entry"),
        (lambda text: text + text, "not one pair"),
        (lambda text: text.replace("- [strate-00001]", "[strate-00001]"), "line 8: neither an entry"),
        (lambda text: text.replace("strate-00001 3 1 0", "strate-00001 3 1"), "was changed: strate-00001 3 1"),
        (lambda text: text[:0], "holds no playbook"),
    ],
)
def test_a_block_that_cannot_be_read_changes_nothing(book, tmp_path, change, problem, capsys):
    agents, before = tmp_path / "AGENTS.md", book.read_bytes()
    export(book, agents)
    agents.write_text(change(agents.read_text()))
    assert start("playbook", ["import", str(agents), "--into", str(book)]) == 2
    assert problem in " ".join(capsys.readouterr().err.split())
    assert book.read_bytes() == before


def test_votes_at_the_same_time_all_count(book):
    vote = partial(give_feedback, bullet="strate-00001", vote="helpful")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: change_playbook(book, vote), range(16)))
    assert load(book).index["strate-00001"].helpful == 19


def test_a_folder_that_holds_only_its_contexts_is_exported(book, tmp_path):
    (tmp_path / "kept" / "contexts").mkdir(parents=True)
    (tmp_path / "kept" / "contexts" / "tested.json").write_bytes(book.read_bytes())
    export(tmp_path / "kept", tmp_path / "AGENTS.md", about="")
    assert "Read the units." in (tmp_path / "AGENTS.md").read_text()
