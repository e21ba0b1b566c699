"""The simulated prefix cache: whole blocks of 32 tokens, chained from the start."""

from ace_bench.backbones.embedded import EmbeddedBackbone
from ace_bench.backbones.embedded.backbone import BLOCK_BYTES, BLOCK_TOKENS, PrefixCache, serialise
from ace_bench.core.types import Message


def prompt(text, role="user"):
    return [Message(role=role, content=text)]


def test_the_common_prefix_counts_in_whole_blocks():
    cache = PrefixCache()
    text, head = "x" * 640 + "a" * 640, len(serialise(prompt("")))
    assert cache.look_up(prompt(text)) == 0
    assert cache.look_up(prompt(text)) == (head + 1_280) // BLOCK_BYTES * BLOCK_TOKENS
    assert cache.look_up(prompt("x" * 640 + "b" * 640)) == (head + 639) // BLOCK_BYTES * BLOCK_TOKENS
    assert cache.look_up(prompt("y" + "x" * 639 + "a" * 640)) == 0, "a block counts only behind the same start"
    assert cache.look_up(prompt(text, role="system")) == 0, "roles are part of the prefix"


def test_memory_is_bounded_and_the_oldest_goes_first():
    cache = PrefixCache(most_blocks=20)
    old, new = prompt("old" * 500), prompt("new" * 500)
    cache.look_up(old)
    cache.look_up(new)
    assert cache.look_up(new) > 0
    assert cache.look_up(old) < 1_500 // BLOCK_BYTES * BLOCK_TOKENS


def test_usage_of_a_call():
    backbone, messages = EmbeddedBackbone(), prompt("é" * 1_000)
    first, second = (backbone.complete(messages, role="", session="").usage for _ in range(2))
    assert (first.cached, first.usd, backbone.count("é" * 10)) == (0, 0.0, 5)
    assert first.prompt == second.prompt == -(-len(serialise(messages)) // 4)
    assert 0 <= first.prompt - second.cached < BLOCK_TOKENS
