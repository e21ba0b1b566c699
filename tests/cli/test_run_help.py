"""``run --help`` prints the comments beside the settings in ``configs/``."""

import pytest

from ace_bench.cli.run import main
from ace_bench.cli.run_help import help_text
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import CONFIG_DIRS

OPTION = """\
# @package {package}
# What it is,
# in two lines.
defaults: [base, _self_]
hydra:
  job: {{}}
_target_: a.B
rounds: 5  # how many
           # there are
text: "a # b"
limits:  # of a query
  rows: 10
  # a comment of its own continues the one above
words:
  [a, b]
a_setting_with_a_long_name: 34567  # stands above its comment
long: null  # {long}
"""
PRINTED = """\
task=mine: What it is, in two lines.
  as task=base, and:
  {place}rounds=5{fill}how many there are
  {place}text="a # b"
  {place}limits.*{fill}of a query
  {place}limits.rows=10{fill}a comment of its own continues the one above
  {place}words=[a, b]
  {place}a_setting_with_a_long_name=34567
                                  stands above its comment
  {place}long=null{fill}word word word word word word word word word word word word word word word word word
                                  word word word
"""


@pytest.mark.parametrize(("package", "place"), [("task", "task."), ("_global_", ""), ("other", "other.")])
def test_an_option_is_printed_with_its_defaults_and_all_lines_of_its_comments(package, place, tmp_path, monkeypatch):
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "mine.yaml").write_text(OPTION.format(package=package, long=" ".join(["word"] * 20)))
    monkeypatch.setenv(CONFIG_DIRS, str(tmp_path))
    expected = [line.format(place=place, fill="\0") for line in PRINTED.splitlines()]
    padded = [f"{head:34}{text}" for head, _, text in (line.partition("\0") for line in expected)]
    assert help_text(["task=mine"]).splitlines() == [line.rstrip() for line in padded]


def test_help_prints_the_overview_or_the_settings_of_chosen_options(capsys):
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    assert overview.startswith(
        "ace-bench: one experiment on self-improving LLM contexts.\n\n  ace-bench run task=finer "
    )
    assert "\nmode: evaluate, lifelong, offline, online\n" in overview
    assert "\n  seed=0 " in overview
    assert "$" not in overview.replace("$HOME", "")
    assert overview.endswith("\n")
    assert main(["method=ace_rich", "-h", "mode=offline", "seed=3"]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    assert first.startswith("method=ace_rich: ")
    assert "\n  as method=ace, and:\n" in first
    assert second.startswith("mode=offline: ")
    assert "\n  mode.batch_size=1 " in second


def test_help_on_an_unknown_option_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"^--help method=acee: method has ace, "):
        help_text(["method=acee"])
