"""The authors' Dynamic Cheatsheet and ours: prompts, answers and cheatsheets are equal, step for step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ace_bench.tasks.formula import INSTRUCTION, question_of
from tests.official import ours
from tests.official.authors import checkout, run_cheatsheet
from tests.official.comparing import compare
from tests.official.data import Finance, finance
from tests.official.real_model import CHEATSHEET_FORMS, MAX_TOKENS, RealReplies, real_rows, recorded, servers
from tests.official.serving import Reply, Script, draw_by, role_of, serving, spoken

pytestmark = pytest.mark.official

_HOURS = 6 * 3600
_APPROACHES = {"dc": ("Cumulative", "cumulative"), "dc_rs": ("RetrievalSynthesis", "retrieval_synthesis")}
_SAID = {
    "generator": (
        "I divide {{{{ x }}}} {{% raw %}}.\n<answer>\n{}\n</answer>",
        "First <answer>1</answer>, no: <answer>{}</answer>.",
        "I do not know: {}.", "<answer>{}", "```python\nprint({})\n```\n<answer>2</answer>",
    ),
    "curator": (
        "<cheatsheet>\n- {} {{braces}} {{{{ x }}}} {{% raw %}} \\d\n</cheatsheet>",
        "Here: <cheatsheet>- {}</cheatsheet> Done.", "Nothing: {}",
        "<cheatsheet>\n- cut {}", "<cheatsheet>- {} first</cheatsheet> or <cheatsheet>- second</cheatsheet>",
    ),
}  # fmt: skip


def _openings(code: Path, method: str) -> dict[str, str]:
    files = {"generator": "generator_prompt.txt", "curator": f"curator_prompt_for_dc_{_APPROACHES[method][1]}.txt"}
    return {role: (code / "prompts" / name).read_text(encoding="utf-8")[:40] for role, name in files.items()}


def _scripted(openings: dict[str, str]) -> Script:
    def reply(messages: Sequence[dict[str, str]]) -> Reply:
        rng = draw_by(messages)
        return Reply(rng.choice(_SAID[role_of(openings, spoken(messages))]).format(rng.randint(0, 10**6)))

    return reply


def _compare(folder: Path, code: Path, questions: Finance, script: Script, method: str = "dc") -> None:
    """Run both sides on the test questions."""
    data = questions.write(folder)
    asked = [(INSTRUCTION, question_of(row["context"], "")) for row in questions.rows["test"]]
    (folder / "questions.json").write_text(json.dumps(asked))
    with serving(script) as server:
        approach = _APPROACHES[method][0]
        expected = run_cheatsheet(code, folder, server.url, approach=approach, max_tokens=MAX_TOKENS, timeout=_HOURS)
        settings = server.take_settings()
        done = ours.run(
            code, folder, server.url, "task=formula", f"task.data_dir={data}", "labels=none",
            "mode=online", "mode.shuffle=false", "mode.before=false",
            "backbone.sampling.seed=null", f"backbone.sampling.max_tokens={MAX_TOKENS}",
            "backbone.sampling.max_tokens_field=max_completion_tokens", f"sampling.curator.max_tokens={2 * MAX_TOKENS}",
            "method.protocol=authors", "embedder=hashing", method=method, protocol="paper", timeout=_HOURS,
        )  # fmt: skip
    compare(expected, ours.cheatsheets(done))
    assert server.take_settings() == settings


@pytest.mark.parametrize("method", _APPROACHES)
def test_each_step_equals_the_authors(method: str, tmp_path: Path) -> None:
    code = checkout("dynamic-cheatsheet")
    questions = finance("formula", train=1, val=1, test=30)
    _compare(tmp_path, code, questions, _scripted(_openings(code, method)), method)


def test_each_step_equals_the_authors_before_a_real_model(tmp_path: Path) -> None:
    code = checkout("dynamic-cheatsheet")
    questions = real_rows("formula", {"train": 1, "val": 1, "test": 20})
    replies = RealReplies(_openings(code, "dc"), CHEATSHEET_FORMS, servers(), recorded(tmp_path, "cheatsheet"))
    _compare(tmp_path, code, questions, replies)
