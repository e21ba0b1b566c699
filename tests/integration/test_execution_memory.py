"""The claim of founding document 002 in the mini-world: a memory saves calls, steps and tokens in long episodes."""

import pytest

from ace_bench.core.errors import ConfigError
from ace_bench.report.records import read_run
from ace_bench.tasks.appworld.engine import find_engine
from tests.launching import launch

RUN = (
    *("task=appworld", "task.source=sample", "method=icl", "backbone=embedded", "backbone.attention=3"),
    *("mode.before=false", "limit={train: 12, test: 6}", "concurrency=1"),
)
ROWS = {
    "off": (),
    "newest": ("agent.memory=execution",),
    "system": ("agent.memory=execution", "agent.memory_place=system"),
}


@pytest.mark.thorough
def test_a_memory_saves_calls_steps_and_tokens(tmp_path):
    try:
        find_engine()
    except ConfigError as error:
        pytest.skip(str(error))
    runs = {row: read_run(launch(tmp_path, *RUN, *overrides).folder) for row, overrides in ROWS.items()}

    def figures(what):
        return [run.value(f"long_episodes.{what}") for run in runs.values()]

    assert len({*figures("n")}) == 1
    off, newest, system = figures("redundant_calls")
    assert off > 1
    assert newest == system == 0
    for what in ("steps", "tokens"):
        off, newest, system = figures(what)
        assert max(newest, system) < off
    assert len({*figures("success")}) == len({*figures("quality")}) == 1
    assert all(0 < quality <= 10 for quality in figures("quality"))
    assert all(seconds > 0 for seconds in figures("seconds"))
    off, newest, system = figures("cached")
    assert off > newest > system
