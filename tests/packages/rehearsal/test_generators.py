"""The sample sets: big enough, made by their generators, and learnable."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from ace_bench.report.statistics import Comparison, Interval
from ace_bench.tasks.catalog import make_task
from ace_bench.tasks.ddxplus import INSTRUCTION, Ddxplus
from ace_bench.tasks.finer import Finer
from ace_bench.tasks.formula import Formula
from ace_report.tables.cells import Measured, Place
from ace_report.tables.grids import remarks
from ace_report.tables.table import PaperShown
from scripts.samples.__main__ import SAMPLES
from tests.launching import ROOT, launch

GENERATORS = (sys.executable, "-m", "scripts.samples")


@pytest.fixture
def finer() -> Finer:
    return make_task("finer", source="sample", sample_allowed=True)


@pytest.fixture
def formula() -> Formula:
    return make_task("formula", source="sample", hint=True, sample_allowed=True)


@pytest.fixture
def ddxplus() -> Ddxplus:
    return make_task("ddxplus", source="sample", sample_allowed=True)


def golds(task, split):
    found = []
    for sample in task.samples(split):
        with task.open(sample) as session:
            found.append(session.grade(None).gold)
    return found


def words(text):
    return {word.lower()[:6] for word in re.findall(r"[A-Z][a-z]{3,}|[a-z]{4,}", text)}


def test_files_are_what_the_generators_make():
    done = subprocess.run([*GENERATORS, "--check"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as written") == 16


def test_check_fails_where_a_file_differs(tmp_path):
    done = subprocess.run([*GENERATORS, "--check", "--dir", tmp_path], capture_output=True, check=False, cwd=ROOT)
    assert done.returncode == 1


def test_finer_questions_have_one_answer(finer):
    """A number that occurs twice in its sentence could have two tags."""
    pattern = re.compile(r'^\d\. What is best tag for entity "(.+?)" in sentence: "(.+) \.\?"$', re.MULTILINE)
    for split in finer.splits:
        for sample, gold in zip(finer.samples(split), golds(finer, split), strict=True):
            asked = pattern.findall(sample.inputs["question"])
            assert len(asked) == 4 == len(gold.split(","))
            assert all(sentence.split().count(entity) == 1 for entity, sentence in asked)


def test_finer_tags_are_not_in_the_words(finer):
    """In about half of the questions the sentence shares no word with its tag: conventions have to be learnt."""
    opaque = total = 0
    for sample, gold in zip(finer.samples("test"), golds(finer, "test"), strict=True):
        for line, tag in zip(sample.inputs["question"].splitlines(), gold.split(","), strict=False):
            sentence = line.partition("in sentence:")[2]
            opaque += not words(tag) & words(sentence)
            total += 1
    assert 0.35 <= opaque / total <= 0.85


def test_splits_share_no_question(finer, formula, ddxplus):
    for task in (finer, formula, ddxplus):
        texts = [sample.inputs["question"] for split in task.splits for sample in task.samples(split)]
        assert len(texts) == len(set(texts))


def test_formula_targets(formula):
    names = set()
    for split in formula.splits:
        for sample, gold in zip(formula.samples(split), golds(formula, split), strict=True):
            assert re.fullmatch(r"-?\d+\.\d{1,2}", gold)
            assert gold not in ("-0.0", "nan")
            names.add(sample.inputs["question"].split(" to answer")[0])
    assert len(names) >= 20
    train = {sample.inputs["question"].split(" to answer")[0] for sample in formula.samples("train")}
    assert train == names, "every formula of the test split occurs in training"


def test_ddxplus_findings_seldom_name_the_condition(ddxplus):
    pairs = list(zip(ddxplus.samples("test"), golds(ddxplus, "test"), strict=True))
    named = sum(bool(words(gold) & words(sample.inputs["question"])) for sample, gold in pairs)
    assert 0.1 <= named / len(pairs) <= 0.5
    assert all(sample.inputs["background"] is INSTRUCTION for sample, _ in pairs)


@pytest.mark.parametrize(("name", "column"), [("two_hop", "question"), ("make_24", "puzzle")])
def test_no_playbook_helps_where_each_question_brings_all_it_needs(tmp_path, name, column):
    rows = [json.loads(line) for line in (SAMPLES / name / "questions.jsonl").read_text().splitlines()]
    options = [row[column].partition("options: ")[2].split(" | ") for row in rows]
    assert [len(set(some)) for some in options] == [4] * len(rows)
    right = [sum(eval(one) == 24 for one in some) for some in options] if name == "make_24" else []
    assert set(right) <= {1}
    assert all(row["answer"] in some for row, some in zip(rows, options, strict=True))
    assert len({row["answer"] for row in rows}) == len(rows)
    settings = [f"task.sample_data=pkg://ace_rehearsal/samples/{name}", "task=qa", "task.source=sample", "limit=8"]
    columns = [f"task.question={column}", "task.answer=answer", "task.id=id", "task.split=split", "mode.before=false"]
    ran = [launch(tmp_path, *settings, *columns, "mode.epochs=1", f"method={one}").metrics for one in ("ace", "base")]
    assert ran[0]["headline"]["after"] == ran[1]["headline"]["after"] > 0
    assert ran[0]["context"]["items"] > 4


def test_a_cell_near_the_base_is_equivalent_only_where_its_interval_lies_within_the_margin():
    place = Place(row="ace", column="two_hop", unit="percent", within=5)
    for low, verdict in ((-4.0, "equivalent"), (-6.0, "inconclusive"), (5.5, "contradicted")):
        interval = Interval(low=low, high=max(low + 1, 4))
        tested = Comparison(n=9, difference=0.0, interval=interval, better=0, worse=0, p=1.0, test="t")
        cell = Measured(place=place, comparison=tested)
        assert f"within 5 points of the base: {verdict}" in remarks(cell, PaperShown(numbers=False))
