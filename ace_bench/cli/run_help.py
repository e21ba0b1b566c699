"""The help of ``ace-bench run``, without Hydra, which would take a second to import launchers and compose a
configuration."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ace_bench.cli.setting_docs import SettingDoc, read_option
from ace_bench.core.errors import ConfigError
from ace_bench.core.program import command_line
from ace_bench.core.resources import config_folders, configs_folder, options

_GROUPS = "$APP_CONFIG_GROUPS"
_SETTINGS = "$SETTINGS"
_WRITTEN = "python run.py"
"""The command's placeholder in the template of ``config.yaml``."""
_WIDTH, _COLUMN = 120, 34


def help_text(words: Sequence[str]) -> str:
    """Return the settings of the options that ``words`` choose (``method=ace``), or else the overview.

    The overview is the template of ``hydra.help`` in ``config.yaml``. Raises ``ConfigError`` for an unknown option.
    """
    folders = config_folders()
    pairs = [word.partition("=")[::2] for word in words]
    if chosen := [(group, name) for group, name in pairs if name and options(group, folders)]:
        return "\n".join(_option_text(group, name) for group, name in chosen)
    path = configs_folder() / "config.yaml"
    template: str = msgspec.yaml.decode(path.read_bytes())["hydra"]["help"]["template"]
    names = sorted({path.name for folder in folders for path in folder.iterdir() if path.is_dir()})
    listing = "".join(f"{name}: {', '.join(options(name, folders))}\n" for name in names)
    settings = "\n".join(_setting_lines(read_option(path).settings))
    return template.replace(_GROUPS, listing).replace(_SETTINGS, settings).replace(_WRITTEN, command_line("run")) + "\n"


def _option_text(group: str, name: str) -> str:
    files = options(group, config_folders())
    if name not in files:
        raise ConfigError(f"--help {group}={name}: {group} has {', '.join(files)}")
    option = read_option(files[name], group)
    inherited = [f"  as {group}={parent}, and:" for parent in option.parents]
    return "\n".join([f"{group}={name}: {option.title}", *inherited, *_setting_lines(option.settings), ""])


def _setting_lines(settings: Iterable[SettingDoc]) -> Iterator[str]:
    for setting in settings:
        head = f"  {setting.key}={setting.default}" if setting.default else f"  {setting.key}.*"
        text = textwrap.wrap(setting.text, _WIDTH - _COLUMN)
        if len(head) < _COLUMN and text:
            yield f"{head:{_COLUMN}}{text.pop(0)}"
        else:
            yield head
        yield from (" " * _COLUMN + line for line in text)
