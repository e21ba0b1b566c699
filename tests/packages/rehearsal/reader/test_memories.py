"""The reader as inducer, extractor and judge of itself: what it writes helps it with later questions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ace_bench.store.prompts import PromptSet
from ace_field.reasoning_bank import Experience, MemoryItem
from ace_field.workflows import Workflow
from ace_rehearsal.reader import EmbeddedBackbone
from tests.packages.rehearsal.reader.conftest import CHOICES, FIELDS, PROMPTS, Ask, Render, World

ATTEMPT = {"trajectory": "", "reasoning": "", "observed": "", "gold": None, "reasons": "", "most": 3}
AGENT = PromptSet(*PROMPTS, task="appworld", prompt_group="agent")
APPS = "- supervisor: accounts\n- spotify: music"
SOLUTION = "apis.spotify.play_music(song_id=3)\napis.supervisor.complete_task()"


def shown(reply: dict[str, Any], question: str) -> str:
    items = tuple(MemoryItem(**item) for item in reply["memory_items"])
    return Experience(question=question, success=True, items=items).text


def test_workflows_of_solved_questions_answer_one_like_them(ask: Ask, render: Render, world: World) -> None:
    solved = [
        render("experience", **ATTEMPT | {"question": question, "answer": gold})[-1].content
        for question, gold in world.train
    ]
    reply = ask("inducer", background=world.background, experiences=solved)
    found = "\n\n".join(Workflow(**{**one, "steps": tuple(one["steps"])}).text for one in reply["workflows"])
    task = {"background": world.background, "question": world.question}
    assert ask("workflows", **task, workflows=found)["final_answer"] == world.gold
    assert ask("workflows", **task, workflows="(none)")["final_answer"] != world.gold


def test_items_of_a_success_or_of_a_known_answer_help_with_a_question_like_theirs(ask: Ask, world: World) -> None:
    task = {"background": world.background, "question": world.question}
    for success in (True, False):
        texts = []
        for question, gold in world.train:
            fields = {"answer": gold} if success else {"answer": "nonsense", "gold": gold}
            attempt = ATTEMPT | {"background": world.background, "question": question, "success": success, **fields}
            texts.append(shown(ask("extractor", **attempt), question))
        assert ask("reasoning_bank", **task, memory_items="\n\n".join(texts))["final_answer"] == world.gold


def test_items_of_a_failure_keep_it_from_giving_the_same_answer(ask: Ask) -> None:
    task = {"background": CHOICES.background, "question": CHOICES.question}
    wrong = ask("reasoning_bank", **task, memory_items="(none)")["final_answer"]
    question = CHOICES.train[0][0]
    attempt = ATTEMPT | {"background": CHOICES.background, "question": question, "answer": wrong, "success": False}
    text = shown(ask("extractor", **attempt), question)
    assert ask("reasoning_bank", **task, memory_items=text)["final_answer"] != wrong


@pytest.mark.parametrize("success", [True, False])
def test_of_an_agents_failure_the_reference_is_learnt_and_of_its_success_what_it_did(success: bool) -> None:
    done = "### Step 1\n```python\napis.supervisor.complete_task()\n```\nOutput:\n```\n```"
    task = {"background": APPS, "question": "Play a song.", "trajectory": done, "success": success, "gold": SOLUTION}
    messages = AGENT.render("extractor", FIELDS | ATTEMPT | task)
    (item,) = json.loads(EmbeddedBackbone().complete(messages, role="extractor", session="s").text)["memory_items"]
    assert ("play_music" in item["content"]) is not success


@pytest.mark.parametrize(
    ("shown", "success"),
    [
        ({"answer": "blue"}, True),
        ({"answer": ""}, False),
        ({"answer": "SELECT x", "observed": "Error: no such column: x"}, False),
    ],
)
def test_it_takes_an_answer_without_an_error_for_a_success(ask: Ask, shown: dict[str, str], success: bool) -> None:
    assert ask("self_judge", **ATTEMPT | {"background": "A quiz.", "question": "Which colour?"} | shown)["success"] is (
        success
    )
