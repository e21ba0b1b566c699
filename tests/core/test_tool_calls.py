"""Reading an agent's action takes time in proportion to its length, whatever a model writes."""

import time

import pytest

from ace_bench.core.tool_calls import read_action
from ace_bench.core.tool_rules import ToolRule, ToolRules

RULES = ToolRules(
    prefix="apis.",
    hidden=("access_token",),
    failed=None,
    whole_chars=1000,
    rules={"all": ToolRule(access="read", category=None, call="apis.*.*")},
)
UNITS = {
    "calls in a chain": ("apis.spotify", ".b()", ""),
    "arguments in a chain": ("apis.spotify.a", ".b(1, 2, 3)", ""),
    "calls of calls": ("apis.spotify.a", "()", ""),
    "attributes": ("apis.spotify", ".b", ""),
    "a chain on a text": ("''", ".join([])", ""),
    "subscripts": ("apis.spotify.a()", "[0]", ""),
    "calls in arguments": ("", "apis.spotify.a(", ")"),
    "calls in named arguments": ("", "apis.spotify.a(x=", ")"),
    "brackets": ("", "(", ")"),
    "brackets that are not closed": ("", "[", ""),
    "quotes": ("x = ", "'", ""),
    "f-strings": ("x = f'", "{apis.spotify.a()}", ""),
    "minus": ("x = ", "-", ""),
    "not": ("x = ", "not ", ""),
    "sums": ("apis.spotify.a(x=", "1 + ", ""),
    "choices": ("x = ", "1 if y else ", ""),
    "lambdas": ("x = ", "lambda: ", ""),
    "branches": ("if x:\n y()\n", "elif x:\n y()\n", ""),
    "statements": ("", "apis.spotify.a(x=1)\n", ""),
    "calls in a list": ("x = [", "apis.spotify.a(x=1), ", ""),
    "chains of middle length": ("", "apis.spotify" + ".b()" * 40 + "\n", ""),
    "nested calls of middle depth": ("", "apis.spotify.a(" * 30 + ")" * 30 + "\n", ""),
}
ENDS = {
    "f-strings": "'",
    "sums": "1)",
    "calls in a list": "]",
    "minus": "1",
    "not": "1",
    "choices": "1",
    "lambdas": "1",
}


def seconds(action):
    begun = time.process_time()
    read_action(action, RULES)
    return time.process_time() - begun


@pytest.mark.parametrize("name", UNITS)
def test_time_grows_with_the_length_of_an_action(name):
    begin, unit, closing = UNITS[name]
    for size in (150, 1_000, 4_000):  # deep, and too deep for Python's own parser
        units = size // len(unit) + 1
        action = begin + unit * units + ENDS.get(name, "") + closing * units
        assert seconds(action) < 0.05 + len(action) * 10e-6


def test_what_is_too_deep_to_be_read_may_change_anything():
    (reading,) = read_action("apis.spotify" + ".b()" * 480, RULES)
    assert (reading.calls, reading.changes) == ((), True)
    (reading,) = read_action("apis.spotify.songs()" + ".copy()" * 20, RULES)
    assert [call.tool for call in reading.calls] == ["spotify.songs"]
