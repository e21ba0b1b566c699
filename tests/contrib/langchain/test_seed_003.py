"""The measurement of founding document 003: a LangChain agent's first run against its second, on a server."""

import csv

import pytest

from ace_bench.backbones.embedded.server.serve import ReaderServer
from ace_bench.cli.main import start
from tests.backbones.serving import running
from tests.launching import ROOT


@pytest.mark.slow
def test_the_second_run_is_better_and_the_same_command_again_is_free(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("ace_bench.contrib.langchain.two_runs.LEARNERS", ("nothing", "ace_gold"))
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        model = ("backbone.model=embedded", "backbone.api_key_env=null", "backbone.simulated=true")
        address = ("backbone=openai_compatible", f"backbone.base_url={server.address}")
        asked = ("experiment=seed_003", *address, *model, f"results={tmp_path}")
        assert start("reproduce", asked) == 0, capsys.readouterr().err
        table = tmp_path / "tables/table_seed_003_openai_compatible-embedded-simulated"
        first, calls = table.with_suffix(".csv").read_text(), server.stats()["requests"]
        assert start("reproduce", asked) == 0
        assert server.stats()["requests"] == calls
    assert table.with_suffix(".csv").read_text() == first
    scores = {(row["learner"], row["run"]): float(row["score"]) for row in csv.DictReader(first.splitlines())}
    assert [*scores.values()] == [50.0, 50.0, 50.0, 100.0]
    page = (ROOT / "docs/integrations.md").read_text()
    shown = [line for line in table.with_suffix(".md").read_text().splitlines() if line[:1] == "|" and "50" in line]
    assert len(shown) == 3
    assert all("|".join(map(str.strip, line.split("|"))) in page for line in shown)


def test_a_backbone_without_tools_is_named_before_the_first_call(tmp_path, capsys):
    settings = ("backbone=embedded", "backbone._target_=tests.contrib.langchain.test_seed_003.Toolless")
    assert start("reproduce", ("experiment=seed_003", *settings, f"results={tmp_path}")) != 0
    assert "toolless takes no tools: choose an OpenAI-compatible backbone" in capsys.readouterr().err


class Toolless:
    """A backbone that cannot be offered tools."""

    simulated = True
    context_length = None

    def __init__(self, *, name, attention, collapse):
        self.name = "toolless"
        self.identity = {}

    def count(self, text):
        return len(text)
