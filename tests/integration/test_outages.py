"""A server that stops answering stops the run; repeated, the run ends as if the server had always answered."""

import json
import random

import pytest

from ace_bench.backbones.embedded.server.faults import Faults
from ace_bench.backbones.embedded.server.serve import ReaderServer
from ace_bench.report.evidence import read_calls, spent
from tests.backbones.serving import over_http, running
from tests.launching import launch, quick

METHODS = {
    "base": (),
    "ace": ("mode.epochs=2", "mode.batch_size=2"),
    "ace online": ("mode=online", "mode.window=2"),
    "reasoning_bank": ("mode=online", "labels=none", "mode.window=2"),
    "gepa": quick("gepa"),
}


class Failing(ReaderServer):
    """Answers some requests and after that only with status 500; ``left`` is how many it still answers."""

    left = 10**9

    def count(self, what):
        if what == "requests":
            self.left -= 1
            self.faults = Faults(chances={"http_500": float(self.left < 0)})
        return super().count(what)


@pytest.fixture(scope="module")
def server():
    with running(Failing(host="127.0.0.1", port=0)) as one:
        yield one


def overrides(server, method, *more):
    name = method.split()[0]
    small = (
        "task=formula",
        "task.source=sample",
        "limit={train: 4, val: 3, test: 4}",
        f"method={name}",
        *METHODS[method],
    )
    return (*small, *over_http(server.address), "backbone.retry.times=1", "backbone.retry.first_pause=0", *more)


@pytest.mark.slow
@pytest.mark.parametrize("method", [*METHODS][1:])
def test_outages_at_random_moments_change_nothing(method, server, tmp_path):
    server.left = 10**9
    whole = launch(tmp_path / "whole", *overrides(server, method))
    calls = len(whole.lines("calls"))
    rng = random.Random(method)
    outages = 0
    while True:
        # The probe before the run takes two requests.
        server.left = rng.randrange(2, 3 + calls // 3) if outages < 2 else 10**9
        ran = launch(tmp_path / "cut", *overrides(server, method))
        if ran.status == 0:
            break
        assert ran.status == 3
        status = json.loads((ran.folder / "status.json").read_text())
        assert status["state"] == "stopped"
        assert "left 5 calls in a row unanswered (server_error: HTTP 500" in status["reason"]
        outages += 1
    assert outages == 2
    assert ran.lasting() == whole.lasting()
    answered = [call["id"] for call in ran.lines("calls") if call["fault"] is None]
    assert sorted(answered) == sorted(call["id"] for call in whole.lines("calls"))


def test_what_an_outage_cost_stays_in_the_books(server, tmp_path):
    server.left = 2
    stopped = launch(tmp_path, *overrides(server, "base", "concurrency=1"))
    assert stopped.status == 3
    lost = [call for call in stopped.lines("calls") if call["fault"]]
    assert [call["fault"]["owner"] for call in lost] == ["backbone"] * 5
    assert sum(call["retries"] for call in lost) == 5
    down = launch(tmp_path, *overrides(server, "base", "concurrency=1", "backbone.base_url=http://127.0.0.1:9/v1"))
    assert (down.status, json.loads((down.folder / "status.json").read_text())["state"]) == (3, "stopped")
    server.left = 10**9
    ran = launch(tmp_path, *overrides(server, "base", "concurrency=1"))
    assert ran.metrics["calls"]["evaluate"] == {"generator": 4}
    assert ran.metrics["timing"]["evaluate"]["retries"] == 5
    assert ran.metrics["faults"] == {"adapt": {}, "evaluate": {}}
    assert spent(read_calls(ran.folder), "evaluate.generator.all.calls") == 4, "a report counts like the run"


def test_what_was_lost_before_faults_were_accepted_counts_as_wrong_then_and_not_before(server, tmp_path):
    server.left = 4
    assert launch(tmp_path, *overrides(server, "base", "concurrency=1")).status == 3
    server.left = 2
    ran = launch(tmp_path, *overrides(server, "base", "concurrency=1", "accept_faults=true"))
    assert ran.status == 0
    assert ran.metrics["headline"]["n"] == 4
    assert ran.metrics["faults"]["evaluate"] == {"generator/backbone/server_error": 2}
