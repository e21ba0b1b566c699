"""Each setting is documented beside its field; `run --help` and the site's pages of settings and commands follow."""

import pytest

from ace_bench.cli.main import all_commands
from ace_bench.cli.run_help import read_option
from ace_bench.core.resources import config_folders, options
from tests.launching import CONFIGS, ROOT

GROUPS = ("task", "method", "mode", "agent", "backbone", "batch", "tracker", "launcher")
FILES = {
    "config.yaml": read_option(CONFIGS / "config.yaml"),
    **{
        f"{group}/{path.name}": read_option(path, group)
        for group in GROUPS
        for path in options(group, config_folders()).values()
    },
}


@pytest.mark.parametrize("name", [name for name, option in FILES.items() if not option.parents])
def test_each_setting_has_a_comment_of_its_own_or_of_its_group(name):
    settings = FILES[name].settings
    texts = {setting.key: setting.text for setting in settings}
    groups = {key[:place] for key in texts for place, letter in enumerate(key) if letter == "."}
    bare = [
        setting.key
        for setting in settings
        if setting.key not in groups
        and not any(text for key, text in texts.items() if f"{setting.key}.".startswith(f"{key}."))
    ]
    assert bare == []


@pytest.mark.parametrize("name", [name for name in FILES if name != "config.yaml"])
def test_each_option_says_what_it_is(name):
    assert FILES[name].title


def test_a_setting_is_read_with_its_default_and_all_lines_of_its_comment(tmp_path):
    file = tmp_path / "option.yaml"
    file.write_text(
        "# What it is,\n# in two lines.\ndefaults: [other, _self_]\n_target_: a.B\n"
        'rounds: 5  # how many\n           # there are\ntext: "a # b"\nlimits:  # of a query\n  rows: 10\n'
        "words:\n  [a, b]\nlast: null\n"
    )
    option = read_option(file, "task")
    assert (option.title, option.parents) == ("What it is, in two lines.", ("other",))
    assert [(one.key, one.default, one.text) for one in option.settings] == [
        ("task.rounds", "5", "how many there are"),
        ("task.text", '"a # b"', ""),
        ("task.limits", "", "of a query"),
        ("task.limits.rows", "10", ""),
        ("task.words", "[a, b]", ""),
        ("task.last", "null", ""),
    ]
    for package, key in (("_global_", "seed"), ("backbone", "backbone.seed")):
        file.write_text(f"# @package {package}\n# What it is.\nseed: 1\n")
        assert read_option(file, "experiment").settings[0].key == key


def test_help_prints_the_settings_of_every_run_and_of_chosen_options(capsys):
    from ace_bench.cli.run import main

    main(["--help"])
    assert "seed=0 " in (overview := capsys.readouterr().out)
    assert overview.endswith("\n")
    main(["method=ace_rich", "--help", "mode=offline", "seed=3"])
    printed = capsys.readouterr().out
    assert "as method=ace, and:" in printed
    assert "mode.batch_size=1 " in printed
    assert "Presets" not in printed


def test_help_on_an_unknown_option_lists_the_known_ones():
    from ace_bench.cli.run_help import help_text
    from ace_bench.core.errors import ConfigError

    with pytest.raises(ConfigError, match="method has ace, "):
        help_text(["method=acee"])


def test_the_site_lists_each_command_and_each_setting(monkeypatch):
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import docs_pages

    commands, settings = docs_pages.commands_page(), docs_pages.settings_page()
    for name in all_commands():
        assert f"## ace-bench {name}\n" in commands
    for option in ("--only-missing", "--max-bullet-tokens", "--latency-ms", "--bullets"):
        assert option in commands
    for file in FILES.values():
        for setting in file.settings:
            assert f"| `{setting.key}` |" in settings
