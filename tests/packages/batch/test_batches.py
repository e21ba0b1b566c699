"""Whole experiments whose evaluations go in batch files, against a server that has OpenAI's files and batches."""

import json
import time

import pytest

from ace_batch import files
from ace_batch.files import BatchFiles
from ace_batch.gathering import split
from ace_batch.openai_files import OpenAIFiles
from ace_batch.settings import BatchSettings
from ace_bench.core.errors import FileUnwritable
from ace_bench.runners.build import assemble
from ace_bench.runners.composing import settle
from ace_bench.runners.identifying import identify
from ace_bench.runners.rehearsal import rehearse
from ace_bench.store.files import write_files
from ace_bench.tasks.finer import Finer
from tests.doubles import Crash
from tests.launching import composed, launch
from tests.packages.batch.serving import batch_server

TEST = 12
QUICK = ("backbone.batch.gather_seconds=0.1", "backbone.batch.poll_seconds=0.01")


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789abcdef")


def words(server, *more, batch="openai", method="base"):
    return (
        "backbone=openai_compatible",
        f"backbone.base_url={server.address}",
        "backbone.model=embedded",
        "backbone.simulated=true",
        "backbone.structured=json_schema",
        "backbone.retry.first_pause=0.001",
        "backbone.retry.longest_pause=0.002",
        *(f"backbone.prices.{name}=1" for name in ("input", "cached_input", "output")),
        "task=finer",
        "task.source=sample",
        f"limit={{train: 3, val: 1, test: {TEST}}}",
        "mode.before=false",
        f"method={method}",
        *((f"batch={batch}", *QUICK) if batch else ()),
        *more,
    )


def test_an_evaluation_is_one_file_at_half_the_price_with_the_same_records(tmp_path, capsys):
    with batch_server() as server:
        online = launch(tmp_path / "online", *words(server, batch=None))
        ran = launch(tmp_path / "batch", *words(server))
        again = launch(tmp_path / "online", *words(server))
    assert (online.status, ran.status, again.status, server.sizes()) == (0, 0, 0, [TEST])
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "batches for calls of evaluations at 0.5 of the price; calls of adaptation go online at the full price"
        in printed
    )
    assert {json.loads(line)["body"]["seed"] for line in server.files["file-0"].splitlines()} == {0}
    assert again.folder == online.folder, "batches identify no run: one begun online is the same with them"
    assert {call["id"] for call in ran.lines("calls")} == {call["id"] for call in online.lines("calls")}
    assert ran.metrics["usd"]["total"] == pytest.approx(online.metrics["usd"]["total"] / 2)
    kept = ({name: value for name, value in one.lasting()[0].items() if name != "usd"} for one in (online, ran))
    assert next(kept) == next(kept)


@pytest.mark.slow
def test_adaptation_goes_online_at_the_full_price(tmp_path):
    with batch_server() as server:
        online = launch(tmp_path / "online", *words(server, method="ace", batch=None))
        ran = launch(tmp_path / "batch", *words(server, method="ace"))
        validated = 1
    assert ran.metrics["usd"]["adapt"] == online.metrics["usd"]["adapt"] > 0
    assert ran.metrics["usd"]["evaluate"] == pytest.approx(online.metrics["usd"]["evaluate"] / 2)
    assert server.sizes()[-1] == TEST
    assert set(server.sizes()[:-1]) <= {validated}


def estimated(batch, *more, method="base"):
    with batch_server() as server:
        config, choices = composed(*words(server, *more, batch=batch, method=method))
    return rehearse(assemble(identify(settle(config, choices)))).typical.usage.usd


def test_estimates_have_the_price_of_batches():
    assert estimated("openai") == pytest.approx(estimated(None) / 2)


@pytest.mark.slow
def test_estimates_price_each_stage():
    online = estimated(None, method="ace")
    assert online / 2 < estimated("openai", method="ace") < online
    assert estimated("openai", "backbone.batch.adapt=batch", method="ace") == pytest.approx(online / 2)


def test_adaptation_is_refused_before_anything_is_spent(tmp_path, capsys):
    with batch_server() as server:
        ran = launch(tmp_path, *words(server, "backbone.batch.adapt=refuse", method="ace"))
    assert (ran.status, server.batches, ran.folder.exists()) == (2, {}, False)
    assert "mode=evaluate" in capsys.readouterr().err


def replaced(line, **fields):
    return json.dumps({**json.loads(line), **fields})


SERVER_ERROR = {"status_code": 500, "body": {"error": {"message": "try again"}}}
GARBAGE = ('{"custom_id":', "\x00\xff garbage")
LATE = {"response": None, "error": {"code": "batch_expired", "message": "too late"}}
CHANGES = {
    "expired": lambda lines: ("expired", lines[:5]),
    "cancelled": lambda _: ("cancelled", []),
    "holes and garbage": lambda lines: ("completed", [*lines[1:], replaced(lines[0], custom_id="nobody"), *GARBAGE]),
    "a failed line": lambda lines: ("completed", [replaced(lines[0], response=SERVER_ERROR), *lines[1:]]),
    "a late line": lambda lines: ("expired", [replaced(lines[0], **LATE), *lines[1:]]),
    "all failed": lambda lines: ("completed", [replaced(line, response=SERVER_ERROR) for line in lines]),
    "refused": lambda _: ("failed", ["the file has too many tokens"]),
}


ENDS = {
    "expired": (TEST - 5, "expired, 7 calls without a reply"),
    "cancelled": (TEST, "cancelled, 12 calls without a reply"),
    "holes and garbage": (1, "completed, 1 calls without a reply, 3 lines that belong to no call"),
    "a failed line": (1, "completed"),
    "a late line": (1, "expired"),
}


@pytest.mark.parametrize("change", ENDS)
def test_only_calls_without_a_reply_are_sent_again(tmp_path, change, capsys):
    left, said = ENDS[change]
    with batch_server(CHANGES[change]) as server:
        ran = launch(tmp_path, *words(server))
    assert (ran.status, server.sizes()) == (0, [TEST, left])
    assert len(server.answered) == TEST + (change == "holes and garbage")
    assert (ran.metrics["headline"]["n"], ran.metrics["faults"]["evaluate"]) == (TEST, {})
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line.startswith("Batch")] == [
        "Batch batch_0 of 12 calls was sent; the same command goes on with it.",
        f"Batch batch_0 has ended: {said}",
        f"Batch batch_1 of {left} calls was sent; the same command goes on with it.",
        "Batch batch_1 has ended: completed",
    ]


def test_a_batch_waits_for_rollouts_at_work_and_calls_between_attempts(tmp_path, monkeypatch):
    def open_late(self, sample, open_sample=Finer.open):
        time.sleep(0.05 * (int(sample.id.rpartition("-")[2]) % 3))
        return open_sample(self, sample)

    monkeypatch.setattr(Finer, "open", open_late)
    pauses = ("backbone.retry.first_pause=0.1", "backbone.retry.longest_pause=0.1")
    with batch_server(CHANGES["expired"]) as server:
        ran = launch(tmp_path, *words(server, "backbone.batch.gather_seconds=0.01", "concurrency=2", *pauses))
    assert (ran.status, server.sizes()) == (0, [TEST, TEST - 5])


ALONE = ("concurrency=1", "backbone.batch.calls=1")  # so most replies come before their calls
KILLED = [(OpenAIFiles, "status", ALONE), (BatchFiles, "set_id", ALONE), (BatchFiles, "end", ALONE)]


@pytest.mark.parametrize(("part", "name", "more"), [*KILLED, (OpenAIFiles, "send", ())])
def test_a_killed_run_goes_on_with_its_batch_or_sends_it_once(tmp_path, monkeypatch, part, name, more):
    def die(*_):
        raise Crash

    with batch_server() as server:
        calm = launch(tmp_path / "calm", *words(server))
        with monkeypatch.context() as patched:
            patched.setattr(part, name, die)
            with pytest.raises(Crash):
                launch(tmp_path / "killed", *words(server))
        ran = launch(tmp_path / "killed", *words(server, *more))
    assert (ran.status, server.sizes()) == (0, [TEST, TEST]), "one batch each"
    assert ran.lasting() == calm.lasting()
    assert not any(call["retries"] for call in ran.lines("calls"))


def test_a_full_disk_stops_the_run_which_goes_on_with_its_batch(tmp_path, monkeypatch, capsys):
    def write(contents):
        if any(path.name.endswith("replies.jsonl") for path in contents):
            raise FileUnwritable("the disk is full; free some space")
        return write_files(contents)

    with batch_server() as server:
        with monkeypatch.context() as patched:
            patched.setattr(files, "write_files", write)
            assert launch(tmp_path, *words(server)).status == 3
        assert "free some space" in " ".join(capsys.readouterr().out.split())
        assert launch(tmp_path, *words(server)).status == 0
    assert server.sizes() == [TEST]


def test_a_lost_answer_to_the_upload_begins_no_second_batch(tmp_path):
    with batch_server() as server:
        server.drop_created = True
        ran = launch(tmp_path, *words(server))
    assert (ran.status, server.sizes()) == (0, [TEST])


def test_a_server_that_dies_while_a_batch_runs_stops_the_run_which_goes_on(tmp_path, capsys):
    with batch_server() as server:
        server.release.clear()
        server.looks_left = 6
        ran = launch(tmp_path, *words(server, "backbone.retry.seconds=0.5"))
        assert ran.status == 3
        assert "Run the same command to continue" in " ".join(capsys.readouterr().out.split())
        server.looks_left = -1
        server.release.set()
        again = launch(tmp_path, *words(server))
    assert (again.status, again.folder, server.sizes()) == (0, ran.folder, [TEST])


@pytest.mark.parametrize(("change", "said"), [("all failed", ""), ("refused", "the file has too many tokens")])
def test_a_batch_without_replies_stops_the_run_and_is_sent_again(tmp_path, change, said, capsys):
    with batch_server(CHANGES[change]) as server:
        first, second = (launch(tmp_path, *words(server, "backbone.retry.times=0")).status for _ in range(2))
    assert (first, second, server.sizes()[-1]) == (3, 0, TEST)
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("reply", "ends", "said"),
    [
        ((200, b"<html>no</html>"), 2, "has no batch interface"),
        ((200, b"[1"), 2, "has no batch interface"),
        ((200, b'{"data": 3}'), 2, "has no batch interface"),
        ((404, b"{}"), 2, "has no batch interface"),
        ((503, b'{"error": {"message": "no"}}'), 3, "fails: HTTP 503"),
        ((401, b'{"error": {"message": "no"}}'), 3, "OPENAI_API_KEY"),
    ],
)
def test_a_server_that_takes_no_batches_is_named_before_anything_is_sent(tmp_path, capsys, reply, ends, said):
    with batch_server() as server:
        server.broken = reply
        assert launch(tmp_path, *words(server)).status == ends
    printed = capsys.readouterr()
    assert said in " ".join((printed.err + printed.out).split())
    assert server.batches == {}


def test_limits_of_the_provider_and_the_budget_are_kept(tmp_path, capsys):
    with batch_server() as server:
        assert launch(tmp_path / "lines", *words(server, "backbone.batch.max_lines=5")).status == 0
        assert server.sizes() == [5, 5, 2]
        assert launch(tmp_path / "budget", *words(server, "budget.calls=4")).status == 3
        assert server.sizes() == [5, 5, 2, 4]
        assert launch(tmp_path / "long", *words(server, "backbone.batch.max_mb=0.0001")).status == 3
    parts = [*split(dict.fromkeys("abcdefg", b"12345"), BatchSettings(max_lines=2, max_mb=1e-5))]
    assert [*map(list, parts)] == [["a", "b"], ["c", "d"], ["e", "f"], ["g"]]
    parts = [*split({"a": b"1" * 7, "b": b"1" * 3, "c": b"1", "d": b"1" * 11}, BatchSettings(max_mb=1e-5))]
    assert [*map(list, parts)] == [["a", "b"], ["c"], ["d"]]
    assert len(server.batches) == 4
    assert "more than backbone.batch.max_mb=0.0001" in " ".join(capsys.readouterr().out.split())
