"""A provider never bills more than the budget allows: replies asked for again and calls of killed processes count."""

import json
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ace_bench.backbones.embedded.backbone import EmbeddedBackbone
from ace_bench.backbones.embedded.server.faults import Faults
from ace_bench.backbones.embedded.server.serve import ReaderServer
from ace_bench.backbones.openai_compatible.settings import Sampling
from ace_bench.core.errors import BudgetExhausted, CallLost, RolloutFault
from ace_bench.core.types import Message, Stage
from ace_bench.runners.gateway import BoundLm, Caller, CallGateway
from ace_bench.runners.limits import Budget, Stop
from ace_bench.store.call_log import CallLog, Cost
from ace_bench.store.reservations import ReservationLog
from tests.backbones.openai_compatible.scripted import Reply, answer, client, serving
from tests.backbones.serving import over_http, running
from tests.launching import ROOT, launch

SMALL = ("task=formula", "task.source=sample", "method=base", "limit=12", "estimate=false")


class Counting(EmbeddedBackbone):
    """Counts the calls of runs, which the probe's are not."""

    made = 0

    def complete(self, messages, *, role, session, schema=None):
        self.made += not any(one in messages[-1].content for one in ("Reply with this JSON object", "a town that you"))
        return super().complete(messages, role=role, session=session, schema=schema)


@pytest.fixture
def server():
    with running(ReaderServer(host="127.0.0.1", port=0)) as one:
        one.backbone = Counting()
        yield one


def reason(ran):
    return json.loads((ran.folder / "status.json").read_text())["reason"]


@pytest.fixture
def enter(tmp_path):
    """Make gateways over one folder, each as another process would find it."""
    opened = []

    def make(backbone, **limits):
        for log in opened:
            log.close()
        calls, reserved = CallLog(tmp_path / "calls.jsonl"), ReservationLog(tmp_path / "reservations.jsonl")
        opened[:] = [calls, reserved]
        gateway = CallGateway(calls=calls, budget=Budget(**limits), stop=Stop(), wall=lambda: 0.0, reserved=reserved)

        def ask(text):
            caller = Caller(stage=Stage.ADAPT, role="generator", session=text)
            lm = BoundLm(gateway=gateway, backbone=backbone, caller=caller)
            return lm([Message(role="user", content=text)])

        ask.ledger = calls.ledger
        return ask

    yield make
    for log in opened:
        log.close()


def asked_until_exhausted(ask, *, at_once=1):
    def attempt(number):
        try:
            ask(f"question {number}")
        except (RolloutFault, CallLost):
            return None
        except BudgetExhausted as error:
            return error.reason
        return None

    with ThreadPoolExecutor(at_once) as pool:
        return next(filter(None, pool.map(attempt, range(40))))


@pytest.mark.parametrize("at_once", [1, 8])
@pytest.mark.parametrize("limit", [1, 2, 5, 9])
@pytest.mark.parametrize(
    "replies", [(answer(""),), (answer(""), answer("fine")) * 20, (Reply(body=b"<html>busy</html>"),)], ids=str
)
def test_replies_asked_for_again_count_and_the_limit_is_never_passed(replies, limit, at_once, enter):
    with serving(*replies) as server:
        ask = enter(client(server.url), calls=limit)
        assert f"budget.calls={limit} is used up" in asked_until_exhausted(ask, at_once=at_once)
        assert len(server.asked()) == limit
        assert Cost.from_account(ask.ledger.total).calls == limit, "the ledger counts what was sent"


@pytest.mark.parametrize("at_once", [1, 8])
def test_the_tokens_of_replies_asked_for_again_fit_the_budget(at_once, enter):
    with serving(answer(""), answer("fine"), *[answer(""), answer("fine")] * 20) as server:  # 120 tokens each
        backbone = client(server.url, sampling=Sampling(max_tokens=20))
        asked_until_exhausted(enter(backbone, tokens=3_000), at_once=at_once)
        assert 2_000 < len(server.asked()) * 120 <= 3_000


def test_a_call_that_was_not_asked_again_is_made_anew_with_a_larger_budget(enter):
    with serving(answer(""), answer(""), answer("fine")) as server:
        backbone = client(server.url)
        with pytest.raises(BudgetExhausted):
            enter(backbone, calls=1)("question")
        assert enter(backbone, calls=9)("question").text == "fine"
        assert len(server.asked()) == 3


def test_a_run_pays_for_no_more_empty_replies_than_its_budget_and_says_how_many(server, tmp_path):
    settings = (*SMALL, *over_http(server.address), "backbone.retry.first_pause=0", "concurrency=4")
    server.faults = Faults(chances={"empty": 1.0})
    stopped = launch(tmp_path, *settings, "budget.calls=5")
    assert (stopped.status, server.backbone.made) == (3, 5)
    server.faults = Faults(chances={"empty": 0.5})
    ended = launch(tmp_path, *settings, "budget.calls=60")
    again = sum(call["asked_again"] for call in ended.lines("calls"))
    assert ended.metrics["timing"]["evaluate"]["asked_again"] == again > 0
    summary = re.sub(r"[\s│]+", " ", (ended.folder / "summary.txt").read_text())
    assert f"{again} replies paid for and asked for again" in summary
    assert server.backbone.made == ended.metrics["calls"]["evaluate"]["generator"] + again


ONLINE = ("method=ace", "mode=online", "mode.window=8", "concurrency=8", "limit=30")


def kill_at_moments(command, server, moments):
    """Start a command and kill it, once for each number of calls that the server was sent."""
    for moment in moments:
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            until = time.monotonic() + 60
            while server.backbone.made < moment and process.poll() is None:
                assert time.monotonic() < until
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("limit", [20, pytest.param(40, marks=pytest.mark.slow)])
def test_calls_under_way_when_a_process_is_killed_count_as_spent(limit, server, tmp_path):
    server.latency_s = 0.1
    settings = (*SMALL, *over_http(server.address), *ONLINE, f"budget.calls={limit}")
    command = [sys.executable, "run.py", *settings, f"results={tmp_path}"]
    kill_at_moments(command, server, (limit // 3, limit - 6))
    server.latency_s = 0.0
    ran = launch(tmp_path, *settings)
    assert ran.status == 3
    assert f"budget.calls={limit} is used up" in reason(ran)
    assert "under way when the run was ended" in reason(ran)
    assert limit - 12 < server.backbone.made <= limit
    assert launch(tmp_path, *settings, "budget.calls=1000").status == 0


@pytest.mark.slow
def test_a_sweep_that_is_killed_stays_within_its_shared_budget(server, tmp_path):
    server.latency_s = 0.1
    settings = [*SMALL, *over_http(server.address), *ONLINE, "seed=0,1,2", "budget.shared=true", f"results={tmp_path}"]
    command = [sys.executable, "run.py", "-m", *settings, "launcher=threads", "hydra.launcher.n_jobs=3"]
    kill_at_moments([*command, "budget.calls=60"], server, (20, 40))
    about = {"cwd": ROOT, "capture_output": True, "text": True}
    stopped = subprocess.run([*command, "budget.calls=60"], check=False, **about)
    assert stopped.returncode == 1
    assert stopped.stdout.count(f"the budget of the runs in {tmp_path}/main together") == 3
    assert 30 < server.backbone.made <= 60
    subprocess.run([*command, "budget.calls=1000"], check=True, **about)


def test_what_a_process_reserved_stays_so_until_it_is_settled(tmp_path):
    path = tmp_path / "reservations.jsonl"
    log = ReservationLog(path)
    assert not path.exists()
    first, second = (log.reserve(name, Cost(calls=1, tokens=10, usd=0.5)) for name in "ab")
    log.settle([first])
    log.close()
    again = ReservationLog(path)
    assert again.lost == Cost(calls=1, tokens=10, usd=0.5)
    again.settle([second])
    again.close()
    assert ReservationLog(path).lost == Cost()
