"""Downloading the official data, with a stand-in for the engine's command, which needs a network."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ace_appworld.setup import download
from ace_bench.core.errors import DataError


@pytest.fixture
def engine(tmp_path):
    """Make an engine whose command runs a shell script in the folder that it downloads into."""
    folder = tmp_path / "engine"
    (folder / "bin").mkdir(parents=True)

    def make(script):
        command = folder / "bin" / "appworld"
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)
        return folder

    return make


def test_a_download_finds_its_way_through_a_proxy_and_gets_no_keys(engine, tmp_path, monkeypatch):
    ways = {"HTTPS_PROXY": "http://proxy.example:1", "no_proxy": "localhost", "REQUESTS_CA_BUNDLE": "/certificates"}
    for name, value in {**ways, "OPENAI_API_KEY": "sk-planted"}.items():
        monkeypatch.setenv(name, value)
    target = tmp_path / "data" / "appworld"
    download(engine("mkdir -p data/datasets\nenv > data/datasets/seen"), target, Console(file=io.StringIO()))
    seen = (target / "data" / "datasets" / "seen").read_text().splitlines()
    assert {f"{name}={value}" for name, value in ways.items()} <= set(seen)
    assert "planted" not in "".join(seen)


@pytest.mark.parametrize("script", ["echo 'status code: 403'", "mkdir data\necho 'status code: 403' >&2\nexit 1"])
def test_a_download_that_fails_says_why_and_leaves_nothing(engine, tmp_path, script):
    target = tmp_path / "data" / "appworld"
    with pytest.raises(DataError, match=r"cannot be downloaded: .*403"):
        download(engine(script), target, Console(file=io.StringIO()))
    assert list(target.parent.iterdir()) == []
