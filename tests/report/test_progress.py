"""How far an unfinished run is, asked while its journal and calls grow."""

import json
from statistics import fmean

import pytest

from ace_bench.core.errors import StoreError
from ace_bench.report.progress import Progress
from ace_bench.store.results import CHECKSUMS
from tests.launching import launch
from tests.report.page.runs import FINER, copied, unfinished_copy


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("ran"), *FINER, "limit=5", "mode.epochs=2").folder


def expected(lines):
    """What a run with these lines in its journal has done, counted line by line."""
    graded = [line for line in lines if line["kind"] == "rollout"]
    steps = [line for line in lines if line["kind"] == "step"]
    first = [line for line in graded if line["trial"] == 0]
    tests = graded[-1]["stage"] == "evaluate"
    context = graded[-1]["context"]
    counted = [line for line in first if (line["stage"] == "evaluate") is tests]
    counted = [line for line in counted if line["context"] == context] if tests else counted[-20:]
    return {
        "stage": graded[-1]["stage"],
        "split": "test" if tests else "train",
        "done": len(counted) if tests else sum(len(step["samples"]) for step in steps),
        "total": 5 if tests else 10 if steps else None,
        "score": pytest.approx(100 * fmean(line["grade"]["score"] for line in counted)),
        "n": len(counted),
        "faults": 0,
        "steps": len(steps),
        "tokens": steps[-1]["context_tokens"] if steps else None,
        "items": steps[-1]["context_size"] if steps else None,
    }


def test_progress_is_what_the_lines_so_far_say(ran, tmp_path):
    folder = copied(ran, tmp_path / "seed0")
    metrics = json.loads((ran / "metrics.json").read_text())
    written = [(folder / name).read_bytes().splitlines(keepends=True) for name in ("journal.jsonl", "calls.jsonl")]
    (folder / "journal.jsonl").write_bytes(b"")
    (folder / "calls.jsonl").unlink()
    progress = Progress(folder)
    record = progress.record()
    speed = dict.fromkeys(("tokens_per_s", "call_tokens_per_s", "calls_in_flight"))
    usage = {"calls": 0, "in": 0, "out": 0, "cached": 0, "usd": 0.0, **speed}
    assert record == {
        **dict.fromkeys(("stage", "split"), ""), **dict.fromkeys(("total", "score", "tokens", "items")),
        **dict.fromkeys(("done", "n", "faults", "steps"), 0), "sizes": [], "models": [], **usage,
    }  # fmt: skip
    (folder / "calls.jsonl").write_bytes(b"".join(written[1]))
    for place, line in enumerate(written[0]):
        with (folder / "journal.jsonl").open("ab") as file:
            file.write(line[:-9])
            file.flush()
            progress.record()  # a line without its end is not read yet
            file.write(line[-9:])
        lines = list(map(json.loads, written[0][: place + 1]))
        if any(line["kind"] == "rollout" for line in lines):
            record = progress.record()
            assert {name: record[name] for name in expected(lines)} == expected(lines)
    assert record["calls"] == sum(sum(roles.values()) for roles in metrics["calls"].values())
    assert {way: record[way] for way in ("in", "out")} == metrics["tokens"]["total"]
    assert {name: record[name] for name in speed} == {name: metrics["timing"]["total"][name] for name in speed}
    assert record["cached"] == metrics["cache"]["total"]["cached_tokens"]
    steps = [line for line in lines if line["kind"] == "step"]
    assert record["sizes"] == [(n, one["context_tokens"], one["context_size"]) for n, one in enumerate(steps, 1)]


@pytest.mark.parametrize(("steps", "every"), [(0, 1), (1, 1), (60, 1), (61, 2), (121, 3)])
def test_a_long_curve_is_thinned_and_keeps_its_end(steps, every, tmp_path):
    lines = [{"kind": "step", "context_tokens": 10 * n, "context_size": n} for n in range(1, steps + 1)]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    record = Progress(tmp_path).record()
    assert record["sizes"] == [(n, 10 * n, n) for n in range(1, steps + 1) if (steps - n) % every == 0]
    assert (record["done"], record["total"], record["steps"]) == (0, None, steps)


@pytest.mark.parametrize(("epochs", "total"), [(3, 15), (None, 5)])
def test_a_mode_without_epochs_takes_each_sample_once(epochs, total, ran, tmp_path):
    folder = unfinished_copy(ran, tmp_path / "seed0")
    identity = json.loads((folder / "identity.json").read_text())
    identity["settings"]["mode"] = {} if epochs is None else {"epochs": epochs}
    (folder / "identity.json").write_text(json.dumps(identity))
    (folder / CHECKSUMS).unlink()
    assert Progress(folder).record()["total"] == total


def test_a_journal_that_a_continued_run_repaired_is_read_anew(ran, tmp_path):
    folder = copied(ran, tmp_path / "seed0")
    progress = Progress(folder)
    before = progress.record()
    journal = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join([*journal[:9], b"{damaged}\n"]))
    assert progress.record() == Progress(folder).record() != before
    (folder / "calls.jsonl").unlink()
    (folder / "calls.jsonl").mkdir()
    with pytest.raises(StoreError, match="cannot be read"):
        Progress(folder).record()
