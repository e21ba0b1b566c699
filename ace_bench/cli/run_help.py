"""The help of ``ace-bench run``, from the comments beside the settings in ``configs/``, which the site prints, too.

Hydra is not asked: it would take a second to import launchers and compose a configuration.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ace_bench.core.errors import ConfigError
from ace_bench.core.program import command_line
from ace_bench.core.resources import config_folders, configs_folder, option_place, options, reading_config

_GROUPS = "$APP_CONFIG_GROUPS"
_SETTINGS = "$SETTINGS"
_WRITTEN = "python run.py"
"""The command's placeholder in the template of ``config.yaml``."""
_WIDEST, _COLUMN = 120, 34
_LINE = re.compile(r"(?P<indent> *)(?P<key>[\w@/]+):(?P<value> *(?:\"[^\"]*\"|'[^']*'|[^#]*?))(?: *# *(?P<text>.*))?$")
_MORE = re.compile(r" +# *(?P<text>.*)$")
_PACKAGE = "# @package "
_PART = "@_here_"
"""How an entry of ``defaults`` ends that is a part of the option, and no other option."""


@dataclass(frozen=True)
class SettingDoc:
    """A setting: its path as it is overridden, its default as written (empty for a group), the comment beside it."""

    key: str
    default: str
    text: str


@dataclass(frozen=True)
class OptionDoc:
    """An option of a config group: the comment at its file's top, the options it inherits from, and its settings.

    ``parts`` are files of settings that stand apart, such as the advanced ones, and belong to the option.
    """

    title: str
    parents: tuple[str, ...]
    settings: tuple[SettingDoc, ...]
    parts: tuple[OptionDoc, ...] = ()

    @property
    def all_settings(self) -> tuple[SettingDoc, ...]:
        """The settings of the option and of its parts."""
        return (*self.settings, *(setting for part in self.parts for setting in part.all_settings))


def read_option(path: Path, group: str = "") -> OptionDoc:
    """Read a file of ``configs/<group>``; an indented comment on a line of its own continues the one above it."""
    with reading_config(path):
        text = path.read_text(encoding="utf-8")
        defaults = (msgspec.yaml.decode(text) or {}).get("defaults", [])
    lines = text.splitlines()
    prefix = f"{prefix}." if (prefix := option_place(text, group)) else ""
    entries = [entry for entry in defaults if isinstance(entry, str) and entry != "_self_"]
    parts = [entry.removesuffix(_PART) for entry in entries if entry.endswith(_PART)]
    return OptionDoc(
        title=_read_title(lines),
        parents=tuple(entry for entry in entries if not entry.endswith(_PART)),
        parts=tuple(read_option(path.parent / f"{part}.yaml", group) for part in parts),
        settings=tuple(replace(setting, key=prefix + setting.key) for setting in _read_settings(lines)),
    )


def _read_title(lines: list[str]) -> str:
    """Return the comment above the first key, but for Hydra's own."""
    parts = []
    for line in lines:
        if not line.startswith("#"):
            break
        if not line.startswith(_PACKAGE):
            parts.append(line.removeprefix("#").strip())
    return " ".join(parts)


def _read_settings(lines: list[str]) -> Iterator[SettingDoc]:
    above: list[tuple[int, str]] = []
    latest: SettingDoc | None = None
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            continuation = _MORE.match(line)
            if continuation and latest is not None:
                latest = replace(latest, text=f"{latest.text} {continuation['text']}".strip())
            elif latest is not None and not latest.default:
                latest = replace(latest, default=line.strip())
            continue
        if latest is not None:
            yield latest
        indent = len(match["indent"])
        above = [(before, name) for before, name in above if before < indent] + [(indent, match["key"])]
        names = [name for _, name in above]
        is_setting = names[0] not in ("defaults", "hydra") and names[-1] != "_target_"
        latest = SettingDoc(".".join(names), match["value"].strip(), match["text"] or "") if is_setting else None
    if latest is not None:
        yield latest


def help_text(arguments: Sequence[str]) -> str:
    """Return the settings of the options that ``arguments`` choose (``method=ace``), or else the overview.

    The overview is the template of ``hydra.help`` in ``config.yaml``. Raises ``ConfigError`` for an unknown option.
    """
    folders = config_folders()
    pairs = [word.partition("=")[::2] for word in arguments]
    if chosen := [(group, name) for group, name in pairs if name and options(group, folders)]:
        return "\n".join(_option_text(group, name) for group, name in chosen)
    path = configs_folder() / "config.yaml"
    template: str = msgspec.yaml.decode(path.read_bytes())["hydra"]["help"]["template"]
    names = sorted({path.name for folder in folders for path in folder.iterdir() if path.is_dir()})
    listing = "".join(_hang(f"{name}: {', '.join(options(name, folders))}") + "\n" for name in names)
    settings = "\n".join(_setting_lines(read_option(path).settings))
    return template.replace(_GROUPS, listing).replace(_SETTINGS, settings).replace(_WRITTEN, command_line("run")) + "\n"


def _hang(text: str) -> str:
    return textwrap.fill(text, _line_width(), subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _line_width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDEST)


def _option_text(group: str, name: str) -> str:
    files = options(group, config_folders())
    if name not in files:
        raise ConfigError(f"--help {group}={name}: {group} has {', '.join(files)}")
    option = read_option(files[name], group)
    inherited = [f"  as {group}={parent}, and:" for parent in option.parents]
    lines = [_hang(f"{group}={name}: {option.title}"), *inherited, *_setting_lines(option.settings)]
    for part in option.parts:
        lines += ["", _hang(f"  {part.title}"), *_setting_lines(part.settings)]
    return "\n".join([*lines, ""])


def _setting_lines(settings: Iterable[SettingDoc]) -> Iterator[str]:
    for setting in settings:
        head = f"  {setting.key}={setting.default}" if setting.default else f"  {setting.key}.*"
        text = textwrap.wrap(setting.text, _line_width() - _COLUMN)
        if len(head) < _COLUMN and text:
            yield f"{head:{_COLUMN}}{text.pop(0)}"
        else:
            yield head
        yield from (" " * _COLUMN + line for line in text)
