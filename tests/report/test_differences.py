"""The names of runs: exactly the settings in which they differ."""

from dataclasses import replace
from functools import cache

import pytest

from ace_bench.cli.sweep_summary import note_run, runs_listed
from ace_bench.core.identity import identity_settings
from ace_bench.core.resources import config_folders
from ace_bench.report.differences import differences, value_text
from ace_bench.report.planned import PlannedRun
from ace_bench.report.records import RunSummary
from ace_bench.runners.planning import Composer
from tests.packages.report.planned import Planner

composer = cache(lambda: Composer(config_folders()))


@pytest.fixture
def made(tmp_path):
    """Makes a run from overrides, with only the files that names may need."""

    def make(*overrides, contents=None, **about):
        config = composer()([*("task=finer", "method=ace", "backbone=embedded"), *overrides])
        chosen = {"task": "finer", "method": "ace", "backbone": "embedded", "mode": "offline"}
        chosen |= {key: value for key, _, value in (text.partition("=") for text in overrides) if key in chosen}
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / "config.yaml").write_text(
            "\n".join(f"{key}: {{}}" for key in chosen) + f"\nagent: {{}}\nname: {overrides}"
        )
        known = RunSummary(
            **chosen, folder=folder, labels=config["labels"], seed=0, source="sample", simulated=True, digest="",
            identity=identity_settings(config), contents={"data": {}, "prompts": "", **(contents or {})},
        )  # fmt: skip
        return replace(known, **about)

    return make


def test_runs_of_a_sweep_are_named_by_what_it_varies(made):
    found = differences([made(f"method.refiner.threshold={value}") for value in (0.5, 0.7)])
    assert found.labels == ("threshold=0.5", "threshold=0.7")
    assert found.common == "finer · ace · embedded · offline · labels=gold · seed 0"
    assert found.names == {"method.refiner.threshold": "threshold"}
    # a setting that another one follows is named once
    found = differences([made("method.token_budget=1000"), made("method.token_budget=2000")])
    assert found.labels == ("token_budget=1000", "token_budget=2000")


def test_settings_of_one_method_do_not_name_runs_of_another(made):
    runs = [made("method.refiner.threshold=0.5"), made("method.refiner.threshold=0.7"), made("method=base", seed=1)]
    assert differences(runs).labels == ("ace · threshold=0.5 · seed 0", "ace · threshold=0.7 · seed 0", "base · seed 1")
    assert differences(runs).text(2, "method.refiner.threshold") == "-"
    assert differences([made(), made("task=formula", "method=icl")]).labels == ("finer · ace", "formula · icl")


def test_equal_last_parts_are_told_apart(made):
    runs = [made("method.retrieval.mode=bm25", "mode.epochs=1"), made("method.retrieval.mode=off", "mode.epochs=2")]
    assert differences(runs).labels == ("epochs=1 · retrieval.mode=bm25", "epochs=2 · retrieval.mode=off")
    other = made("backbone@roles.reflector=openai_compatible", "roles.reflector.model=M")
    assert "reflector.model" in differences([made(), other]).names.values(), "not the run's model"


def test_an_option_for_any_model_is_named_by_its_model(made):
    def asked(model, option="openai_compatible"):
        return made(f"backbone={option}", f"backbone.model={model}")

    found = differences([asked("Qwen/Qwen3-0.6B"), asked("meta-llama/Llama-3.3-70B-Instruct"), made()])
    assert found.labels == ("Qwen3-0.6B", "Llama-3.3-70B-Instruct", "embedded")
    assert differences([asked("Qwen/Qwen3-0.6B", "vllm")]).common.startswith("finer · ace · Qwen3-0.6B · offline")
    assert differences([asked("deepseek-chat", "deepseek_v3_1"), made()]).labels[0].startswith("deepseek_v3_1")
    assert differences([asked("a/M"), asked("b/M")]).labels == ("model=a/M", "model=b/M")  # one name for two
    assert differences([asked("M"), asked("M", "vllm")]).labels == ("openai_compatible", "vllm")


def test_data_of_other_content_is_named(made):
    runs = [made(contents={"data": {"test.jsonl": text}}) for text in "ab"]
    assert all(label.startswith("data=test.jsonl@") for label in differences(runs).labels)
    assert differences([made(), made(source="real")]).labels == ("source=sample", "source=real")


def test_where_and_how_a_run_was_made_only_counts_if_nothing_else_differs(made):
    first, second, third = made("name=one"), made("name=two"), made("limit=3", "name=one")
    assert differences([first, third]).labels == ("limit=null", "limit=3")
    names = differences([first, second, third]).labels
    assert len(set(names)) == 3
    assert "name=" in names[0]
    assert "name=" not in names[2]


def test_every_run_has_a_name_of_its_own_and_one_alone_has_the_whole(made):
    run = made()
    assert differences([run]).labels == ("finer · ace · embedded · offline · labels=gold · seed 0",)
    copies = differences([run, replace(run, attempt=2)])
    assert copies.labels == ("attempt 1", "attempt 2")
    assert differences([]).labels == ()


def test_a_long_value_is_cut_and_digests_are_short():
    assert value_text("x" * 40) == "x" * 40
    long, other = value_text("x" * 41), value_text("x" * 42)
    assert long != other
    assert long.startswith("x" * 30 + "…")
    assert len(long) == len(other) == 39
    assert value_text("0a" * 32) == "0a0a0a0a"


def test_a_sweep_ends_with_a_row_for_each_run(tmp_path, capsys):
    planner = Planner(tmp_path, composer(), simulated=True, source="sample")
    for task in ("finer", "formula"):
        planner.make(PlannedRun(overrides=(f"task={task}", "method=ace", "mode=offline")), [1.0, 0.0])
    with runs_listed():
        for folder in tmp_path.glob("**/seed*"):
            note_run(folder)
            note_run(folder)
    text = capsys.readouterr().out
    assert [len([line for line in text.splitlines() if f" {task} " in line]) for task in ("finer", "formula")] == [1, 1]
    assert "2 runs: ace · embedded" in text
    assert "simulated" in text
    assert "cannot be compared" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
