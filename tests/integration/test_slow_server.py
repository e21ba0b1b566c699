"""A server that is slow under load: a run says how fast it wrote, and what to try."""

import json
import time
from types import SimpleNamespace

import pytest

from ace_bench.cli.ls import main as ls
from ace_bench.runners.workers import Workers, make_all
from ace_bench.store.folder import ENDPOINTS
from tests.backbones.openai_compatible.scripted import Server, answer
from tests.backbones.openai_compatible.test_experiment import overrides
from tests.backbones.serving import running
from tests.launching import launch

PROBED = {"prompt_tokens": 10, "completion_tokens": 16}
WRITTEN = {"prompt_tokens": 100, "completion_tokens": 30}
ANSWER = '{"reasoning": "r", "bullet_ids": [], "final_answer": "x"}'


PROBE_CALLS = 3


class Slow(Server):
    """Writes a probe's reply in 40 ms, and 30 tokens in ``seconds``."""

    seconds = 0.3
    probe_seconds = 0.04

    def next(self, path, headers, body):
        found = super().next(path, headers, body)
        if path == "/v1/models":
            return found
        probing = len(json.dumps(body["messages"])) < 300  # all other prompts are long
        time.sleep(self.probe_seconds if probing else self.seconds)
        return answer("A town by a lake.", usage=PROBED) if probing else found


@pytest.mark.parametrize("slow", [True, False])
def test_a_run_says_how_fast_the_server_wrote_and_what_to_try_where_it_was_slow(slow, tmp_path, capsys):
    server = Slow([answer(ANSWER, usage=WRITTEN)], ["embedded"])
    server.seconds = 0.5 if slow else 0.05
    run = ("method=base", "mode.epochs=1", "limit=8", "concurrency=8", "mode.before=false", "estimate=false")
    with running(server):
        ran = launch(
            tmp_path,
            *overrides(
                SimpleNamespace(address=server.url), *run, "backbone.api_key_env=null", "backbone.simulated=false"
            ),
        )
    longest = json.loads((ran.folder / ENDPOINTS).read_text())["backbone"]["longest_reply"]
    assert longest["tokens"] == 16
    total = ran.metrics["timing"]["total"]
    assert total["probe_tokens_per_s"] == pytest.approx(longest["tokens"] / longest["seconds"], rel=0.01)
    assert 2 < total["calls_in_flight"] <= 8
    assert total["tokens_per_s"] == pytest.approx(total["call_tokens_per_s"] * total["calls_in_flight"], rel=0.3)
    assert ("advice on speed" in (ran.folder / "summary.txt").read_text()) is slow
    assert ls([str(tmp_path), "--json"]) == 0
    row = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (row["tokens_per_s"], row["call_tokens_per_s"]) == (total["tokens_per_s"], total["call_tokens_per_s"])


def test_the_runs_of_a_sweep_probe_their_server_once_while_it_is_idle(tmp_path):
    server = Slow([answer(ANSWER, usage=WRITTEN)], ["embedded"])
    run = ("method=base", "mode.epochs=1", "limit=1", "mode.before=false", "estimate=false", f"results={tmp_path}")
    with running(server):
        words = overrides(SimpleNamespace(address=server.url), *run, "backbone.api_key_env=null")
        ends = make_all([(*words, f"seed={seed}") for seed in (0, 1)], Workers(1))
    first, second = (json.loads((end.folders[0] / ENDPOINTS).read_text())["backbone"] for end in ends)
    assert first == second, "the record of each run has the probe's result"
    assert first["longest_reply"]["seconds"] < 0.2
    calls = [len((end.folders[0] / "calls.jsonl").read_text().splitlines()) for end in ends]
    assert len(server.asked()) == sum(calls) + PROBE_CALLS


def test_a_sweep_probes_a_server_again_after_a_run_that_it_stopped(tmp_path):
    server = Slow([answer(ANSWER, usage=WRITTEN)], ["embedded"])
    run = ("method=base", "limit=2", "concurrency=1", "mode.before=false", "estimate=false", f"results={tmp_path}")
    with running(server):
        words = (*overrides(SimpleNamespace(address=server.url), *run, "backbone.api_key_env=null"), "budget.calls=1")
        ends = make_all([(*words, f"seed={seed}") for seed in (0, 1)], Workers(1))
    assert [end.status for end in ends] == [3, 3]
    assert len(server.asked()) == 2 * (PROBE_CALLS + 1)
