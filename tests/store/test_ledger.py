"""Sums over calls: exact, whatever the order in which threads ended."""

from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.types import Completion, Stage, Usage
from ace_bench.store.call_log import Ledger

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
