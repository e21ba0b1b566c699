"""The program as a whole: its list of commands, and words that are no command."""

from importlib.metadata import version

import pytest

from ace_bench.cli.main import all_commands, main, start


def test_the_version_is_printed_and_without_arguments_the_commands_are_listed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ace-bench {version('ace-bench')}\n"
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in all_commands())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reprot"], "did you mean report?"),
        (["xyz"], "the commands are init, run, ls, data"),
        (["task=finer"], "did you mean `ace-bench run task=finer`?"),
        (["run", "-sc", "install=bash"], "there is no option"),  # Hydra's completion would not work
        (["run", "--shell-completion", "install=bash"], "there is no option"),
        (["tables", "--columns", "task", "nosuchfolder"], "nosuchfolder is not a folder"),
        (["tables", "--columns", "task", "--rows", "method,method"], "--rows names method twice"),
        (["tables", "--columns", "task", "--rows", " , "], "--rows names nothing"),
        (["tables", "--rows", "method", "--with-paper"], "are for the paper's results"),
        (["table", "nosuchfolder"], "nosuchfolder is not a folder"),  # the words of the last version
        (["figure", "results"], "add --x SETTING"),
        (["playbook", "lnt"], "did you mean lint"),
        (["playbook", "lint", "nowhere.json", "--similar", "2"], "--similar 2"),
    ],
)
def test_a_slip_is_one_sentence(arguments, said, capsys):
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_an_option_that_a_command_lacks_gets_the_closest_one(capsys):
    with pytest.raises(SystemExit) as stop:
        start("tables", ["--with-papers"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == "error: there is no option --with-papers; did you mean --with-paper?\n"
