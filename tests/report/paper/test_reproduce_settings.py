"""Reproducing results with settings of one's own: a served model, dotted settings."""

import shlex

import pytest

from ace_bench.backbones.embedded.server.serve import ReaderServer
from ace_bench.report.tables.results_index import ResultsIndex
from tests.backbones.serving import over_http, running
from tests.report.paper.conftest import compose

SERVED = ("backbone=vllm", "backbone.url=http://localhost:8000", "backbone.model=org/some-model")


@pytest.fixture
def reader():
    """The embedded reader, served over HTTP."""
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        yield server


def served(reader):
    """The settings of a user whose model is the reader behind a server."""
    return (*over_http(reader.address), "task.source=sample", "embedder=hashing")


def commands(said):
    """The settings of each run in the lines of a dry run, without seed and place, and what is found only later."""
    lines = [line.partition("  #")[0] for line in said.splitlines() if " ace-bench run " in line]
    words = [shlex.split(line.partition(" ace-bench run ")[2]) for line in lines]
    return [[word for word in some if not word.startswith(("seed=", "name=", "results="))] for some in words]


@pytest.mark.parametrize(
    "asked", [pytest.param("table=all", marks=pytest.mark.slow), "table=16", "figure=1", "figure=2"]
)
def test_every_result_takes_the_settings_of_the_backbone_that_is_asked_for(asked, reproduce):
    said = reproduce(asked, *SERVED, "backbone.timeout=5", "seed=0,1", "--dry-run")[1]  # refused: no data, no server
    runs = commands(said)
    assert said.count(" seed=0") + said.count(" seed=1") == len(runs)
    assert len(runs) / 3 < said.count(" seed=1") < len(runs) / 2, "what draws nothing is run once"
    for words in runs:
        backbone = compose(words)["backbone"]
        assert (backbone["url"], backbone["model"]) == ("http://localhost:8000", "org/some-model")
        assert backbone["timeout"] == 5


def models_of(said):
    """The models of the reflectors in a dry run; none where the role has no backbone of its own."""
    return [compose(words).get("roles", {}).get("reflector", {}).get("model") for words in commands(said)]


MINE = ("ace:backbone@roles.reflector=openai_compatible", "ace:roles.reflector.model=mine")
BY_ROW = (
    *("gpt_5_1:roles.reflector.model=big", "gpt_oss_120b:backbone@roles.reflector=openai_compatible"),
    *("gpt_oss_120b:roles.reflector.model=small", "ace:roles.reflector.api_key_env=null"),
)


@pytest.mark.parametrize(
    ("own", "models"),
    [((), {"gpt-5.1-2025-11-13", "gpt-oss-120b"}), (MINE, {"mine"}), (BY_ROW, {"big", "small"})],
)
def test_a_row_whose_role_has_another_model_keeps_it_and_takes_settings_for_it(own, models, reproduce, tmp_path):
    assert {*models_of(reproduce("table=16", *SERVED, *own, "--dry-run")[1])} == {None, *models}
    assert ResultsIndex(results=tmp_path, compose=compose, extra=(*SERVED, *own)).selections == [], "it stops no table"


def test_what_runs_note_is_said_once_before_any_of_them_begins(reproduce):
    said = " ".join(reproduce("table=4b", "backbone=embedded", "protocol=official@ba78d34", "--dry-run")[1].split())
    assert said.count("names a state of ace-agent/ace; this run follows suzgunmirac/dynamic-cheatsheet@1cf258c.") == 1
