"""``metric=streambench_ex`` and ``bird_ex`` give each reply the point that the benchmarks' own code gives it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ace_bench.core.types import Grade
from ace_bench.tasks.bird_sql.questions import sql_of
from tests.official.authors import checkout
from tests.tasks.bird_sql.conftest import SCRIPT, build, cache, grading, make, mini_dev  # noqa: F401 - fixtures
from tests.tasks.bird_sql.replies import GOLDS, draw_replies

pytestmark = pytest.mark.official
COUNT = 6_500


@pytest.mark.parametrize("case", [("stream-bench", "streambench_ex"), ("mini_dev", "bird_ex")])
def test_each_reply_is_graded_as_the_benchmark_grades_it(
    case: tuple[str, str],
    tmp_path: Path,
    grading: Callable[..., Callable[..., Grade]],  # noqa: F811
) -> None:
    repository, metric = case
    script, pairs = Path(__file__).with_name("authors_sql.py"), list(draw_replies(COUNT, seed=27))
    given = pairs if repository == "stream-bench" else [(gold, sql_of(reply)) for gold, reply in pairs]
    databases = build(tmp_path / "theirs" / "people" / "people.sqlite", SCRIPT).parent.parent
    command = [sys.executable, str(script), repository, str(checkout(repository)), str(databases)]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    grade = grading(*GOLDS)
    found = [grade(reply, gold) for gold, reply in pairs]
    for (gold, reply), theirs, ours in zip(pairs, json.loads(done.stdout), found, strict=True):
        assert ours.detail[metric] == theirs, (gold, reply)
    assert COUNT / 10 < sum(grade.detail[metric] for grade in found) < COUNT / 2
