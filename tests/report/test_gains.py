"""What the page of a run says first: against its own score before adaptation, and against the base beside it."""

from ace_bench.report.gains import against_base
from ace_bench.report.page.run_data import run_data
from ace_bench.report.records import read_run
from tests.launching import launch
from tests.report.page.runs import FINER


def test_a_run_is_compared_with_itself_and_with_the_base_on_the_same_samples(tmp_path):
    folder = launch(tmp_path, *FINER, "limit=5", "mode.epochs=1").folder
    run = read_run(folder)
    assert against_base(run) == []
    launch(tmp_path, *FINER, "limit=4", "method=base")
    assert against_base(run) == [], "the base has answered other samples"
    launch(tmp_path, *FINER, "limit=5", "method=base")
    (sentence,) = against_base(run)
    assert sentence.startswith("[simulated, sample data] Over method=base (1 seed) this run ")

    answer = run_data(run)["answer"]
    assert answer["sentences"][1:] == [sentence]
    assert answer["sentences"][0].startswith("[simulated, sample data] Adaptation ")
    assert answer["beside"] == [], "its own test before adaptation is nearer"
    gain = run.metrics["gain"]
    assert len(answer["changed"]) == gain["better"] + gain["worse"]
    older = {name: value for name, value in run.metrics.items() if name not in ("gain", "query")}
    run.metrics.clear()
    run.metrics.update(older)
    assert run_data(run)["answer"] == answer, "folders of older versions are measured here"


def test_the_samples_that_differ_from_a_base_beside_it_are_listed_where_nothing_was_tested_before(tmp_path):
    base = launch(tmp_path, *FINER, "limit=5", "method=base").folder
    run = read_run(launch(tmp_path, *FINER, "limit=5", "mode.epochs=1", "mode.before=false").folder)
    answer = run_data(run)["answer"]
    (beside,) = answer["beside"]
    assert (answer["changed"], beside["name"], beside["folder"]) == ([], "method=base, seed 0", str(base))
    ours, theirs = (scores.points("accuracy") for scores in (run, read_run(base)))
    differ = [theirs[sample].score for sample in ours if ours[sample].score != theirs[sample].score]
    assert differ, "else nothing is shown"
    assert [sample["score"] for sample in beside["changed"]] == differ
    assert all(isinstance(sample["answer"], str) for sample in beside["changed"])
    journal = base / "journal.jsonl"
    journal.write_bytes(b"x" + journal.read_bytes()[1:])
    shown = run_data(read_run(run.folder))
    assert (shown["answer"]["beside"], shown["notes"]) == ([], []), "a damaged base is no base"
