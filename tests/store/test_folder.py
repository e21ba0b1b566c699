import json
import os
import shutil
import subprocess
import sys

import pytest

from ace_bench.core.errors import StoreError
from ace_bench.core.types import Attempt, Completion, Grade, Message, Stage, Usage
from ace_bench.store.call_log import PaidReply
from ace_bench.store.calls import first_settings, read_calls
from ace_bench.store.folder import RunFolder, choose_folder
from ace_bench.store.journal import CacheRecord, RolloutRecord, StepRecord
from ace_bench.store.results import read_metrics
from tests.launching import launch

SMALL = ("task=formula", "task.source=sample", "method=base", "limit=2", "mode.before=false")
RECORD = RolloutRecord(
    key="adapt/epoch0/s1/abc/0",
    stage=Stage.ADAPT,
    split="train",
    sample="s1",
    context="abc",
    trial=0,
    attempt=Attempt(answer="a", reasoning="because", cited=("x-00001",)),
    grade=Grade(score=0.5, correct=False, observed="", gold="b", detail={"hits": 2.0}),
    fault=None,
    calls=1,
    seconds=0.1,
)
STEP = StepRecord(
    index=0,
    epoch=0,
    samples=("s1",),
    patch={"set": []},
    digest="def",
    context_tokens=3,
    context_size=1,
    events=({"event": "accepted"},),
)


def written(path, calls=1):
    folder = RunFolder(path)
    folder.journal.begin(Stage.ADAPT)
    folder.journal.add_rollout(RECORD)
    folder.journal.add_step(STEP)
    folder.journal.add_server("one", 7)
    folder.journal.add_server("one", 9)
    folder.journal.add_cache("one", 5, 3)
    usage = Usage(prompt=10, completion=2, cached=None, usd=0.5)
    reply = Completion(text="hi", usage=usage, seconds=0.2, waited=1.0, model="m")
    asked = [Message(role="user", content="Why?")]
    request = folder.calls.prepare("s", "generator", asked, schema={"type": "object"}, settings={"model": "m"})
    for number in range(calls):
        folder.calls.add(f"{request.name}/{number}", PaidReply(completion=reply), stage=Stage.ADAPT, request=request)
    folder.close()


def test_a_reopened_folder_knows_all_it_was_told(tmp_path):
    written(tmp_path)
    folder = RunFolder(tmp_path)
    assert folder.journal.rollouts == {RECORD.key: RECORD}
    assert folder.journal.steps == [STEP]
    assert folder.journal.asked_before == {"one": 7}, "before the first call"
    assert folder.journal.caches == [CacheRecord(server="one", stage=Stage.ADAPT, queries=5, hits=3)]
    assert folder.journal.stage is Stage.EVALUATE
    folder.journal.add_cache("one", 5, 3)
    assert len(folder.journal.caches) == 1, "in no stage"
    (call,) = read_calls(tmp_path)
    reply = folder.calls.find(call.id).completion
    assert (reply.text, reply.usage.prompt, reply.usage.cached) == ("hi", 10, None)
    assert folder.calls.find("id-2") is None
    assert first_settings(tmp_path, "generator") == {"model": "m"}
    assert first_settings(tmp_path, "curator") is first_settings(tmp_path / "none", "generator") is None
    account = folder.calls.ledger.roles(Stage.ADAPT)["generator"]
    assert (account.calls, account.usage.prompt, account.usage.cached, account.waited) == (1, 10, None, 1.0)
    assert folder.calls.ledger.stage(Stage.EVALUATE).calls == 0
    first = folder.journal.wall(Stage.ADAPT)
    folder.journal.begin(Stage.ADAPT)
    folder.journal.end()
    assert folder.journal.wall(Stage.ADAPT) > first > folder.journal.wall(Stage.EVALUATE) == 0, "it adds up"
    folder.close()


def test_a_folder_that_a_process_made_in_vain_is_removed_with_those_above_it(tmp_path):
    def discard(path, fill=lambda _: None):
        folder = RunFolder(path)
        fill(folder)
        done = folder.discard()
        folder.close()
        return done, path.exists()

    new = tmp_path / "task" / "digest" / "seed0"
    for fill in (
        lambda folder: folder.journal.add_rollout(RECORD),
        lambda folder: folder.journal.add_step(STEP),
    ):
        assert discard(new, fill) == (False, True)
        shutil.rmtree(tmp_path / "task")
    assert discard(new) == (True, False)
    assert [*tmp_path.iterdir()] == []
    new.mkdir(parents=True)
    assert discard(new) == (False, True), "so was this one"


@pytest.mark.parametrize(
    ("lost", "named"), [(0, ""), (1, "1 call that was recorded is"), (2, "2 calls that were recorded are")]
)
def test_calls_that_are_gone_from_the_end_are_named(lost, named, tmp_path, caplog):
    written(tmp_path, calls=3)
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[: 3 - lost]))
    RunFolder(tmp_path).close()
    said = f"{path}: {named} gone from its end, made again and paid for again"
    assert [record.getMessage() for record in caplog.records] == [said] * bool(lost)


def test_a_second_process_is_refused_and_a_dead_one_leaves_no_lock(tmp_path):
    code = (
        "import sys; from pathlib import Path; from ace_bench.store.folder import RunFolder\n"
        "held = RunFolder(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreError, match="in use by another process"):
            RunFolder(tmp_path)
        holder.kill()
    RunFolder(tmp_path).close()


def test_folders_are_continued_or_put_beside(tmp_path):
    assert choose_folder(tmp_path, 0, resume=True).name == "seed0"
    (tmp_path / "seed0").mkdir()
    (tmp_path / "seed10").mkdir()
    assert choose_folder(tmp_path, 0, resume=True).name == "seed0"
    assert choose_folder(tmp_path, 0, resume=False).name == "seed0-2"
    (tmp_path / "seed0-2").mkdir()
    assert choose_folder(tmp_path, 0, resume=True).name == "seed0-2"
    assert choose_folder(tmp_path, 1, resume=True).name == "seed1"


@pytest.mark.parametrize(("part", "total"), [("tokens", {"in": 5}), ("cache", {}), ("usd", None)])
def test_metrics_without_the_totals_that_pages_show_are_damaged(part, total, tmp_path):
    ran = launch(tmp_path, *SMALL)
    assert read_metrics(ran.folder) == ran.metrics
    file = ran.folder / "metrics.json"
    (ran.folder / "checksums.jsonl").unlink()
    for text in (json.dumps({**ran.metrics, part: {} if total is None else {"total": total}}), '{"headline": '):
        file.write_text(text)
        with pytest.raises(StoreError, match=r"metrics\.json is damaged"):
            read_metrics(ran.folder)


@pytest.mark.parametrize(
    ("mode", "umask", "expected"),
    [("private", 0o002, 0o700), ("group", 0o022, 0o750), ("group", 0o002, 0o770), ("all", 0o022, 0o755)],
)
def test_new_folders_are_for_those_that_the_setting_names(mode, umask, expected, tmp_path):
    (tmp_path / "results").mkdir(mode=0o755)
    before = os.umask(umask)
    try:
        settings = (*SMALL, f"response_cache={tmp_path / 'cache'}")
        ran = launch(tmp_path / "results" / "new", *settings, f"results_mode={mode}", "budget.calls=2")
        assert launch(tmp_path / "results" / "new", *settings).folder == ran.folder, "and keep their mode"
    finally:
        os.umask(before)
    made = [tmp_path / "cache", *(path for path in (tmp_path / "results").glob("*/**") if path in ran.folder.parents)]
    assert {folder.stat().st_mode & 0o777 for folder in (*made, ran.folder)} == {expected}
    assert (tmp_path / "results").stat().st_mode & 0o777 == 0o755
