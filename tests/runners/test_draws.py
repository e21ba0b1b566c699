"""Calls above temperature 0 are draws: each has a seed of its own, the same one whenever the run is made again."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from ace_bench.backbones.openai_compatible.settings import Sampling
from ace_bench.core.types import Message, Stage
from ace_bench.runners.gateway import BoundLm, Caller, CallGateway
from ace_bench.runners.limits import Budget, Stop
from ace_bench.store.call_log import CallLog
from ace_bench.store.responses import Responses
from tests.backbones.openai_compatible.scripted import client, serving

PROMPTS = [(prompt, session) for prompt in ("propose", "propose", "again") for session in ("trial 0", "trial 1")]
"""What is asked in which session: one prompt twice in each, and another one."""
DRAWN = Sampling(temperature=0.7, seed=3)
ONLY_THE_PROPOSER = Sampling(temperature=0.0, seed=3, roles={"proposer": {"temperature": 1.0}})


def ask(path, server, sampling, *, role="proposer", seed=3, order=PROMPTS, cache=None):
    """Ask all prompts through a gateway, several at once; return the seeds sent, in the order of asking."""
    backbone, before = client(server.url, sampling=sampling), len(server.asked())
    calls = CallLog(path)
    gateway = CallGateway(
        calls=calls, budget=Budget(), stop=Stop(), wall=lambda: 0.0, seed=seed, responses=cache and Responses(cache)
    )

    def call(asked):
        caller = Caller(stage=Stage.ADAPT, role=role, session=asked[1])
        BoundLm(gateway=gateway, backbone=backbone, caller=caller)([Message(role="user", content=asked[0])])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, order))
    calls.close()
    return [body.get("seed") for body in server.asked()[before:]]


@pytest.mark.parametrize(
    ("sampling", "role", "distinct"),
    [
        (DRAWN, "proposer", 6),
        (ONLY_THE_PROPOSER, "proposer", 6),
        (ONLY_THE_PROPOSER, "generator", 1),
        (Sampling(temperature=None, seed=3), "proposer", 6),  # the server's own, mostly above 0
        (Sampling(temperature=0.0, seed=3), "proposer", 1),
        (Sampling(temperature=0.7, seed=None), "proposer", 0),
    ],
)
def test_draws_have_seeds_of_their_own_and_greedy_calls_the_runs(sampling, role, distinct, tmp_path):
    with serving() as server:
        seeds = set(ask(tmp_path / "calls.jsonl", server, sampling, role=role)) - {None}
    assert len(seeds) == distinct
    assert (seeds == {3}) is (distinct == 1), "only greedy calls send the run's seed"
    assert all(0 <= seed < 2**31 for seed in seeds), "servers take it for an integer of 32 bits"


def test_the_same_run_sends_the_same_seeds_in_any_order_and_another_run_others(tmp_path):
    shuffled = random.Random(1).sample(PROMPTS, len(PROMPTS))
    with serving() as server:
        first, again, other = (
            ask(tmp_path / name, server, DRAWN, seed=seed, order=order)
            for name, seed, order in (("first", 3, PROMPTS), ("again", 3, shuffled), ("other", 4, PROMPTS))
        )
    assert Counter(first) == Counter(again)
    assert not set(first) & set(other)


def test_a_run_that_goes_on_sends_the_seeds_that_it_had_not_sent(tmp_path):
    with serving() as server:
        whole = ask(tmp_path / "whole", server, DRAWN)
        cut = ask(tmp_path / "cut", server, DRAWN, order=PROMPTS[:3])
        rest = ask(tmp_path / "cut", server, DRAWN)
    assert Counter(cut + rest) == Counter(whole)


def test_the_response_cache_gives_each_draw_its_own_reply_back(tmp_path):
    with serving() as server:
        assert len(ask(tmp_path / "first", server, DRAWN, cache=tmp_path / "cache")) == len(PROMPTS)
        assert ask(tmp_path / "second", server, DRAWN, cache=tmp_path / "cache") == []
