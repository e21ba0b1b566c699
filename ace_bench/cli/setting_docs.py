"""The settings of a YAML file of ``configs/``, with the comment beside each: ``run --help`` and the site print them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ace_bench.core.resources import option_place

_LINE = re.compile(r"(?P<indent> *)(?P<key>[\w@/]+):(?P<value> *(?:\"[^\"]*\"|'[^']*'|[^#]*?))(?: *# *(?P<text>.*))?$")
_MORE = re.compile(r" +# *(?P<text>.*)$")
_PACKAGE = "# @package "


@dataclass(frozen=True)
class SettingDoc:
    """A setting: its path as it is overridden, its default as written (empty for a group), the comment beside it."""

    key: str
    default: str
    text: str


@dataclass(frozen=True)
class OptionDoc:
    """An option of a config group: the comment at its file's top, the options it inherits from, and its settings."""

    title: str
    parents: tuple[str, ...]
    settings: tuple[SettingDoc, ...]


def read_option(path: Path, group: str = "") -> OptionDoc:
    """Read a file of ``configs/<group>``; an indented comment on a line of its own continues the one above it."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    place = f"{place}." if (place := option_place(text, group)) else ""
    defaults = (msgspec.yaml.decode(text) or {}).get("defaults", [])
    return OptionDoc(
        title=_read_title(lines),
        parents=tuple(entry for entry in defaults if isinstance(entry, str) and entry != "_self_"),
        settings=tuple(replace(setting, key=place + setting.key) for setting in _read_settings(lines)),
    )


def _read_title(lines: list[str]) -> str:
    """Return the comment above the first key, but for Hydra's own."""
    words = []
    for line in lines:
        if not line.startswith("#"):
            break
        if not line.startswith(_PACKAGE):
            words.append(line.removeprefix("#").strip())
    return " ".join(words)


def _read_settings(lines: list[str]) -> Iterator[SettingDoc]:
    above: list[tuple[int, str]] = []
    latest: SettingDoc | None = None
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            more = _MORE.match(line)
            if more and latest is not None:
                latest = replace(latest, text=f"{latest.text} {more['text']}".strip())
            elif latest is not None and not latest.default:
                latest = replace(latest, default=line.strip())
            continue
        if latest is not None:
            yield latest
        indent = len(found["indent"])
        above = [(before, name) for before, name in above if before < indent] + [(indent, found["key"])]
        names = [name for _, name in above]
        ours = names[0] not in ("defaults", "hydra") and names[-1] != "_target_"
        latest = SettingDoc(".".join(names), found["value"].strip(), found["text"] or "") if ours else None
    if latest is not None:
        yield latest
