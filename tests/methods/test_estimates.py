"""What the methods say before a run of the calls that it will make."""

import pytest

from tests.methods.playing import estimate_calls

ONLINE, OFFLINE = ("mode=online",), ("mode=offline", "mode.epochs=1")
OFFICIAL = ("protocol=official", "method.measure_post_update=false", "method.curator_every=2")
CALLS = [
    (("method=ace", *ONLINE), (12, 48)),
    (("method=ace", *ONLINE, "method.max_reflection_rounds=1"), (12, 16)),
    (("method=ace", *ONLINE, "method.reflector=off"), (8, 8)),
    (("method=ace", *OFFLINE, "labels=none"), (16, 52)),
    (("method=ace", *ONLINE, "protocol=official"), (16, 39)),
    (("method=ace", *ONLINE, *OFFICIAL), (10, 33)),
    (("method=dc", *ONLINE), (8, 8)),
    (("method=dc_rs", *ONLINE), (7, 7)),
    (("method=icl", "mode=offline"), (4, 4)),
]


@pytest.mark.parametrize(("settings", "calls"), CALLS, ids=lambda one: " ".join(map(str, one)))
def test_an_estimate_counts_the_calls_of_all_roles(settings, calls):
    assert estimate_calls(*settings) == calls
