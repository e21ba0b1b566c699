"""The simulated prefix cache: whole blocks of 32 tokens, chained from the start."""

from __future__ import annotations

from ace_bench.core.types import Message
from ace_rehearsal.reader import EmbeddedBackbone
from ace_rehearsal.reader.backbone import BLOCK_BYTES, BLOCK_TOKENS, PrefixCache, serialise


def prompt(text: str) -> list[Message]:
    return [Message(role="user", content=text)]


def whole_blocks(text: str) -> int:
    return len(serialise(prompt(text))) // BLOCK_BYTES


def test_a_prompt_seen_before_is_cached_in_whole_blocks() -> None:
    cache = PrefixCache()
    text = "x" * 1_000
    assert cache.look_up(prompt(text)) == 0
    assert cache.look_up(prompt(text)) == whole_blocks(text) * BLOCK_TOKENS


def test_only_the_common_prefix_counts() -> None:
    cache = PrefixCache()
    cache.look_up(prompt("x" * 640 + "a" * 640))
    head = serialise(prompt("x" * 640)).index(b"x")
    assert cache.look_up(prompt("x" * 640 + "b" * 640)) == (head + 640) // BLOCK_BYTES * BLOCK_TOKENS
    assert cache.look_up(prompt("y" + "x" * 639 + "a" * 640)) == 0, "a block counts only behind the same start"


def test_roles_are_part_of_the_prefix() -> None:
    cache = PrefixCache()
    cache.look_up([Message(role="user", content="x" * 500)])
    assert cache.look_up([Message(role="system", content="x" * 500)]) == 0


def test_memory_is_bounded_and_the_oldest_goes_first() -> None:
    cache = PrefixCache(most_blocks=20)
    old, new = prompt("old" * 500), prompt("new" * 500)
    cache.look_up(old)
    cache.look_up(new)
    assert cache.look_up(new) > 0
    assert cache.look_up(old) < whole_blocks("old" * 500) * BLOCK_TOKENS


def test_usage_of_a_call() -> None:
    backbone = EmbeddedBackbone()
    message = Message(role="user", content="é" * 1_000)
    first = backbone.complete([message], role="", session="").usage
    second = backbone.complete([message], role="", session="").usage
    assert first.cached == 0
    assert first.prompt == second.prompt == -(-len(serialise([message])) // 4)
    assert second.cached is not None
    assert first.prompt is not None
    assert 0 <= first.prompt - second.cached < BLOCK_TOKENS
    assert first.usd == 0.0
    assert backbone.count("é" * 10) == 5
