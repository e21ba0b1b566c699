"""What agent code may leave where the harness collects an episode's outputs."""

import os
import shutil

import pytest

from ace_bench.tasks.appworld import pool
from ace_bench.tasks.appworld.pool import Unusable, collect


@pytest.fixture
def logs(tmp_path):
    """The logs of an episode, which its agent code can write."""
    world, logs = tmp_path / "episode" / "world" / "out" / "tasks" / "t_1", tmp_path / "episode" / "agent" / "logs"
    for folder in (world / "dbs", world / "version", logs):
        folder.mkdir(parents=True)
    (world / "dbs" / "spotify.jsonl").write_text("[]\n")
    (world / "dbs" / "model_hashes.json").write_text("{}")
    (logs / "api_calls.jsonl").write_text("{}\n")
    return logs


def collected(tmp_path):
    target = tmp_path / "kept"
    collect(tmp_path / "episode", "t_1", target)
    return sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())


def test_only_files_with_the_engines_names_are_taken(logs, tmp_path):
    (logs / "spotify.db").write_text("a whole database")
    (logs.parent / "notes.txt").write_text("left over")
    (logs.parent / "dbs").mkdir()
    (logs.parent / "dbs" / "venmo.jsonl").write_text("[]")
    assert collected(tmp_path) == ["dbs/model_hashes.json", "dbs/spotify.jsonl", "logs/api_calls.jsonl"]


PLANTED = {
    "a link": lambda log, secret: log.symlink_to(secret),
    "a hard link": lambda log, secret: log.hardlink_to(secret),
    "a pipe": lambda log, _: os.mkfifo(log),
    "a folder": lambda log, _: log.mkdir(),
    "a linked folder": lambda log, secret: (shutil.rmtree(log.parent), log.parent.symlink_to(secret.parent)),
    "nothing": lambda log, _: shutil.rmtree(log.parent),
}


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED)
def test_nothing_is_taken_through_links_or_from_what_is_no_file(logs, tmp_path, plant):
    secret = tmp_path / "secret" / "environment_io.md"
    secret.parent.mkdir()
    secret.write_text("a secret")
    plant(logs / secret.name, secret)
    with pytest.raises(Unusable):
        collected(tmp_path)


def test_a_flood_is_cut_off(logs, tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "MAX_BYTES", 1 << 20)
    saved = sum(path.stat().st_size for path in (tmp_path / "episode").rglob("*") if path.is_file())
    (logs / "environment_io.md").write_text("x" * ((1 << 20) - saved))
    assert len(collected(tmp_path)) == 4
    shutil.rmtree(tmp_path / "kept")
    (logs / "environment_io.md").write_text("x" * ((1 << 20) - saved + 1))
    with pytest.raises(Unusable, match=r"^the saved files hold more than 1 MiB$"):
        collected(tmp_path)
