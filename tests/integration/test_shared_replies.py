"""Runs that share a response cache at the same time pay for each call once, and get the same replies."""

import json
import subprocess
import sys

import pytest

from ace_bench.backbones.embedded.server.serve import ReaderServer
from tests.backbones.serving import over_http, running
from tests.launching import ROOT


@pytest.mark.slow
def test_two_runs_at_once_pay_once_for_each_call(tmp_path):
    with running(ReaderServer(host="127.0.0.1", port=0, latency_s=0.05)) as server:
        command = [
            *(sys.executable, "run.py", "task=formula", "method=ace", "task.source=sample"),
            *("limit={train: 2, test: 4}", "mode.epochs=1", "estimate=false", f"response_cache={tmp_path / 'cache'}"),
            *over_http(server.address),
        ]
        runs = [
            subprocess.Popen([*command, f"results={tmp_path / name}"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
            for name in ("one", "other")
        ]
        outputs = [run.communicate(timeout=120)[0] for run in runs]
        asked = server.stats()["completions"]
    assert [run.returncode for run in runs] == [0, 0], outputs
    folders = [ROOT / output.splitlines()[-1] for output in outputs]
    metrics = [json.loads((folder / "metrics.json").read_text()) for folder in folders]
    calls = [sum(sum(roles.values()) for roles in one["calls"].values()) for one in metrics]
    replayed = [sum(one["replayed"].values()) for one in metrics]
    assert calls[0] == calls[1]
    assert sum(calls) - sum(replayed) == calls[0], "each call was paid for by one of them"
    assert asked == calls[0] + 2 * 2, "and the server was asked no more than that, but for two calls of each probe"
    texts = [
        {call["id"]: call["text"] for call in map(json.loads, (folder / "calls.jsonl").read_text().splitlines())}
        for folder in folders
    ]
    assert texts[0] == texts[1]
