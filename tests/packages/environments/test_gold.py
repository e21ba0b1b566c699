"""Reference answers and verdicts of environments reach no prompt that ``labels`` hides them from."""

from pathlib import Path

import pytest

from tests.interference import cases, check_pair

HERE = Path(__file__).parent
ENVIRONMENTS = {
    "inspect": ("inspect_ai", f"task.name={HERE / 'atlas.py'}@choices"),
    "verifiers": ("verifiers", f"task.environment={HERE / 'cities.py'}"),
}
NEEDED = {"gepa": "dspy", "mipro": "dspy", "heuristic": "agent_episodic_memory"}


@pytest.mark.parametrize("case", cases(ENVIRONMENTS, (("method", "labels"), ("labels", "mode"), ("task", "mode"))))
def test_what_is_hidden_changes_no_message(case, tmp_path):
    package, named = ENVIRONMENTS[case.task]
    pytest.importorskip(package, reason=f"needs the extra {case.task}: make test-environments")
    if case.method in NEEDED:
        pytest.importorskip(NEEDED[case.method])
    check_pair(case, tmp_path, f"task={case.task}", named)
