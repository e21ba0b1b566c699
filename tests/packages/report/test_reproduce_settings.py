"""Reproducing results with settings of one's own: a served model, dotted settings."""

import shlex

import pytest

from ace_bench.core.errors import ConfigError
from ace_bench.report.records import find_runs
from ace_rehearsal.server.serve import ReaderServer
from ace_report.reproducing.request import read_request
from ace_report.tables.results_index import ResultsIndex
from tests.backbones.serving import over_http, running
from tests.packages.report.conftest import EXPERIMENTS, compose

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
    assert said.count(" seed=0") == said.count(" seed=1") == len(runs) / 2
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


def test_a_setting_of_a_row_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(ConfigError, match="modl=x cannot be composed"):
        ResultsIndex(results=tmp_path, compose=compose, extra=("ace:roles.reflector.modl=x",)).selections  # noqa: B018


@pytest.mark.slow
def test_a_setting_that_names_its_method_goes_to_the_runs_of_that_method_that_have_it(reproduce):
    settings = ("ace:method.max_reflection_rounds=1", "gepa:method.max_metric_calls=20", "icl:mode.epochs=1")
    runs = commands(reproduce("table=1", *settings, "limit=3", "--dry-run")[1])
    taken = set()
    for words in runs:
        config = compose(words)
        assert config["limit"] == 3
        name = next(word.removeprefix("method=") for word in words if word.startswith("method="))
        given = (config["method"].get(one) for one in ("max_reflection_rounds", "max_metric_calls"))
        taken.add((name, config["mode"].get("epochs"), *given))
    rest = {("base", 5, None, None), ("ace_empty", 5, None, None), ("dc", 1, None, None)}
    assert taken == rest | {("icl", n, None, None) for n in (1, None)} | {("gepa", n, None, 20) for n in (5, None)} | {
        ("ace", n, 1, None) for n in (5, 1, None)
    }


def test_a_setting_that_is_given_twice_has_its_last_value():
    asked = read_request(["table=2", "limit=2", "ace:mode.epochs=1", "limit=3"], EXPERIMENTS)
    assert asked.overrides == ("ace:mode.epochs=1", "limit=3")


@pytest.mark.slow
def test_a_table_is_made_through_a_server(reader, reproduce, in_this_process, tmp_path):
    asked = ("table=4b", *served(reader), "limit=2", "ace:method.max_reflection_rounds=1", "budget.calls=500")
    status, said = reproduce(*asked)
    assert status == 0, said
    runs = find_runs(tmp_path).runs
    assert sorted((run.method, run.backbone, run.finished) for run in runs) == [
        ("ace", "openai_compatible", True),
        ("dc", "openai_compatible", True),
    ]
    calls = sum(len((run.folder / "calls.jsonl").read_text().splitlines()) for run in runs)
    probes = len(runs) + 1  # one before the first run, and one by each; of two calls, since the reader writes no text
    assert reader.stats()["completions"] == calls + 2 * probes
    (table,) = tmp_path.glob("tables/table_04b_*.md")
    assert table.stem.removeprefix("table_04b_") == (
        "embedded_over_openai_compatible-ace_max_reflection_rounds_1-limit_2-simulated-sample_data"
    ), "the model, and what can change an answer: neither the address nor the budget"
    text = table.read_text()
    assert "runs with embedded over openai_compatible, ace:method.max_reflection_rounds=1, limit=2 [" in text
    assert "missing" not in text
    assert "2 runs are finished" in reproduce(*asked)[1]


def test_what_runs_note_is_said_once_before_any_of_them_begins(reproduce):
    said = " ".join(reproduce("table=4b", "backbone=embedded", "protocol=official@ba78d34", "--dry-run")[1].split())
    assert said.count("names a state of ace-agent/ace; this run follows suzgunmirac/dynamic-cheatsheet@1cf258c.") == 1
