"""The fidelity page: every setting that the official protocol changes on questions is named there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from omegaconf import OmegaConf

from tests.launching import ROOT, composed

PAGE = (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")


def changed(paper: Any, official: Any, place: str = "") -> Iterator[str]:
    """Yield the places of the values that differ."""
    if isinstance(paper, dict) and isinstance(official, dict):
        for name in paper.keys() | official.keys():
            yield from changed(paper.get(name), official.get(name), f"{place}.{name}".removeprefix("."))
    elif paper != official:
        yield place


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_every_setting_that_the_protocols_set_differently_is_on_the_page(mode):
    paper, official = (
        OmegaConf.to_container(composed("task=finer", f"mode={mode}", f"protocol={protocol}")[0])
        for protocol in ("paper", "official")
    )
    missing = [place for place in changed(paper, official) if place != "protocol" and place not in PAGE]
    assert missing == []
