"""A backbone outside of a run: its calls are kept in a folder, counted, and paid for once."""

import pytest

from ace_bench.api import open_backbone
from ace_bench.backbones.embedded.backbone import EmbeddedBackbone
from ace_bench.core.errors import BudgetExhausted
from ace_bench.core.types import Message
from ace_bench.store.calls import read_calls

QUESTION = "Which is red? Options: blood, grass."
LOG: list[str] = []


class Managed(EmbeddedBackbone):
    """Is started and stopped, and notes its calls."""

    def start(self, say):
        say("starting")
        LOG.append("start")

    def close(self):
        LOG.append("close")

    def complete(self, messages, **about):
        LOG.append("call")
        return super().complete(messages, **about)


def ask(folder, *sessions, seed=0, settings=()):
    settings = (f"backbone._target_={__name__}.Managed", *settings)
    with open_backbone("embedded", folder=folder, settings=settings, seed=seed) as backbone:
        asked = [Message(role="user", content=QUESTION)]
        return [backbone.complete(asked, role="answerer", session=session).text for session in sessions]


def test_a_call_is_made_once_for_each_session_and_seed_within_the_budget(tmp_path):
    LOG.clear()
    first = ask(tmp_path / "calls", "a", "b")
    assert ask(tmp_path / "calls", "a", "b") == first
    assert LOG == ["start", "call", "call", "close", "start", "close"]
    assert ask(tmp_path / "calls", "a", seed=1) == first[:1]
    assert LOG[-2] == "call", "another seed is another call"
    with pytest.raises(BudgetExhausted, match=r"budget\.calls=3 is used up"):
        ask(tmp_path / "calls", "a", "c", settings=["budget.calls=3"])
    assert LOG[-2:] == ["start", "close"]
    assert [(call.role, call.stage) for call in read_calls(tmp_path / "calls")] == [("answerer", "adapt")] * 3
