"""A running server: structured replies, usage against counters, and how much of online adaptation it finds cached."""

import json
import sys

import msgspec
import pytest

from ace_bench.ace.ablations import RewriterReply
from ace_bench.ace.replies import CuratorReply, ReflectorReply
from ace_bench.agents.single_turn import GeneratorReply
from ace_bench.backbones.vllm.backbone import Vllm
from ace_bench.core.replies import parse, schema_of
from ace_bench.core.types import Message
from tests.launching import built, composed, launch
from tests.vllm.conftest import BLOCK, quiet


class ShortReply(msgspec.Struct, frozen=True):
    content: str


@pytest.fixture
def backbone(shared):
    config, _ = composed(*shared.overrides)
    backbone: Vllm = built(config, "backbone")
    backbone.start(quiet)
    yield backbone
    backbone.close()


def ask(backbone, text, kind=None):
    messages = (Message(role="user", content=text),)
    schema = None if kind is None else schema_of(kind)
    return backbone.complete(messages, role="generator", session="test", schema=schema)


@pytest.mark.parametrize("kind", [GeneratorReply, ReflectorReply, CuratorReply, RewriterReply])
def test_replies_of_every_role_can_be_read_even_from_random_weights(backbone, kind):
    for number in range(5):
        completion = ask(backbone, f"Question {number}: what is a playbook?", kind)
        assert isinstance(parse(completion.text, kind), kind)
        assert completion.usage.completion < 1000


def test_usage_agrees_with_the_servers_counters(backbone):
    text = "A text that all of these calls share, word by word. " * 40
    before = backbone.cache_counters()
    usages = [ask(backbone, f"{text}{number}", ShortReply).usage for number in range(3)]
    after = backbone.cache_counters()
    assert usages[0].cached == 0
    assert usages[1].cached > 0
    assert usages[1].cached % BLOCK == 0
    assert sum(usage.prompt for usage in usages) == after.queries - before.queries
    assert sum(usage.cached for usage in usages) == after.hits - before.hits


def test_a_salt_makes_the_cache_cold(shared, backbone):
    text = "Another text that two backbones share, word by word. " * 40
    ask(backbone, text, ShortReply)
    assert ask(backbone, text, ShortReply).usage.cached > 0
    config, _ = composed(*shared.overrides, "backbone.cache.salt=new")
    salted = built(config, "backbone")
    assert ask(salted, text, ShortReply).usage.cached == 0
    assert ask(salted, text, ShortReply).usage.cached > 0
    salted.close()


def test_sixty_online_steps_find_most_of_their_prompts_cached(shared, tmp_path, capsys):
    """The playbook starts with what the embedded reader learns from 12 samples, and grows from there."""
    learnt = launch(
        tmp_path / "embedded", "mode.epochs=1", "mode.before=false", "task.source=sample", "limit={train: 12, test: 1}"
    )
    ran = launch(
        tmp_path / "vllm",
        *shared.overrides,
        "backbone.cache.salt=new",
        "mode=online",
        "mode.before=false",
        f"method.initial={learnt.folder / 'contexts' / 'final.json'}",
    )
    assert ran.status == 0
    steps = [record for record in ran.lines("journal") if record["kind"] == "step"]
    calls = ran.lines("calls")
    prompt = sum(call["usage"]["prompt"] for call in calls)
    cached = sum(call["usage"]["cached"] for call in calls)
    server = ran.metrics["cache"]["servers"]["tiny"]["adapt"]
    figures = {
        "server ready after s": round(shared.seconds),
        "calls": len(calls),
        "tokens in a prompt": round(prompt / len(calls)),
        "bullets": f"{steps[0]['context_size']} to {steps[-1]['context_size']}",
        "cached by usage": f"{cached / prompt:.1%}",
        "cached by the server's counters": f"{server['hits'] / server['queries']:.1%}",
        **{f"cached, {role}": f"{share:.1%}" for role, share in shares(calls).items()},
        "seconds": round(ran.metrics["timing"]["adapt"]["wall_s"]),
    }
    with capsys.disabled():
        sys.stdout.write(f"\n{json.dumps(figures, indent=1)}\n")
    assert len(steps) == 60
    assert steps[-1]["context_size"] > steps[0]["context_size"]
    assert (server["queries"], server["hits"]) == (prompt, cached)
    assert cached / prompt >= 0.9


def shares(calls):
    by_role = {}
    for call in calls:
        by_role.setdefault(call["role"], []).append(call["usage"])
    return {
        role: sum(usage["cached"] for usage in usages) / sum(usage["prompt"] for usage in usages)
        for role, usages in by_role.items()
    }
