"""``run --help`` prints the comments beside the settings in ``configs/``."""

from pathlib import Path

import pytest

from ace_bench.cli.run import main
from ace_bench.cli.run_help import help_text
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import CONFIG_DIRS


def test_an_option_is_printed_with_its_defaults_and_all_lines_of_its_comments(snapshot, tmp_path, monkeypatch):
    option = Path(__file__).with_name("run_help.yaml").read_text()
    (tmp_path / "task").mkdir()
    monkeypatch.setenv(CONFIG_DIRS, str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    printed = []
    for package in ("task", "_global_", "other"):
        (tmp_path / "task" / "mine.yaml").write_text(f"# @package {package}\n{option}")
        printed.append(help_text(["task=mine"]))
    assert "\n\n".join(printed) == snapshot


def test_help_prints_the_overview_or_the_settings_of_chosen_options(capsys):
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    assert overview.startswith(
        "ace-bench: one experiment on self-improving LLM contexts.\n\n  ace-bench run task=finer "
    )
    assert "\nmode: evaluate, offline, online\n" in overview
    assert "\n  seed=0 " in overview
    assert "$" not in overview.replace("$HOME", "")
    assert overview.endswith("\n")
    assert main(["method=ace_rich", "-h", "mode=offline", "seed=3"]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    assert first.startswith("method=ace_rich: ")
    assert "\n  as method=ace, and:\n" in first
    assert second.startswith("mode=offline: ")
    assert "\n  mode.batch_size=1 " in second


def test_advanced_settings_are_printed_below_those_of_the_paper(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    first, advanced = help_text(["method=ace"]).split("\n\n")
    assert first.startswith("method=ace: ACE with the paper's settings")
    assert "\n  method.refiner.threshold=0.9 " in first
    assert advanced.startswith("  Beyond the paper: ")
    assert "\n  method.refiner.harmful_min=3 " in advanced


def test_help_on_an_unknown_option_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"^--help method=acee: method has ace, "):
        help_text(["method=acee"])
