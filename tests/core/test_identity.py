"""What tells runs apart: settings that can change an answer, and the content of files, not their places."""

import json
import re
from pathlib import Path

import pytest
import yaml

from ace_bench.core.embedders import default_embedder, embedder_identity, model_folder
from ace_bench.core.identity import (
    RunIdentity,
    backbone_settings,
    changed_settings,
    fill_settings,
    identity_settings,
    settings_digest,
    without_fixed,
)
from tests.outcomes import outcomes

CONFIG = yaml.safe_load(Path(__file__).with_name("config.yaml").read_text())


def counted(case):
    """Return the parts of the settings that count and differ from the usual ones; of no change, all that count."""
    changes = json.loads(case)
    usual, changed = identity_settings(CONFIG), identity_settings(CONFIG | changes)
    if not changes:
        return usual
    return {name: changed.get(name) for name in {**usual, **changed} if usual.get(name) != changed.get(name)}


BACKBONE_IDENTITY = [
    '{"base_url": "http://h", "api_key_env": "K", "cache": {}, "prices": {}, "rate": 1, "connections": 3}',
    '{"structured": "auto"}',
    '{"bound_replies": true}',
    '{"bound_replies": 1}',
    '{"retry": {"empty": false, "attempts": 3}}',
    '{"retry": null}',
    '{"sampling": {"seed": null, "top_p": 1}}',
    '{"sampling": "greedy"}',
    '{"launch": false, "server": {"quantization": "fp8"}}',
    '{"launch": true, "server": {"served_name": "s", "quantization": "fp8", "flags": [], "port": 3}}',
]


IDENTITY = [
    "{}",
    '{"seed": 1, "concurrency": 1, "budget": {"calls": 3}}',
    '{"roles": null}',
    (
        '{"task": {"_target_": "T", "data_dir": "elsewhere", "source": "real", "hint": true, "data": '
        '"x.csv", "sample_data": "pkg://a", "instruction": "b"}}'
    ),
    '{"method": {"_target_": "M", "initial": null, "curator_sees": "all", "proposals": 3}}',
    ('{"method": {"_target_": "M", "initial": null, "curator_sees": 7, "proposals": null, "parents": 1, "keep": 2}}'),
    '{"mode": {"_target_": "O", "context": null, "window": 1, "batch_size": 1}}',
    '{"mode": {"batch_size": 1}}',
    '{"mode": {"_target_": "O", "context": "nowhere.json", "window": 1, "batch_size": 2}}',
    '{"sampling": {"judge": {"temperature": 1}, "curator": null}}',
    '{"sampling": {"judge": {"temperature": null}}}',
    '{"unreadable_replies": "fault"}',
    '{"unreadable_replies": "learn", "repeat_calls": false}',
    '{"repeat_calls": true}',
]


def test_settings_count_if_they_can_change_an_answer(snapshot):
    assert outcomes(counted, IDENTITY) == snapshot
    assert outcomes(lambda case: backbone_settings({"model": "m", **json.loads(case)}), BACKBONE_IDENTITY) == snapshot


def test_settings_differ_by_path_and_new_ones_have_their_defaults():
    old = {"a": 1, "part": {"_target_": "X", "b": 2}, "gone": {"x": 1}, "same": 0}
    new = {"a": 2, "part": {"_target_": "X", "b": 3, "c": 4}, "d": 5, "same": 0}
    assert dict(changed_settings(old, new)) == {"a": 1, "d": None, "gone": {"x": 1}, "part.b": 2, "part.c": None}
    assert fill_settings(old, new) == {**old, "d": 5, "part": {"_target_": "X", "b": 2, "c": 4}}
    assert fill_settings(old, {"part": {"_target_": "Y", "c": 4}, "a": {}}) == old
    assert fill_settings({"a": {}}, {"a": 1}) == {"a": {}}
    moved = {"part": {"_target_": "new.X", "c": 4}}
    assert fill_settings({"part": {"_target_": "old.X", "b": 2}}, moved)["part"] == {
        "_target_": "old.X",
        "b": 2,
        "c": 4,
    }


def test_a_setting_that_became_a_constant_counts_only_where_it_had_another_value():
    had = {"curator_every": 1, "token_budget": 9, "refiner": {"max_tokens": 9, "headroom": 0.0}, "order": "random"}
    now = {"method": {"refiner": {"max_tokens": 80_000}}}
    assert without_fixed({"method": had}, now) == {"method": {"refiner": {"max_tokens": 9}, "order": "random"}}
    assert without_fixed({"method": had}, {"method": had}) == {"method": had}, "of a class that still has them"


def test_a_class_that_moved_to_another_module_is_the_same_setting():
    old, new, other = ({"method": {"part": {"_target_": name, "a": 1}}} for name in ("old.m.X", "new.X", "new.Y"))
    assert settings_digest(old) == settings_digest(new) != settings_digest(other)


def test_the_evaluation_before_adaptation_may_count():
    before, without = ({"mode": {"before": on}, "seed": 1} for on in (True, False))
    assert settings_digest(before) != settings_digest(without)
    assert settings_digest(before, before=False) == settings_digest(without, before=False) == settings_digest(without)


@pytest.mark.parametrize(
    "name", [".", "static:./model", "~/m", "here", "static:here", "org/name", "hashing", "static:org/x"]
)
def test_the_name_of_an_embedder_is_a_path_if_it_looks_like_one_or_is_there(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("here", "hashing"):
        (tmp_path / folder).mkdir()
    paths = {".": Path(), "static:./model": Path("model"), "~/m": Path.home() / "m", "here": Path("here")}
    assert model_folder(name) == (paths | {"static:here": Path("here")}).get(name)


def test_the_folder_of_an_embedding_model_counts_by_the_files_that_decide_its_vectors(tmp_path):
    digests = []
    for place, name, text in (("a", "config.json", "1"), ("b", "config.json", "1"), ("c", "config.json", "2")):
        (tmp_path / place / "inner.json").mkdir(parents=True)
        (tmp_path / place / name).write_text(text)
        (tmp_path / place / "readme.md").write_text(place)
        digests.append(embedder_identity(str(tmp_path / place)))
        assert embedder_identity(f"static:{tmp_path / place}") == f"static:{digests[-1]}"
    assert re.fullmatch(r"folder: sha256 [0-9a-f]{16}", digests[0])
    assert digests[0] == digests[1] != digests[2]
    assert [embedder_identity(name) for name in ("hashing", None, f"{tmp_path}/d")] == [
        "hashing",
        None,
        f"{tmp_path}/d",
    ]


@pytest.mark.parametrize("installed", [True, False])
def test_the_usual_embedder_is_the_authors_where_it_is_installed_and_a_model_real(installed, monkeypatch):
    monkeypatch.setattr("ace_bench.core.embedders.find_spec", lambda _: object() if installed else None)
    theirs = "sentence-transformers/all-mpnet-base-v2" if installed else "hashing"
    assert [default_embedder(simulated=simulated) for simulated in (False, True)] == [theirs, "hashing"]


def test_an_endpoint_of_embeddings_counts_by_its_model():
    def settings(**endpoint):
        users = {"refiner": {"embedder": {"name": endpoint}}}
        return identity_settings(CONFIG | {"embedder": endpoint, "method": users})

    here = settings(url="http://here/v1", model="m", key_env=None)
    assert here == settings(url="http://there/v1", model="m", usd_per_million=1.0)
    assert here != settings(url="http://here/v1", model="other", key_env=None)
    assert here["embedder"] == here["method"]["refiner"]["embedder"]["name"] == "endpoint: m"


def test_a_context_file_counts_by_its_content(tmp_path):
    def settings(name, content):
        (tmp_path / name).write_text(content)
        return identity_settings(CONFIG | {"mode": {"_target_": "O", "context": str(tmp_path / name)}})

    assert settings("a.json", "one") == settings("b.json", "one") != settings("a.json", "two")


def test_the_digest_rests_on_settings_and_contents_but_not_on_the_name_of_a_prompt_set():
    def digest(change=(), **contents):
        return RunIdentity(settings=identity_settings(CONFIG | dict(change)), contents={"data": "x", **contents}).digest

    assert digest() == digest({"prompts": "a/copy/of/default"})
    assert len({digest(), digest({"labels": "none"}), digest(data="y"), digest(prompts="z")}) == 4
