"""The table of all methods: what it runs, what it says, and that finished runs are taken as they are."""

from importlib import import_module

import pytest

from ace_bench.cli.main import start
from ace_rehearsal.reader.serve import ReaderServer
from tests.backbones.serving import running
from tests.launching import ROOT, launch

SMALL = ("methods", "--only", "base", "ace_online", "dc", "--test", "3")


@pytest.fixture(scope="module")
def script():
    return import_module("ace_bench.cli.benchmark")


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


def test_methods_side_by_side(benchmark, tmp_path):
    status, output, asked = benchmark(*SMALL, "--results", str(tmp_path / "runs"), "--out", str(tmp_path / "m.md"))
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


def test_a_killed_benchmark_goes_on(benchmark, tmp_path):
    first = benchmark(*SMALL, "--results", str(tmp_path), "--out", str(tmp_path / "first.md"))
    calls = {path: path.read_bytes() for path in tmp_path.rglob("calls.jsonl")}
    second = benchmark(*SMALL, "--results", str(tmp_path), "--out", str(tmp_path / "second.md"))
    assert first[0] == second[0] == 0
    assert (tmp_path / "first.md").read_text() == (tmp_path / "second.md").read_text()
    assert calls == {path: path.read_bytes() for path in tmp_path.rglob("calls.jsonl")}


def test_a_run_that_fails_says_why(script, capsys, tmp_path):
    assert start("benchmark", ["methods", "--only", "base", "--data", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "methods: run task=finer" in error
    assert "is not a folder" in error


def test_an_unknown_case_is_told(script, capsys):
    with pytest.raises(SystemExit):
        start("benchmark", ["methodes"])
    assert "there is no case methodes" in capsys.readouterr().err


def test_prices_that_are_not_there_are_told(script, capsys):
    assert start("benchmark", ["methods", "--prices", "embedded"]) == 1
    assert "--prices embedded: " in capsys.readouterr().err


def test_the_two_runs_of_an_agent_on_a_server_and_again_for_free(benchmark, tmp_path, monkeypatch):
    pytest.importorskip("langchain", reason="needs the extra langchain")
    two_runs = import_module("ace_bench.integrations.langchain.two_runs")
    monkeypatch.setattr(two_runs, "LEARNERS", ("nothing", "ace_gold"))
    kept = ("--results", str(tmp_path), "--out", str(tmp_path / "two.md"))
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        model = ("backbone.model=embedded", "backbone.api_key_env=null", "backbone.simulated=true")
        settings = ("--backbone", "backbone=openai_compatible", f"backbone.base_url={server.address}", *model)
        status, output, _ = benchmark("langchain", *kept, *settings)
        assert status == 0, output.err
        first = (tmp_path / "two.md").read_text()
        asked = server.stats()["requests"]
        assert benchmark("langchain", *kept, *settings)[0] == 0
        assert server.stats()["requests"] == asked
    assert (tmp_path / "two.md").read_text() == first
    assert "Two runs: embedded [simulated]" in first
    assert [row[1:4] for row in rows(first, "no playbook")] == [["1", "50.0", "19"]]
    (before,) = rows(first, "ACE's roles, right calls shown")
    after = first.splitlines()[first.splitlines().index(f"| {' | '.join(before)} |") + 1].strip("| ").split(" | ")
    assert (before[2], after[1]) == ("50.0", "100.0")
    assert f"| {' | '.join(before)} |" in (ROOT / "docs/integrations.md").read_text()


def test_a_backbone_without_tools_is_named_before_the_first_call(script, capsys, tmp_path):
    pytest.importorskip("langchain", reason="needs the extra langchain")
    settings = ["--backbone", "backbone=embedded", "backbone._target_=tests.cli.test_benchmark.Toolless"]
    assert start("benchmark", ["langchain", *settings, "--results", str(tmp_path)]) == 1
    assert "toolless takes no tools: choose an OpenAI-compatible backbone" in capsys.readouterr().err


class Toolless:
    """A backbone that cannot be offered tools."""

    simulated = True

    def __init__(self, *, name):
        self.name = "toolless"
