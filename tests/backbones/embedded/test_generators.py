"""The sample sets: big enough, made by their generators, and learnable."""

import json
import subprocess
import sys

import pytest

from ace_bench.tasks.catalog import make_task
from scripts.samples.__main__ import SAMPLES
from tests.launching import ROOT, launch


def test_files_are_what_the_generators_make(tmp_path):
    command = (sys.executable, "-m", "scripts.samples", "--check")
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as written") == 16
    assert subprocess.run([*command, "--dir", tmp_path], capture_output=True, check=False, cwd=ROOT).returncode == 1


def test_no_question_is_in_two_splits():
    for name in ("finer", "formula", "ddxplus", "bird_sql"):
        task = make_task(name, source="sample", sample_allowed=True)
        asked = [sample.inputs["question"] for split in task.splits for sample in task.samples(split)]
        assert len(asked) == len(set(asked)) > 100


@pytest.mark.parametrize(("name", "column"), [("two_hop", "question"), ("make_24", "puzzle")])
def test_no_playbook_helps_where_each_question_brings_all_it_needs(tmp_path, name, column):
    rows = [json.loads(line) for line in (SAMPLES / name / "questions.jsonl").read_text().splitlines()]
    options = [row[column].partition("options: ")[2].split(" | ") for row in rows]
    assert [len(set(some)) for some in options] == [4] * len(rows)
    right = [sum(eval(one) == 24 for one in some) for some in options] if name == "make_24" else []
    assert set(right) <= {1}
    assert all(row["answer"] in some for row, some in zip(rows, options, strict=True))
    assert len({row["answer"] for row in rows}) == len(rows)
    settings = [f"task.sample_data=pkg://ace_bench/tasks/samples/{name}", "task=qa", "task.source=sample", "limit=8"]
    columns = [f"task.question={column}", "task.answer=answer", "task.id=id", "task.split=split", "mode.before=false"]
    ran = [launch(tmp_path, *settings, *columns, "mode.epochs=1", f"method={one}").metrics for one in ("ace", "base")]
    assert ran[0]["headline"]["after"] == ran[1]["headline"]["after"] > 0
    assert ran[0]["context"]["items"] > 4
