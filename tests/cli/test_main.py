"""The program as a whole: its list of commands, and words that are no command."""

from importlib.metadata import version

import pytest

from ace_bench.cli.main import all_commands, main, start


def test_the_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ace-bench {version('ace-bench')}\n"


@pytest.mark.parametrize("option", ["-sc", "--shell-completion"])
def test_completion_that_would_not_work_is_no_option(option, capsys):
    assert main(["run", option, "install=bash"]) == 2
    assert "there is no option" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nosuchfolder"], "nosuchfolder is not a folder"),
        (["--rows", "method,method"], "--rows names method twice"),
    ],
)
def test_a_slip_in_a_table_is_named(arguments, said, capsys):
    assert main(["tables", "--columns", "task", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["table", "nosuchfolder"], "nosuchfolder is not a folder"),
        (["figure", "results"], "add --x SETTING"),
        (["tables", "--rows", "method", "--with-paper"], "are for the paper's results"),
    ],
)
def test_the_words_of_the_last_version_are_forms_of_the_longer_ones(arguments, said, capsys):
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_without_arguments_the_commands_are_listed(capsys):
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in all_commands())


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("reprot", "did you mean report?"),
        ("xyz", "the commands are init, run, ls, data"),
        ("task=finer", "did you mean `ace-bench run task=finer`?"),
    ],
)
def test_a_word_that_is_no_command_gets_a_hint(word, hint, capsys):
    assert main([word]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert hint in line


def test_an_option_that_a_command_lacks_gets_the_closest_one(capsys):
    with pytest.raises(SystemExit) as stop:
        start("tables", ["--with-papers"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == "error: there is no option --with-papers; did you mean --with-paper?\n"
