"""The authors' AppWorld agent and ours on the mini-world: calls, conversations and playbooks are equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import import_folder
from ace_bench.tasks.appworld.data import sample_root
from ace_bench.tasks.appworld.engine import find_engine
from tests.official import ours
from tests.official.authors import checkout, run_appworld
from tests.official.comparing import compare
from tests.official.replies_appworld import AppWorldReplies, openings, solutions_of
from tests.official.serving import serving

pytestmark = pytest.mark.official

TASKS = 4
STEPS = 8


@pytest.fixture(scope="module")
def world() -> Path:
    """The data root of the mini-world."""
    try:
        engine = find_engine()
    except ConfigError as error:
        pytest.skip(str(error))
    return sample_root(engine, import_folder() / "ace_bench" / "tasks" / "appworld" / "miniworld")


@pytest.mark.parametrize("messy", [False, True], ids=["clean", "messy"])
@pytest.mark.parametrize("labels", ["gold", "none"])
def test_each_attempt_equals_the_authors(
    tmp_path: Path,
    world: Path,
    labels: str,
    messy: bool,
) -> None:
    code = checkout("ace-appworld")
    tasks, tested = ((world / "data/datasets" / f"{name}.txt").read_text().split() for name in ("train", "test_normal"))
    solutions = solutions_of(world, [*tasks, *tested])
    tasks = tasks[:TASKS]
    root = tmp_path / "root"
    root.mkdir()
    (root / "data").symlink_to(world / "data")
    with serving(AppWorldReplies(openings(code), solutions, messy=messy, seed=labels)) as server:
        expected = run_appworld(code, root, server.url, tasks, labels=labels == "gold", max_steps=STEPS)
        done = ours.run(
            code,
            tmp_path,
            server.url,
            "task=appworld",
            "task.source=sample",
            f"task.ids.train=[{','.join(tasks)}]",
            f"labels={labels}",
            f"agent.max_steps={STEPS}",
            f"method.initial={code / 'experiments/playbooks/appworld_initial_playbook.txt'}",
            "mode.before=false",
            "limit={test: 1}",
        )
    compare(expected, ours.adaptation(done))
