"""A served model is the paper's by any name of its preset, and a model that no table is about stands under none."""

from pathlib import Path

import pytest

from ace_bench.report.page.tables_page import _tables
from ace_bench.report.tables.results_index import ResultsIndex, Wanted
from ace_bench.report.tables.write import tables_of
from tests.report.paper.conftest import EXPERIMENTS, compose
from tests.report.paper.planned import Planner

SERVER = ("backbone=vllm", "backbone.url=http://localhost:8000")
OWN_TABLE = {"deepseek_v3_1": "2", "gpt_oss_120b": "7", "gpt_5_1": "8", "llama_3_3_70b": "9"}
"""A table about each model."""


def served(model, *settings):
    return (*SERVER, f"backbone.model={model}", *settings)


def preset(name, model, *settings):
    return (f"backbone={name}", "backbone.base_url=http://localhost:8000/v1", f"backbone.model={model}", *settings)


def slow(*case):
    """A case of one more name: each composes all runs of the tables with it."""
    return pytest.param(*case, marks=pytest.mark.slow)


def index_with(results: Path, *extra):
    """The index of a folder with a run of each table's base on FiNER."""
    planner = Planner(results, compose)
    for table in OWN_TABLE.values():
        try:
            planner.make(EXPERIMENTS.run(table, "base", "finer"), [1.0, 0.0], extra=extra)
        except FileExistsError:
            continue  # several tables have this run
    return ResultsIndex(results=results, compose=compose)


@pytest.mark.parametrize(
    ("extra", "model", "differs"),
    [
        (("backbone=deepseek_v3_1",), "deepseek_v3_1", ()),
        slow(preset("deepseek_v3_1", "deepseek-ai/DeepSeek-V3.1", "backbone.api_key_env=null"), "deepseek_v3_1", ()),
        slow(served("deepseek-ai/DeepSeek-V3.1"), "deepseek_v3_1", ()),
        (
            served("deepseek-ai/deepseek-v3.1", "+backbone.extra_body.chat_template_kwargs={thinking: false}"),
            "deepseek_v3_1",
            (),
        ),
        (
            served("deepseek-ai/DeepSeek-V3.1", "+backbone.extra_body.chat_template_kwargs={thinking: true}"),
            "deepseek_v3_1",
            ("backbone.extra_body={chat_template_kwargs: {thinking: true}}",),
        ),
        (
            served("deepseek-ai/DeepSeek-V3.1", "backbone.sampling.temperature=0.5"),
            "deepseek_v3_1",
            ("backbone.sampling.temperature=0.5",),
        ),
        slow(preset("gpt_oss_120b", "openai/gpt-oss-120b"), "gpt_oss_120b", ()),
        slow(preset("gpt_5_1", "gpt-5.1"), "gpt_5_1", ()),
        slow(preset("llama_3_3_70b", "meta-llama/Llama-3.3-70B-Instruct"), "llama_3_3_70b", ()),
        (served("meta-llama/Llama-3.3-70B-Instruct"), "llama_3_3_70b", ()),
    ],
)
def test_a_model_of_the_paper_is_known_by_each_name_and_stands_under_its_own_tables(extra, model, differs, tmp_path):
    index = index_with(tmp_path, *extra)
    (selection,) = index.selections
    planned = EXPERIMENTS.run(OWN_TABLE[model], "base", "finer")
    assert (selection.preset, selection.deviations(planned, model)) == (model, differs)
    shown = [name for name in OWN_TABLE.values() if [*tables_of(name, index, Wanted())]]
    assert shown == [OWN_TABLE[model]]


@pytest.mark.parametrize(
    "extra",
    [
        served("deepseek-ai/DeepSeek-V3.1-FP8"),
        slow(served("cognitivecomputations/DeepSeek-V3.1-AWQ")),
        served("deepseek-ai/DeepSeek-R1-Distill-Llama-70B"),
        slow(served("openai/gpt-oss-20b")),
        slow(served("meta-llama/Llama-3.3-70B-Instruct-Turbo")),
        slow(preset("deepseek_v3_1", "Qwen/Qwen3-0.6B")),
    ],
)
def test_a_model_that_no_table_is_about_stands_under_none_unless_asked_for(extra, tmp_path):
    index = index_with(tmp_path, *extra)
    assert not [name for name in OWN_TABLE.values() if [*tables_of(name, index, Wanted())]]
    titles = [table.title for table in _tables(index)]
    assert len(titles) == 1
    assert "of the paper" not in titles[0]
    ((selection, table),) = tables_of("2", index, Wanted(names=("2",)))
    assert selection.preset == ""
    assert "not the paper's setting" in table.title
