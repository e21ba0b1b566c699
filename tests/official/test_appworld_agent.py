"""The authors' ReAct agent and ours: the prompt, what a long conversation loses, and what a reply says."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

from ace_bench.agents.official import OfficialTrimming, read_official_reply
from ace_bench.cli.main import start
from ace_bench.core.types import Message
from ace_bench.store.prompts import PromptSet
from tests.official.authors import checkout, run_theirs

pytestmark = pytest.mark.official

FIELDS = {
    "question": 'Count "it" {now}.', "first_name": "Bo", "last_name": "Lund",
    "email": "bo@example.com", "phone_number": "555",
    "app_descriptions": json.dumps([{"name": "notes", "description": "Keeps notes é."}], indent=1),
}  # fmt: skip
REPLIES = [
    "a```python\nx\n```b```python\ny\n```", "```python\nx", "no code", "", "```python\n\n```", "```py\nx\n```",
    "```python\nx\n``` and ```python\ny", "a ```python\nx ```", "```python\nx\n", "t\n```python x\n```",
]  # fmt: skip


def test_prompt_trimming_and_replies_equal_the_authors(tmp_path: Path) -> None:
    code = checkout("ace-appworld")
    assert start("prompts", [str(code), str(tmp_path / "set")]) == 0
    prompts = PromptSet(tmp_path / "set", task="appworld", prompt_group="agent")
    rng = random.Random(0)
    exchanges = [
        {"role": role, "content": text}
        for _ in range(15)
        for role, text in (
            ("assistant", "c" * rng.randint(1, 300) + "\n\n"),
            ("user", f"Output:\n```\n{'o' * rng.randint(1, 400)}```\n\n"),
        )
    ]
    limits = [*range(600, 9_000, 50)]
    request = {"fields": FIELDS, "exchanges": exchanges, "limits": limits, "replies": REPLIES}
    script = Path(__file__).with_name("authors_react.py")
    theirs = json.loads(run_theirs([sys.executable, str(script), str(code)], input=json.dumps(request)))
    ours = prompts.render("base", {**FIELDS, "reflection": "(none)"})
    assert [vars(message) for message in ours] == theirs["messages"]
    output, history = (message.content for message in prompts.render("left_out", {}))
    conversation = [*ours, *(Message(**one) for one in exchanges)]
    for limit, expected in zip(limits, theirs["trimmed"], strict=True):
        trim = OfficialTrimming(limit=limit, task=len(ours) - 1, output_left_out=output, history_left_out=history)
        assert [vars(message) for message in trim(conversation)] == expected, limit
    for reply, (found, kept) in zip(REPLIES, theirs["read"], strict=True):
        read = read_official_reply(reply)
        assert (read.code, read.shown) == (found, f"{kept}\n\n")
