"""No limit of a budget is passed, however many calls are in flight and whatever they cost."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ace_bench.backbones.embedded.server.serve import ReaderServer
from ace_bench.core.errors import BudgetExhausted, CallLost, ConfigError, RolloutFault
from ace_bench.core.types import Completion, Fault, Message, Stage, Usage
from ace_bench.runners.build import check_reply_limits
from ace_bench.runners.composing import compose_run
from ace_bench.runners.gateway import BoundLm, Caller, CallGateway
from ace_bench.runners.identifying import identify
from ace_bench.runners.limits import Budget, Stop
from ace_bench.runners.outages import FaultRule
from ace_bench.runners.settings import decode
from ace_bench.runners.shared_limits import SharedLimits, divide_limits
from ace_bench.store.call_log import CallLog
from tests.backbones.serving import over_http, running
from tests.launching import launch

LIMIT = 200


class Drawing:
    """Makes four bytes of a prompt a token, draws the length of its replies, and leaves a call in ten unanswered."""

    name, simulated, identity, context_length = "drawing", False, {}, None

    def __init__(self, limit=LIMIT):
        self._limit = limit
        self._random = random.Random(0)
        self._lock = threading.Lock()
        self.most_at_once = self._now = 0

    def reply_limit(self, role):
        return self._limit

    def dollars(self, usage):
        return (usage.prompt + 4 * usage.completion) / 1e6

    def complete(self, messages, *, role, session, schema=None):
        with self._lock:
            drawn, lost = self._random.randint(1, LIMIT), self._random.random() < 0.1
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        threading.Event().wait(0.002)
        with self._lock:
            self._now -= 1
        if lost:
            raise RolloutFault(Fault(owner="backbone", kind="no_reply", message="scripted"))
        usage = Usage(prompt=20 + len(messages[-1].content) // 4, completion=drawn, cached=0)
        usage = Usage(prompt=usage.prompt, completion=drawn, cached=0, usd=self.dollars(usage))
        return Completion(text="reply", usage=usage, seconds=0.002)


@pytest.fixture
def spend(tmp_path):
    """Ask from many threads until the budget is exhausted; return the ledger's sums and the reasons to stop."""

    def ask_all(backbone, at_once, run=None, together=None, **limits):
        folder = run or tmp_path / "main/run/digest/alone"
        folder.mkdir(parents=True, exist_ok=True)
        calls = CallLog(folder / "calls.jsonl")
        about = {"budget": Budget(**limits), "stop": Stop(), "wall": lambda: 0.0, "faults": FaultRule(stop_after=10**9)}
        spending = (together or SharedLimits()).spending(folder, about["budget"])
        gateway = CallGateway(calls=calls, spending=spending, run=folder, **about)

        def ask_on(number):
            drawn = random.Random(number)
            caller = Caller(stage=Stage.ADAPT, role=f"role {number % 2}", session=f"s{number}")
            lm = BoundLm(gateway=gateway, backbone=backbone, caller=caller)
            while True:
                try:
                    lm([Message(role="user", content="x" * drawn.randint(100, 2000))])
                except CallLost:
                    continue
                except BudgetExhausted as error:
                    return error.reason

        with ThreadPoolExecutor(at_once) as pool:
            reasons = set(pool.map(ask_on, range(at_once)))
        calls.close()
        return calls.ledger.total, reasons

    return ask_all


@pytest.mark.parametrize("at_once", [1, 8, 64])
@pytest.mark.parametrize(("name", "limit"), [("tokens", 50_000), ("usd", 0.05), ("calls", 90)])
def test_a_limit_is_nearly_used_up_and_never_passed(name, limit, at_once, spend):
    backbone = Drawing()
    total, reasons = spend(backbone, at_once, **{name: limit})
    tokens = total.usage.prompt + total.usage.completion
    spent = {"tokens": tokens, "usd": total.usage.usd, "calls": total.calls}[name]
    assert 0.97 * limit < spent <= limit
    assert len(reasons) == 1
    assert f"budget.{name}={limit:g}" in reasons.pop()
    assert backbone.most_at_once >= min(at_once, 8)


def test_a_backbone_that_passes_its_own_limit_is_reserved_more_from_then_on(spend):
    total, _ = spend(Drawing(limit=10), 8, tokens=50_000)
    assert 48_000 < total.usage.prompt + total.usage.completion <= 50_000


def test_a_reply_without_a_limit_is_refused_before_the_first_call():
    with pytest.raises(ConfigError, match=r"budget.tokens needs a limit of replies, and drawing"):
        check_reply_limits(Budget(tokens=100), {"generator": Drawing(limit=None)})
    check_reply_limits(Budget(calls=100), {"generator": Drawing(limit=None)})


def test_a_run_over_http_stays_within_its_tokens_and_dollars(tmp_path):
    with running(ReaderServer(host="127.0.0.1", port=0, latency_s=0.05)) as server:
        prices = ["backbone.prices.input=1", "backbone.prices.cached_input=0.1", "backbone.prices.output=4"]
        task = ["task=finer", "task.source=sample", "method=ace", "mode.epochs=1"]
        common = [*task, *over_http(server.address), *prices, "backbone.sampling.max_tokens=500"]
        for limit, most in (("tokens", 40_000), ("usd", 0.02)):
            ran = launch(tmp_path / limit, *common, "concurrency=32", f"budget.{limit}={most}")
            assert ran.status == 3
            usages = [call["usage"] for call in ran.lines("calls")]
            spent = sum(one["usd"] if limit == "usd" else one["prompt"] + one["completion"] for one in usages)
            assert 0.7 * most < spent <= most


def test_runs_that_share_a_budget_stay_within_it_together_and_what_was_spent_before_counts(spend, tmp_path):
    def one(number, together, tokens):
        run = tmp_path / f"main/run/digest/seed{number}"
        return spend(Drawing(), 8, run=run, together=together, tokens=tokens, shared=True)

    def sum_of(totals):
        return sum(total.usage.prompt + total.usage.completion for total in totals)

    for tokens in (100_000, 150_000):
        together = SharedLimits()
        with ThreadPoolExecutor(3) as pool:
            totals, reasons = zip(*pool.map(one, range(3), [together] * 3, [tokens] * 3), strict=True)
        assert tokens - 3_000 < sum_of(totals) <= tokens
        assert all("the budget of the runs in" in reason for reasons in reasons for reason in reasons)


@pytest.mark.parametrize("shares", [2, 3])
def test_shares_on_other_machines_stay_within_a_budget_also_when_one_is_started_again(shares, spend, tmp_path):
    limits = {"tokens": 120_000, "shared": True}
    words = ("task=formula", "task.source=sample", "method=base", f"results={tmp_path}", "max_calls_in_flight=8")
    budget = ("budget.tokens=120000", "budget.shared=true")
    configs = [compose_run((*words, *budget, f"seed={seed}")) for seed in range(6)]
    runs = [identify(decode(config)).folder for config in configs]
    before, _ = spend(Drawing(), 8, run=runs[0], **limits | {"tokens": 30_000})

    def make(number):
        """Make the runs of a share one after another, each until the share's part is used up."""
        together = SharedLimits(parts[number], configs[number::shares])
        return [spend(Drawing(), 8, run=run, together=together, **limits) for run in runs[number::shares]]

    parts = divide_limits(configs, shares)
    assert sum(part.calls_in_flight for part in parts) == 8
    made = [make(number) for number in range(shares)]
    again = make(0)
    assert [total for total, _ in again] == [total for total, _ in made[0]], "a share has its part only once"
    assert all("this share's part of the budget" in reason for _, reasons in again for reason in reasons)
    assert made[0][0][0].calls > before.calls
    usages = [total.usage for share in made for total, _ in share]
    assert 0.9 * limits["tokens"] < sum(usage.prompt + usage.completion for usage in usages) <= limits["tokens"]


def test_runs_with_different_limits_cannot_be_divided(tmp_path):
    words = ("task=formula", "task.source=sample", "method=base", f"results={tmp_path}")
    configs = [compose_run((*words, f"max_calls_in_flight={number}")) for number in (1, 2)]
    with pytest.raises(ConfigError, match="give all its runs the same max_calls_in_flight"):
        divide_limits(configs, 2)
    assert [part.calls_in_flight for part in divide_limits(configs[:1], 2)] == [1], "a share needs a call in flight"
