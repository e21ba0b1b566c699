"""The program as a whole: its list of commands, and words that are no command."""

from importlib.metadata import EntryPoint, version

import pytest

from ace_bench.cli.main import Command, all_commands, commands_of_others, list_commands, main


def test_the_version_is_printed_and_without_arguments_the_commands_are_listed(capsys):
    for word in ("--version", "-V"):
        assert main([word]) == 0
        assert capsys.readouterr().out == f"ace-bench {version('ace-bench')}\n"
    printed = []
    for words in ([], ["-h"], ["--help"]):
        assert main(words) == 0
        printed.append(capsys.readouterr().out)
    (usage,) = {*printed}
    head, commands, *_ = usage.split("\n\n")
    assert (head, commands) == ("usage: ace-bench COMMAND ...", list_commands(all_commands()).rstrip())
    assert "\n`--config-dir DIR` with any command adds" in usage


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
