"""The table of all methods: what it runs, what it says, and that finished runs are taken as they are."""

from importlib import import_module

import pytest

from ace_bench.cli.main import start
from tests.launching import launch

SMALL = ("methods", "--only", "base", "ace_online", "dc", "--test", "3")


@pytest.fixture(scope="module")
def script():
    return import_module("ace_benchmarks.command")


@pytest.fixture
def benchmark(script, monkeypatch, capsys):
    """Run the script, its runs in this process; give its status, output and the overrides of each run."""
    asked = []

    def run(setting, *overrides):
        asked.append(overrides)
        ran = launch(setting.scratch, *overrides)
        capsys.readouterr()
        assert ran.status == 0
        return ran.folder

    monkeypatch.setattr(script.Setting, "run", run)
    return lambda *arguments: (start("benchmark", arguments), capsys.readouterr(), asked)


def rows(text, first):
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return [line for line in lines if line[0] == first]


@pytest.mark.slow
def test_methods_side_by_side_and_again_without_new_calls(benchmark, tmp_path):
    command = (*SMALL, "--results", str(tmp_path / "runs"), "--out")
    status, output, asked = benchmark(*command, str(tmp_path / "m.md"))
    assert status == 0
    assert len(asked) == 6
    assert all("limit={test: 3}" in overrides for overrides in asked)
    text = (tmp_path / "m.md").read_text()
    assert "embedded backbone [simulated], sample data (3 test), labels=gold, seed 0" in text
    assert "[simulated], sample data" in output.out
    base, dc, ace = rows(text, "finer")
    assert base[1:3] + base[4:6] == ["base", "", "evaluate", "3"]
    assert dc[2] == ace[2] == base[3]
    assert ace[4] == "adapt"
    assert int(ace[6]) > int(dc[6]) == 6  # calls: generator and curator of three samples
    (calls,) = rows(text, "ACE online : DC (cumulative) online")
    assert calls[2] == f"{100 * (int(ace[6]) / 6 - 1):+.1f} % ({ace[6]} : 6)"
    assert [row[1:2] + row[4:] for row in rows(text, "") if row[1] in ("dollars at list prices", "seconds")] == [
        ["dollars at list prices", "-83.6 %"],
        ["seconds", "-91.5 %"],
    ]
    calls = {path: path.read_bytes() for path in tmp_path.rglob("calls.jsonl")}
    assert benchmark(*command, str(tmp_path / "again.md"))[0] == 0
    assert (tmp_path / "again.md").read_text() == text
    assert calls == {path: path.read_bytes() for path in tmp_path.rglob("calls.jsonl")}


@pytest.mark.slow
def test_a_run_that_fails_says_why(script, capsys, tmp_path):
    assert start("benchmark", ["methods", "--only", "base", "--data", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "methods: run task=finer" in error
    assert "is not a folder" in error


def test_an_unknown_case_and_prices_that_are_not_there_are_named(script, capsys):
    with pytest.raises(SystemExit):
        start("benchmark", ["methodes"])
    assert "there is no case methodes" in capsys.readouterr().err
    assert start("benchmark", ["methods", "--prices", "embedded"]) == 2
    assert "--prices embedded: " in capsys.readouterr().err
