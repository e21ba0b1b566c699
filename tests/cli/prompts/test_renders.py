"""What imported prompts ask, message by message: ``renders.yaml`` holds each case with its fields."""

from functools import partial
from pathlib import Path

import pytest
import yaml

from ace_bench.cli.main import start
from ace_bench.core.resources import prompt_folders
from ace_bench.core.types import Message
from ace_bench.store.prompts import PromptSet
from tests.cli.prompts import stand_ins

FIELDS = {
    "background": "b ", "question": "q {{ x }}", "raw_reflection": " R", "reflection": "(none)", "reply": "r",
    "answer": "a", "reasoning": "r", "feedback": "f", "cited": ("u",), "labels": "gold", "gold": "SOLUTION",
    "report": "REPORT", "correct": False, "trajectory": "", "token_budget": 80_000, "step": 1, "total": 2, "left": 2,
    "app_descriptions": '[{"name": "notes"}]', "first_name": "Bo", "last_name": "Lund", "email": "bo@x.y",
    "phone_number": "555", "scaffold": "own", "success": True, "reasons": "why", "observed": "",
    "official_playbook": lambda counters=True: f"PLAYBOOK {counters}", "official_excerpt": lambda ids: ids[0],
    "statistics": lambda: "STATISTICS",
    "conversation": lambda: (Message(role="user", content="Task: it\n"), Message(role="assistant", content="Done.")),
}  # fmt: skip
CASES = yaml.safe_load(Path(__file__).with_name("renders.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def prompts_of(tmp_path_factory):
    """The prompts for a task of a checkout's stand-in, which is imported once."""
    sets, folder = {}, tmp_path_factory.mktemp("sets")

    def imported(checkout, task):
        if checkout not in sets:
            write = stand_ins.appworld if checkout == "appworld" else partial(stand_ins.write_checkout, checkout)
            sets[checkout] = folder / f"set_{checkout}"
            assert start("prompts", [str(write(folder / checkout)), str(sets[checkout])]) == 0
        defaults = [one / "default" for one in prompt_folders()]
        group = "agent" if task == "appworld" else "qa"
        return PromptSet(sets[checkout], *defaults, task=task, prompt_group=group)

    return imported


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['checkout']}-{case['task']}-{case['role']}")
def test_a_role_is_asked_with_the_authors_words_and_our_fields(case, prompts_of):
    messages = prompts_of(case["checkout"], case["task"]).render(case["role"], FIELDS | case["given"])
    assert [{one.role: one.content} for one in messages] == case["messages"]
