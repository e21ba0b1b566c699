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
    settings = FILES[name].all_settings
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


def test_the_site_lists_each_command_and_each_setting(monkeypatch):
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import docs_pages

    commands, settings = docs_pages.commands_page(), docs_pages.settings_page()
    for name in all_commands():
        assert f"## ace-bench {name}\n" in commands
    for option in ("--only-missing", "--every", "--latency-ms", "--bullets"):
        assert option in commands
    for file in FILES.values():
        for setting in file.all_settings:
            assert f"| `{setting.key}` |" in settings
