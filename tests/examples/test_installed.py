"""Packages of somebody else, installed beside ours: every command knows what they add, and their parts keep their
promises."""

import sys

import pytest

from ace_bench.core.errors import BackboneUnavailable, RolloutFault
from ace_bench.core.types import Message
from tests.examples.packages import EXAMPLES, install, output_of

ATLAS = """
prefix: null
hidden: []
failed: unknown country
whole_chars: 1000
rules: {capital: {action: 'capital of \\w+', tool: atlas, access: constant, category: Cities already found}}
"""


@pytest.mark.slow
def test_every_command_knows_what_installed_packages_add(tmp_path):
    for name in ("task", "method", "langchain_agent"):
        install(name, tmp_path / "site")

    def command(*words, status=0):
        return output_of("ace-bench", *words, site=tmp_path / "site", folder=tmp_path, status=status)

    cities = ("run", "task=capital_cities")
    assert "context mistakes, 8 items" in command(*cities, "method=last_mistakes", "mode.epochs=1")
    command("report", "results", "--out", "report.html")
    assert "capital_cities" in (tmp_path / "report.html").read_text()
    assert "last_mistakes" in command("tables", "results", "--rows", "method")
    (context,) = tmp_path.glob("results/main/**/contexts/final.json")
    assert "100.00" in command(*cities, "method=last_mistakes", "mode=evaluate", f"mode.context={context}")
    assert "office ask a LangChain agent about two customers" in command()
    assert "did you mean capital_cities?" in command("run", "task=capital_citys", status=2)
    assert "last_mistakes" in command("run", "--help")
    (tmp_path / "atlas/tools").mkdir(parents=True)
    (tmp_path / "atlas/tools/atlas.yaml").write_text(ATLAS)
    acting = ("--config-dir", "atlas", *cities, "agent=react", "agent.memory=execution")
    assert "agent.memory=execution needs to know the tools" in command(*acting, status=2)
    wrong = command(*acting, "+tools@agent.tools=atlas", "agent.tools.rules.capital.access=never", status=2)
    assert "agent.tools.rules.capital.access=never must be one of constant, read, open, write" in wrong


def test_a_program_that_fails_is_a_fault_and_one_that_is_missing_stops_the_run(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES / "backbone"))
    from program_backbone import Program

    def ask(*command):
        backbone = Program(command=command, timeout=1, simulated=True)
        return backbone.complete([Message(role="user", content="Red or green?")], role="generator", session="s")

    assert ask("cat").text == "Red or green?"
    assert ask("cat").usage.tokens is None
    for code in ("exit(1)", "import time; time.sleep(9)"):
        with pytest.raises(RolloutFault) as caught:
            ask(sys.executable, "-c", code)
        assert caught.value.fault.owner == "backbone"
    with pytest.raises(BackboneUnavailable, match="no-such-program cannot be started"):
        ask("no-such-program")
