"""What tells runs apart: settings that can change an answer, and the content of files, not their places."""

import pytest

from ace_bench.core.identity import RunIdentity, identity_settings

CONFIG = {
    "task": {"_target_": "T", "data_dir": "somewhere", "source": "real"},
    "method": {"_target_": "M", "initial": None},
    "mode": {"_target_": "O", "context": None},
    "agent": {"_target_": "A", "demonstrations": None},
    "backbone": {"_target_": "B", "name": "b", "timeout": 3},
    "roles": None,
    "labels": "gold",
    "limit": None,
    "prompts": "default",
    "embedder": "hashing",
    "seed": 0,
    "concurrency": 8,
}


WHOLE = {"method": CONFIG["method"] | {"curator_sees": "all", "curator_top_k": 7}}


@pytest.mark.parametrize("change", [{"seed": 1}, {"concurrency": 1}, {"roles": {"judge": None}}, WHOLE])
def test_what_changes_no_answer_changes_no_identity(change):
    assert identity_settings(CONFIG | change) == identity_settings(CONFIG)
    moved = CONFIG | {"task": CONFIG["task"] | {"data_dir": "elsewhere"}}
    assert identity_settings(moved) == identity_settings(CONFIG)


def test_another_view_of_the_curator_is_another_run():
    def settings(number):
        method = CONFIG["method"] | {"curator_sees": "nearest", "curator_top_k": number}
        return identity_settings(CONFIG | {"method": method})

    assert settings(7) not in (identity_settings(CONFIG), settings(8))


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
    missing = identity_settings(CONFIG | {"mode": {"_target_": "O", "context": "nowhere.json"}})
    assert missing["mode"]["context"] == "nowhere.json"


def test_the_digest_rests_on_settings_and_contents_but_not_on_the_name_of_a_prompt_set():
    def digest(change=(), **contents):
        return RunIdentity(settings=identity_settings(CONFIG | dict(change)), contents={"data": "x", **contents}).digest

    assert digest() == digest({"prompts": "a/copy/of/default"})
    assert len({digest(), digest({"labels": "none"}), digest(data="y"), digest(prompts="z")}) == 4
