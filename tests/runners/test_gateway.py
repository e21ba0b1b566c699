"""The counted gateway: replay, counting, exact budgets, clean stops."""

import pytest

from ace_bench.core.errors import BudgetExhausted, CallLost, Interrupted, RolloutFault
from ace_bench.core.types import Completion, Fault, Message, Stage, Usage
from ace_bench.runners.gateway import BoundLm, Caller, CallGateway
from ace_bench.runners.limits import Budget, Stop
from ace_bench.store.call_log import CallLog


class Counting:
    """Numbers its replies, of at most five tokens; those of a prompt with the word "fail" are faults."""

    name, simulated, identity, context_length = "counting", True, {}, None

    def __init__(self, usage=None):
        self.made = 0
        self._usage = usage or Usage(prompt=5, completion=5, usd=0.5)

    def reply_limit(self, role):
        return 5

    def complete(self, messages, *, role, session, schema=None):
        self.made += 1
        if "useless" in messages[-1].content:
            paid = Completion(text="cut off", usage=self._usage, seconds=0.1)
            raise RolloutFault(Fault(owner="model", kind="length_truncated", message="scripted"), paid)
        if "fail" in messages[-1].content:
            raise RolloutFault(Fault(owner="backbone", kind="no_reply", message="scripted"))
        return Completion(text=f"reply {self.made}", usage=self._usage, seconds=0.1)


class Entrance:
    def __init__(self, log, backbone, wall=0.0, **limits):
        self.calls, self.stop, self._backbone = log, Stop(), backbone
        self._gateway = CallGateway(calls=self.calls, budget=Budget(**limits), stop=self.stop, wall=lambda: wall)

    def ask(self, text="hello", session="s"):
        caller = Caller(stage=Stage.ADAPT, role="generator", session=session)
        lm = BoundLm(gateway=self._gateway, backbone=self._backbone, caller=caller)
        return lm([Message(role="user", content=text)])


@pytest.fixture
def enter(tmp_path):
    """Make doors over one and the same file of calls, each as another process would find it."""
    opened = []

    def make(backbone, **settings):
        for calls in opened:
            calls.sync()
        opened.append(CallLog(tmp_path / "calls.jsonl"))
        return Entrance(opened[-1], backbone, **settings)

    yield make
    for calls in opened:
        calls.close()


def test_a_later_process_gets_what_was_paid_for_in_the_order_it_was_asked(enter):
    asked = [("a", "s"), ("a", "s"), ("b", "s"), ("a", "t")]
    first = enter(Counting())
    paid = [first.ask(text, session).text for text, session in asked]
    assert len(set(paid)) == 4, "the same prompt asked again in a session is a new call"

    backbone = Counting()
    again = enter(backbone, calls=4)
    replies = [again.ask(text, session) for text, session in asked]
    assert [reply.text for reply in replies] == paid
    assert backbone.made == 0
    assert again.calls.ledger.total.calls == 4
    with pytest.raises(BudgetExhausted):
        again.ask("a", "s")


def test_a_failed_call_is_not_paid_and_leaves_its_place_in_the_budget(enter):
    entrance = enter(Counting(), calls=1)
    for _ in range(3):
        with pytest.raises(CallLost):
            entrance.ask("fail")
    assert entrance.calls.made == 0
    assert entrance.ask().text == "reply 4"
    with pytest.raises(BudgetExhausted):
        entrance.ask()


def test_after_a_stop_only_recorded_calls_pass(enter):
    backbone = Counting()
    enter(backbone).ask()
    entrance = enter(backbone)
    entrance.stop.request(Interrupted("interrupted by the user"))
    assert entrance.ask().text == "reply 1"
    with pytest.raises(Interrupted):
        entrance.ask("new")
    assert backbone.made == 1


@pytest.mark.parametrize(
    ("limits", "fits", "reason"),
    [
        ({"tokens": 300}, 29, r"budget.tokens=300 has 10 left, and the next call may take 12: raise it"),
        ({"usd": 1.0}, 2, "budget.usd=1 is used up"),
        ({"seconds": 10}, 0, "budget.seconds=10 is used up"),
        ({"calls": 1, "tokens": 10_000}, 1, "budget.calls=1 is used up"),
    ],
)
def test_each_limit_stops_and_says_so(limits, fits, reason, enter):
    backbone = Counting()
    entrance = enter(backbone, wall=10.0 if "seconds" in limits else 0.0, **limits)
    with pytest.raises(BudgetExhausted, match=reason):
        _ = [entrance.ask() for _ in range(99)]
    assert backbone.made == fits


@pytest.mark.parametrize("limit", ["tokens", "usd"])
def test_a_limit_that_cannot_be_checked_stops_rather_than_being_ignored(limit, enter):
    entrance = enter(Counting(usage=Usage(prompt=5)), **{limit: 10_000})
    entrance.ask()
    with pytest.raises(BudgetExhausted, match=f"does not report {limit}"):
        entrance.ask()


def test_a_reply_that_was_paid_for_and_useless_is_in_the_books_and_not_paid_for_again(enter):
    backbone = Counting()
    entrance = enter(backbone)
    for _ in range(2):  # here and, replayed, in the next process
        with pytest.raises(RolloutFault) as caught:
            entrance.ask("useless")
        assert caught.value.fault.kind == "length_truncated"
        account = entrance.calls.ledger.total
        assert (account.calls, account.usage.completion, account.usage.usd) == (1, 5, 0.5)
        entrance = enter(backbone)
    assert backbone.made == 1
