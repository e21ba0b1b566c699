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


def test_a_run_beside_others_is_compared_with_a_probe_that_found_the_server_idle(tmp_path):
    class Busy(Slow):
        def next(self, path, headers, body):
            found = super().next(path, headers, body)
            self.probe_seconds = 0.3 if len(self.asked()) > 3 else self.probe_seconds  # the first run has begun
            return found

    server = Busy([answer(ANSWER, usage=WRITTEN)], ["embedded"])
    run = ("method=base", "mode.epochs=1", "limit=1", "mode.before=false", "estimate=false", f"results={tmp_path}")
    with running(server):
        words = overrides(SimpleNamespace(address=server.url), *run, "backbone.api_key_env=null")
        ends = make_all([(*words, f"seed={seed}") for seed in (0, 1)], Workers(1, captures=True))
    first, second = (json.loads((end.folders[0] / ENDPOINTS).read_text())["backbone"]["longest_reply"] for end in ends)
    assert first == second
    assert first["seconds"] < 0.2
