"""Sums over calls, and what the runs of a folder have spent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.types import Completion, Stage, Usage
from ace_bench.store.call_log import Account, Cost, Ledger
from ace_bench.store.reservations import ReservationLog, read_costs

from .test_folder import written


def test_what_runs_have_spent_is_read_from_their_calls_and_open_reservations(tmp_path):
    for seed in range(2):
        written(tmp_path / "task" / "digest" / f"seed{seed}", calls=seed + 1)
    log = ReservationLog(tmp_path / "task" / "digest" / "seed0" / "reservations.jsonl")
    log.reserve("a call", Cost(calls=1, tokens=5, usd=0.25))
    log.close()
    costs = read_costs(tmp_path)
    assert {run.name: cost for run, cost in costs.items()} == {
        "seed0": Cost(calls=2, tokens=17, usd=0.75),
        "seed1": Cost(calls=2, tokens=24, usd=1.0),
    }


@pytest.mark.parametrize(
    ("other", "total", "left"),
    [
        (Cost(calls=1, tokens=2, usd=0.5), Cost(calls=4, tokens=12, usd=2.0), Cost(calls=2, tokens=8, usd=1.0)),
        (Cost(calls=1, tokens=None, usd=None), *(Cost(calls=n, tokens=None, usd=None) for n in (4, 2))),
    ],
)
def test_costs_are_added_and_taken_away_and_what_is_unknown_stays_so(other, total, left):
    account = Account(calls=5, replayed=2, usage=Usage(prompt=6, completion=4, usd=1.5))
    cost = Cost.from_account(account)
    assert (cost, cost + other, cost - other) == (Cost(calls=3, tokens=10, usd=1.5), total, left)
    assert vars(account + account) == {
        **dict.fromkeys(vars(account), 0),
        "calls": 10,
        "replayed": 4,
        "usage": Usage(prompt=12, completion=8, usd=3.0),
    }


DOLLARS = st.lists(st.floats(0, 10, allow_nan=False), min_size=2, max_size=50)


def ledger_of(dollars):
    ledger = Ledger()
    for number, usd in enumerate(dollars):
        usage = Usage(prompt=1, completion=1, cached=0, usd=usd)
        ledger.add(Stage.ADAPT, f"role{number % 3}", Completion(text="", usage=usage, seconds=0.1))
    return ledger


@given(DOLLARS, st.randoms())
def test_dollars_do_not_depend_on_the_order_of_the_calls(dollars, random):
    by_role = [dollars[role::3] for role in range(3)]
    for some in by_role:
        random.shuffle(some)
    shuffled = [by_role[number % 3][number // 3] for number in range(len(dollars))]
    one, other = ledger_of(dollars), ledger_of(shuffled)
    assert one.total.usage.usd == other.total.usage.usd
    assert one.stage(Stage.ADAPT) == other.stage(Stage.ADAPT)
    assert one.roles(Stage.ADAPT) == other.roles(Stage.ADAPT)


def test_a_sum_is_rounded_once_and_an_unknown_part_makes_it_unknown():
    assert ledger_of([0.1] * 10).total.usage.usd == 1.0
    assert ledger_of([1e9, 1e-9, -1e9]).total.usage.usd == 1e-9
    assert ledger_of([0.1, None, 0.1]).total.usage.usd is None
