"""Imported prompts that no compared run sends equal what the authors' code renders, byte for byte."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from ace_bench.agents.single_turn import SingleTurn
from ace_bench.cli.main import start
from ace_bench.contexts.cheatsheet import Cheatsheet
from ace_bench.contexts.instruction import Demonstration, Demonstrations
from ace_bench.core.types import Completion, Sample, Usage
from ace_bench.methods.dc import Cumulative
from ace_bench.methods.field.stream_memory import MemoryEntry
from ace_bench.store.prompts import PromptSet
from ace_bench.tasks.ddxplus import CONDITIONS, answer_of
from tests.official.authors import checkout, run_theirs
from tests.official.authors_prompts import PAST_QUERIES

pytestmark = pytest.mark.official
SCRIPT = Path(__file__).with_name("authors_prompts.py")
WORDS = (
    "a {brace}",
    "{{ x }}",
    "{% raw %}",
    "\\boxed{1}",
    "naïve €",
    "100%",
    "  ",
    "\n",
    "[calc-00001]",
    "## no",
    "'",
    '"',
)


def theirs(name: str, cases: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Render with the authors' code, which writes its logs into ``folder``."""
    command = [sys.executable, str(SCRIPT), name, str(checkout(name))]
    made: list[dict[str, Any]] = json.loads(run_theirs(command, input=json.dumps(cases), cwd=folder, timeout=120))
    return made


def imported(name: str, folder: Path, task: str, group: str = "qa") -> PromptSet:
    if not folder.exists():
        assert start("prompts", [str(checkout(name)), str(folder)]) == 0
    return PromptSet(folder, task=task, prompt_group=group)


def text(draw: random.Random, most: int = 12) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(0, most)))


class Scripted:
    """An ``Lm`` that keeps what it was sent."""

    def __init__(self, replies):
        self.replies = iter(replies)
        self.sent = []

    def __call__(self, messages, schema=None):
        self.sent.append([{"role": message.role, "content": message.content} for message in messages])
        return Completion(text=next(self.replies), usage=Usage(), seconds=0.0)


class Calculator:
    """In place of a sandbox: both sides are shown the same output of code."""

    def run(self, code):
        assert code == "print(6 * 7)"
        return "42"


def test_dynamic_cheatsheet_cumulative_is_equal_also_when_code_was_run(tmp_path):
    prompts = imported("dynamic-cheatsheet", tmp_path / "set", "finer")
    draw = random.Random(2)
    code = "I compute.\n```python\nprint(6 * 7)\n```\nEXECUTE CODE!"
    cases = [
        {
            "question": f"Q {text(draw)}.",
            "cheatsheet": draw.choice(("", f"C {text(draw)}.")),
            "replies": [*[code] * (number % 4), f"I say {text(draw)} <answer>42</answer>", "no cheatsheet"],
        }
        for number in range(40)
    ]
    for case, expected in zip(cases, theirs("dynamic-cheatsheet", cases, tmp_path), strict=True):
        method = Cumulative(code_runs=4, initial=None, protocol="authors")
        agent = SingleTurn(
            prompts=prompts,
            generator=method.generator,
            sandbox=Calculator(),
            parse_replies="lenient",
            scaffold="own",
        )
        sample = Sample(id="s", split="train", inputs={"background": "", "question": case["question"]})
        lm = Scripted(case["replies"])
        context = Cheatsheet(text=case["cheatsheet"])
        attempt = agent.solve(sample, None, context, lm, None)
        fields = {
            **sample.inputs,
            "cheatsheet": case["cheatsheet"],
            "reply": attempt.reply,
            "feedback": "",
            "gold": None,
        }
        lm(prompts.render("cheatsheet_curator", fields))
        for ours, sent in zip(lm.sent, expected["calls"], strict=True):
            for one, other in zip(ours, sent, strict=True):
                assert one == other
        assert attempt.answer == "42"


def test_ddxplus_is_asked_as_stream_bench_asks(tmp_path):
    prompts = imported("stream-bench", tmp_path / "set", "ddxplus")
    draw = random.Random(4)

    def row() -> dict[str, str]:
        profile = f"Age: {draw.randint(1, 99)}\n  - {text(draw)}  \n\n- {text(draw)}"
        return {"PATIENT_PROFILE": profile, "PATHOLOGY": draw.choice(CONDITIONS)}

    cases = [
        {
            "row": row(),
            "shots": [row() for _ in range(draw.randint(1, 4))],
            "schema": f"CREATE TABLE {text(draw)};",
            "asked": "How?",
        }
        for _ in range(60)
    ]
    past = [
        MemoryEntry(question=one["question"], answer=one["answer"], correct=not n) for n, one in enumerate(PAST_QUERIES)
    ]
    for case, expected in zip(cases, theirs("stream-bench", cases, tmp_path), strict=True):
        fields = {"schema": case["schema"], "asked": case["asked"], "scaffold": "own", "verdicts": True}
        queries = PromptSet(tmp_path / "set", task="bird_sql", prompt_group="qa")
        assert queries.render("remembered", {**fields, "entries": []}) == queries.render("base", fields)
        assert queries.render("base", fields)[0].content == expected["query"]
        assert queries.render("remembered", {**fields, "entries": past})[0].content == expected["queries"]
        items = tuple(
            Demonstration(
                question=shot["PATIENT_PROFILE"].strip(), answer=answer_of(CONDITIONS.index(shot["PATHOLOGY"]))
            )
            for shot in case["shots"]
        )
        sample = Sample(
            id="s", split="test", inputs={"background": "not shown", "question": case["row"]["PATIENT_PROFILE"].strip()}
        )
        for role in ("base", "demonstrated"):
            fields = {**sample.inputs, "scaffold": "own", **Demonstrations(items=items).render(sample)}
            (message,) = prompts.render(role, fields)
            assert (message.role, message.content) == ("user", expected[role])
