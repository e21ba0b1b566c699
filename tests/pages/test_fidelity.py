"""The fidelity page: it names every setting that the official protocol changes, and its switches exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from tests.launching import ROOT, composed

PAGE = (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
MODES = ("offline", "online")
TABLES = {"ACE": "finer", "ACE on AppWorld": "appworld"}
"""The task of each table, by the heading above it."""


def configuration(task: str, mode: str, protocol: str) -> DictConfig:
    return composed(f"task={task}", "method=ace", f"mode={mode}", f"protocol={protocol}")[0]


def changed(paper: Any, official: Any, place: str = "") -> Iterator[str]:
    """Yield the places of the values that differ; the authors' loops are methods with few of ACE's settings."""
    if isinstance(paper, dict) and isinstance(official, dict):
        for name in official.keys() - {"_target_"}:
            yield from changed(paper.get(name), official.get(name), f"{place}.{name}".removeprefix("."))
    elif paper != official:
        yield place


def changes(task: str, mode: str) -> list[str]:
    paper, official = (
        OmegaConf.to_container(configuration(task, mode, protocol)) for protocol in ("paper", "official")
    )
    return [place for place in changed(paper, official) if place != "protocol"]


def switches(heading: str) -> list[str]:
    """Return what the last column of a table gives as code, but for files of the repository."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    given = [code for row in rows for code in re.findall(r"`([^`]+)`", row.removesuffix("|").rpartition("|")[2])]
    return [switch for code in given for switch in code.split() if not (ROOT / switch).exists()]


def named_settings() -> list[tuple[str, str, str]]:
    """Return the choice, setting and default of each row of the settings that the paper names."""
    section = PAGE.split("\n## Settings that the paper names\n")[1].split("\n## ")[0]
    rows = [[cell.strip("`") for cell in line.split("|")[1:5]] for line in section.splitlines() if line.startswith("|")]
    return [(choice, setting, default) for choice, setting, _, default in rows[2:]]


@pytest.mark.parametrize(("choice", "setting", "default"), named_settings())
def test_a_default_beside_the_papers_setting_is_the_one_in_the_code(choice, setting, default):
    config, choices = composed(*choice.split())
    value = choices[setting] if setting in choices else OmegaConf.select(config, setting)
    assert str("null" if value is None else value) == default


def has(config: DictConfig, place: str) -> bool:
    """Whether a setting exists, its value may be null; ``x.*`` stands for all settings in ``x``."""
    parent, _, name = place.removesuffix(".*").rpartition(".")
    folder = OmegaConf.select(config, parent) if parent else config
    return isinstance(folder, DictConfig) and name in folder


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("task", TABLES.values())
def test_every_setting_that_the_protocols_set_differently_is_on_the_page(task, mode):
    assert [place for place in changes(task, mode) if place not in PAGE] == []


@pytest.mark.parametrize("heading", TABLES)
def test_every_switch_of_a_table_exists(heading):
    configs = [configuration(TABLES[heading], mode, protocol) for mode in MODES for protocol in ("official", "paper")]
    places = [switch.partition("=")[0] for switch in switches(heading)]
    assert len(places) > 10, "the table is not read"
    settings = [place for place in places if place != "protocol"]
    assert [place for place in settings if not any(has(config, place) for config in configs)] == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("heading", TABLES)
def test_a_switch_that_the_official_protocol_sets_is_given_with_its_value(heading, mode):
    task = TABLES[heading]
    config, set_by_it = configuration(task, mode, "official"), changes(task, mode)
    for switch in switches(heading):
        place, given, _ = switch.partition("=")
        if given and place in set_by_it:
            assert OmegaConf.select(OmegaConf.from_dotlist([switch]), place) == OmegaConf.select(config, place)
