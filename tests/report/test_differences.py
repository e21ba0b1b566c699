"""The names of runs: exactly the settings in which they differ."""

from dataclasses import replace
from functools import cache

import pytest

from ace_bench.core.encoding import digest_of
from ace_bench.core.identity import identity_settings
from ace_bench.core.resources import config_folders
from ace_bench.report.differences import all_settings, differences, value_text
from ace_bench.report.records import RunSummary
from ace_bench.runners.planning import Composer
from tests.outcomes import outcomes

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
        name = next((text for text in overrides if text.startswith("name=")), "name=same").replace("=", ": ")
        (folder / "config.yaml").write_text("\n".join(f"{key}: {{}}" for key in (*chosen, "agent")) + f"\n{name}\n")
        known = RunSummary(
            **chosen, folder=folder, labels=config["labels"], seed=0, source="sample", simulated=True, digest="",
            identity=identity_settings(config), contents={"data": {}, "prompts": "", **(contents or {})},
        )  # fmt: skip
        return replace(known, **about)

    return make


DIFFERENCES = [
    "method.refiner.threshold=0.5 | method.refiner.threshold=0.7",
    "method.reflection_window=1 | method.reflection_window=2",
    "task=finer | task=formula method=icl",
    "method=ace | method=ace_rich",
    "task=finer | task=appworld",
    "method=gepa | method=mipro",
    "prompts=official | prompts=default",
    "method.retrieval.mode=bm25 mode.epochs=1 | method.retrieval.mode=off mode.epochs=2",
    (
        "backbone@roles.reflector=openai_compatible roles.reflector.model=M mode.epochs=1 | "
        "backbone@roles.reflector=openai_compatible roles.reflector.model=M mode.epochs=2"
    ),
    (
        "backbone=openai_compatible backbone.model=Qwen/Qwen3-0.6B | backbone=vllm "
        "backbone.model=meta/Llama-3.3-70B | seed=0"
    ),
    "backbone=openai_compatible backbone.model=a/M | backbone=openai_compatible backbone.model=b/M",
    "backbone=openai_compatible backbone.model=M | backbone=vllm backbone.model=M",
    "limit=3 name=one | name=two",
    "name=one | name=two | limit=3",
    "mode.epochs=5",
    "backbone=deepseek_v3_1 backbone.model=deepseek-chat",
    "seed=0 | backbone@roles.reflector=openai_compatible roles.reflector.model=M",
]


def test_runs_are_named_by_the_settings_in_which_they_differ(snapshot, made):
    def answer(runs):
        found = differences([made(*one.split()) for one in runs.split(" | ")])
        return f"{' | '.join(found.labels)}\nall: {found.common}\n{found.names}"

    assert outcomes(answer, DIFFERENCES) == snapshot


def test_what_all_runs_share_is_named_once_and_a_setting_that_a_run_lacks_is_a_dash(made):
    runs = [made("method.refiner.threshold=0.5"), made("method.refiner.threshold=0.7"), made("method=base", seed=1)]
    found = differences(runs)
    assert found.labels == ("ace · threshold=0.5 · seed 0", "ace · threshold=0.7 · seed 0", "base · seed 1")
    assert found.text(2, "method.refiner.threshold") == "-"
    served = made("backbone=vllm", "backbone.model=Qwen/Qwen3-0.6B", "limit=3", seed=2, protocol="official")
    assert differences([served]).common == (
        "finer · ace · Qwen3-0.6B · offline · labels=gold · protocol=official · seed 2 · limit=3"
    )


def test_data_and_served_models_of_other_content_and_copies_are_named(made, tmp_path):
    run = made()
    names = [digest_of({"test.jsonl": text})[:8] for text in "ab"]
    found = differences([made(contents={"data": {"test.jsonl": text}}) for text in "ab"])
    assert found.labels == tuple(f"data=test.jsonl@{name}" for name in names)
    found = differences([made(contents={"backbones": {"generator": {"revision": text}}}) for text in "ab"])
    assert found.labels == ("revision=a", "revision=b")
    assert differences([run, made(source="real")]).labels == ("source=sample", "source=real")
    assert differences([run, replace(run, attempt=2)]).labels == ("attempt 1", "attempt 2")
    copies = [run, replace(run, folder=tmp_path / "copy")]
    assert differences(copies).labels == tuple(value_text(str(one.folder)) for one in copies)
    assert differences([]).labels == ()


def test_settings_are_found_by_path_and_a_part_by_the_name_of_its_class(made):
    part = {"_target_": "package.module.Part", "size": 1}
    settings = {"task": {"_target_": "a.Task", "part": part}, "agent": {"_target_": "a.Agent", "max_steps": 3}}
    identity = {**settings, "labels": "gold", "limit": {"test": 5}, "prompts": "default"}
    run = replace(made(), identity=identity, contents={"data": {"a": "1", "b": "2"}, "prompts": "0a" * 32}, seed=3)
    assert all_settings([run]) == [{
        "task": "finer", "task.part": "Part", "task.part.size": 1, "agent": "Agent", "agent.max_steps": 3,
        "labels": "gold", "limit.test": 5, "prompts": "default", "method": "ace", "backbone": "embedded",
        "mode": "offline", "protocol": "paper", "source": "sample", "data": digest_of({"a": "1", "b": "2"}),
        "templates": "0a" * 32, "seed": 3, "attempt": 1,
    }]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *(("x" * 40, "x" * 40), ("x" * 41, f"{'x' * 30}…{digest_of('x' * 41)[:8]}"), ("0a" * 32, "0a0a0a0a")),
        *(("0a" * 20, "0a" * 20), ("0g" * 32, f"{'0g' * 15}…{digest_of('0g' * 32)[:8]}")),
        *((0.5, "0.5"), (None, "null"), (True, "true"), ([1, "a b"], "[1, 'a b']"), ({"k": 1}, "{k: 1}")),
    ],
)
def test_a_value_is_written_as_in_an_override_and_long_ones_and_digests_are_cut(value, text):
    assert value_text(value) == text
