"""Scripted replies for AppWorld: code that explores, fails, solves the task or ends it too early."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.official import shapes
from tests.official.serving import Reply, draw_by

_TASK = re.compile(r"^Task: (.+)$", re.MULTILINE)
_SECTIONS = (
    "strategies_and_hard_rules", "apis_to_use_for_specific_information", "useful_code_snippets_and_templates",
    "verification_checklist", "troubleshooting_and_pitfalls", "others", "TROUBLESHOOTING AND PITFALLS:",
)  # fmt: skip
_LOOKS = (
    "print(apis.api_docs.show_app_descriptions())",
    "print(apis.api_docs.show_api_descriptions(app_name='spotify'))",
    "print(apis.supervisor.show_profile())",
    "value = 6 * 7\nprint(value)",
    "print(undefined_name)",
    "raise ValueError('as planned')",
    "x = 1",
)


_PROMPTS = {
    "reflector": "appworld_react_reflector_with_gt_prompt.txt",
    "curator": "appworld_react_curator_prompt.txt",
}
_COMPLETE = "apis.supervisor.complete_task"


def openings(checkout: Path) -> dict[str, str]:
    """How the authors' prompts of Reflector and Curator begin; what begins otherwise is the Generator's."""
    folder = checkout / "experiments" / "prompts"
    return {role: (folder / name).read_text(encoding="utf-8")[:40] for role, name in _PROMPTS.items()}


class AppWorldReplies:
    """Replies by role; ``solutions`` holds the reference code by instruction."""

    def __init__(self, openings: Mapping[str, str], solutions: Mapping[str, str], *, messy: bool, seed: str = ""):
        self._openings = openings
        self._solutions = solutions
        self._messy = messy
        self._seed = seed

    def __call__(self, messages: Sequence[dict[str, str]]) -> Reply:
        rng = draw_by(messages, self._seed)
        first = messages[0]["content"]
        if not any("Task" in message["content"] for message in messages):
            return Reply("ready")  # the call that checks the server
        role = next((role for role, start in self._openings.items() if first.startswith(start)), "generator")
        if role == "generator":
            return self._act(messages, rng)
        fields = {"reasoning": _words(rng), "key_insight": _words(rng)} if role == "reflector" else _operations(rng)
        forms = shapes.curator(fields, _operations(rng)) if role == "curator" else shapes.common(fields, fields)
        name = rng.choice([*forms]) if self._messy and rng.random() < 0.6 else "plain"
        return Reply(forms[name], "length" if name.startswith("cut") else "stop")

    def _act(self, messages: Sequence[dict[str, str]], rng: random.Random) -> Reply:
        solution = self._solutions[_TASK.findall("\n".join(message["content"] for message in messages))[-1]]
        solved = f"{solution}\nsolution(apis, requester)"
        code = rng.choices(
            (
                rng.choice(_LOOKS),
                solved,
                f"{_COMPLETE}(answer='wrong')",
                f"{_COMPLETE}()",
            ),
            (6, 2, 1, 1),
        )[0]
        forms = {
            "plain": f"I go on.\n```python\n{code}\n```\n",
            "two blocks": f"First:\n```python\n{code}\n```\nThen:\n```python\nprint('never')\n```",
            "words behind": f"```python\n{code}\n```\nThis should print what we need.",
            "left open": f"Now:\n```python\n{code}",
            "without code": "I have to think about this first.",
            "other fence": f"```\n{code}\n```",
            "blank code": "```python\n\n```",
            "words before": f"  \nCode:\n```python\n{code}\n```",
            "think tags": f"<think>maybe</think>\n```python\n{code}\n```\n",
            "empty": "",
        }
        name = rng.choice([*forms]) if self._messy and rng.random() < 0.5 else "plain"
        return Reply(forms[name])


def _operations(rng: random.Random) -> dict[str, Any]:
    adds = [{"type": "ADD", "section": rng.choice(_SECTIONS), "content": _words(rng)} for _ in range(rng.randint(1, 2))]
    return {"reasoning": _words(rng), "operations": adds}


def _words(rng: random.Random) -> str:
    known = ("log", "in", "before", "asking", "page", "by", "page", "token", "of", "the", "app", "{braces}", "`code`")
    return " ".join(rng.choices(known, k=rng.randint(4, 9)))


def solutions_of(root: Path, tasks: Sequence[str]) -> dict[str, str]:
    """Return the reference code of tasks by instruction."""
    found = {}
    for task in tasks:
        folder = root / "data" / "tasks" / task
        instruction = json.loads((folder / "specs.json").read_text())["instruction"]
        found[instruction] = (folder / "ground_truth" / "compiled_solution.py").read_text()
    return found
