"""The authors' finance loop and ours before one real model, on real rows: equal call for call, step for step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.official import ours
from tests.official.authors import checkout, run_finance
from tests.official.comparing import compare
from tests.official.real_model import FINANCE_FORMS, MAX_TOKENS, RealReplies, real_rows, recorded, servers
from tests.official.replies import openings
from tests.official.serving import serving
from tests.official.test_finance import INITIAL, Scenario

pytestmark = pytest.mark.official

_HOURS = 6 * 3600
_ONE_ROUND = ("--max_num_rounds", "1"), ("method.max_reflection_rounds=1",)
_OFFLINE = (*_ONE_ROUND[0], "--eval_steps", "10"), (*_ONE_ROUND[1], "mode.eval_every=10")
_ONLINE = ("--mode", "online", "--online_eval_frequency", "5"), ("mode=online", "mode.window=5")
SCENARIOS = {
    "formula offline": Scenario(*_OFFLINE, (15, 1, 1)),
    "formula initial playbook": Scenario(*_OFFLINE, (15, 1, 1), playbook=INITIAL),
    "formula no ground truth": Scenario(
        (*_OFFLINE[0], "--no_ground_truth"), (*_OFFLINE[1], "labels=correctness"), (15, 1, 1)
    ),
    "formula two epochs": Scenario((*_OFFLINE[0], "--num_epochs", "2"), (*_OFFLINE[1], "mode.epochs=2"), (7, 1, 1)),
    "formula online": Scenario((*_ONLINE[0], *_ONE_ROUND[0]), (*_ONLINE[1], *_ONE_ROUND[1]), (0, 0, 10)),
    "finer offline": Scenario(*_OFFLINE, (2, 1, 1)),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_step_equals_the_authors_before_a_real_model(tmp_path: Path, name: str) -> None:
    code, scenario, task = checkout("ace"), SCENARIOS[name], name.split(maxsplit=1)[0]
    questions = real_rows(task, dict(zip(("train", "val", "test"), scenario.sizes, strict=True)))
    data = questions.write(tmp_path)
    replies = RealReplies(openings(code), FINANCE_FORMS, servers(), recorded(tmp_path, name))
    theirs, overrides = scenario.write(tmp_path)
    theirs += ["--max_tokens", str(MAX_TOKENS)]
    overrides += ["backbone.sampling.seed=null", f"backbone.sampling.max_tokens={MAX_TOKENS}"]
    with serving(replies) as server:
        expected = run_finance(code, tmp_path, server.url, "--task_name", task, *theirs, timeout=_HOURS)
        prompts, settings = len(replies), server.take_settings()
        done = ours.run(code, tmp_path, server.url, f"task={task}", f"task.data_dir={data}", *overrides, timeout=_HOURS)
    compare(expected, ours.side(done))
    assert len(replies) == prompts, "ours sent prompts that theirs did not"
    assert server.take_settings() == settings
