"""Shared by tests that launch whole runs."""

import json

import pytest

from ace_bench.cli.main import start


@pytest.fixture(autouse=True)
def _warm(one_warm_engine: None) -> None:
    """No test here is about loading AppWorld's engine."""


@pytest.fixture
def doctor(capsys):
    """Call the command; returns its exit status and what it says in JSON."""

    def call(results, *options):
        capsys.readouterr()
        status = start("doctor", [str(results), "--json", *options])
        return status, json.loads(capsys.readouterr().out)

    return call
