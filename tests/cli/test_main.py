"""The program as a whole: its list of commands, and words that are no command."""

import contextlib
from importlib.metadata import EntryPoint, version

import pytest

from ace_bench.cli.main import Command, all_commands, commands_of_others, list_commands, main
from ace_bench.cli.playbook.command import all_commands as commands_of_playbooks


def test_the_version_is_printed_and_without_arguments_the_commands_are_listed(capsys):
    for word in ("--version", "-V"):
        assert main([word]) == 0
        assert capsys.readouterr().out == f"ace-bench {version('ace-bench')}\n"
    printed = []
    for words in ([], ["-h"], ["--help"]):
        assert main(words) == 0
        printed.append(capsys.readouterr().out)
    (usage,) = {*printed}
    assert usage.startswith("usage: ace-bench COMMAND ...\n\nMake experiments:\n")
    assert {line.split()[0] for line in usage.splitlines() if line.startswith("  ")} == {*all_commands()}
    assert "\n`--config-dir DIR` with any command adds" in usage


HELPS = [
    *([name] for name in all_commands()),
    *(["playbook", name] for name in commands_of_playbooks()),
    *(["run", option] for option in ("method=ace", "task=qa", "backbone=llama_cpp")),
]


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
def test_help_fits_a_terminal_of_80_columns(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.suppress(SystemExit):
        main([*words[:-1], "--help", words[-1]] if "=" in words[-1] else [*words, "--help"])
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) > 3
    assert [line for line in printed if len(line) > 80] == []


def test_commands_of_packages_are_described_by_their_docstrings(tmp_path, monkeypatch):
    (tmp_path / "mine_of_test.py").write_text(
        '"""Count all.\n\nIn vain."""\n\ndef first(): pass\ndef other():\n    """Do More of it"""\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    places = {"b": "mine_of_test:other", "a": "mine_of_test", "c": "mine_of_test:first", "d": "nowhere_at_all.module"}
    points = [EntryPoint(name, place, "commands") for name, place in places.items()]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points if group == "commands" else [])
    assert list_commands({"longest": Command("x", "one of ours"), **commands_of_others("commands")}) == (
        "  longest  one of ours\n  a        count all\n  b        do More of it\n  c        \n"
        "  d        needs nowhere_at_all.module, which is not installed\n"
    )


def test_an_import_error_of_the_program_is_not_a_missing_package(monkeypatch):
    def fail(name):
        raise ImportError("cannot import name x from y")

    monkeypatch.setattr("ace_bench.cli.main.import_module", fail)
    with pytest.raises(ImportError, match="cannot import name x"):
        main(["ls"])
