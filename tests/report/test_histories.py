"""A run's contexts step by step, and those around its sharpest fall."""

from ace_bench.contexts.loading import restore
from ace_bench.report.histories import history, write_around_fall
from ace_bench.report.records import read_run
from ace_bench.store.results import read_object
from tests.launching import launch

RUN = ("task=finer", "task.source=sample", "limit=12", "mode.epochs=1", "mode.before=false")


def test_the_contexts_around_the_sharpest_fall_are_those_whose_sizes_the_run_tells(tmp_path):
    folder = launch(tmp_path, *RUN, "method.refiner.max_tokens=600", "method.refiner.headroom=0.5").folder
    run = read_run(folder)
    assert write_around_fall(folder)
    before, after = (restore(read_object(folder, f"contexts/{name}_fall.json")) for name in ("before", "after"))
    assert (before.tokens, after.tokens) == (run.value("fall.before.tokens"), run.value("fall.after.tokens"))
    assert before.tokens > after.tokens
    digests = [context.digest for context in history(folder)]
    assert digests.index(after.digest) == digests.index(before.digest) + 1


def test_a_context_that_only_grows_has_none(tmp_path):
    folder = launch(tmp_path, *RUN).folder
    assert not write_around_fall(folder)
    assert not list(folder.glob("contexts/*_fall.json"))
