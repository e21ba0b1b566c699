"""The part of a result that a user chooses by tasks and methods, or by names of columns and rows."""

import pytest

from ace_bench.core.errors import DataError
from ace_bench.report.narrowing import choice_words, narrowed, read_choice
from tests.report.paper.conftest import EXPERIMENTS


def part(*words):
    """The rows and columns that are left of the results that the first word names."""
    names, *choice = words
    experiments, left = narrowed(EXPERIMENTS, names.split(","), read_choice(choice))
    return {name: ([*experiments.by_name[name].rows], [*experiments.by_name[name].columns]) for name in left}


@pytest.mark.parametrize(
    ("words", "rows", "columns"),
    [
        (["2", "tasks=finer", "methods=icl,base"], ["base", "icl"], ["finer"]),
        (["2", "methods=ace_online_gt"], ["base", "ace_online_gt"], ["finer", "formula", "average"]),
        (["2", "methods=mipro"], ["base", "mipro"], ["finer", "formula", "average"]),
        (["real_models", "tasks=formula", "methods=gepa"], ["ace_empty", "gepa"], ["formula"]),
        (["11", "tasks=bird_sql", "methods=base"], ["base"], ["simple", "moderate", "challenging", "average"]),
        (["11", "tasks=simple", "methods=base"], ["base"], ["simple"]),
        (["4b", "methods=ace"], ["ace"], ["latency", "dollars"]),
        (["field", "tasks=finer", "methods=base"], ["base_answer_alone", "base_json", "base_own"], ["finer"]),
    ],
)
def test_a_part_has_the_chosen_rows_and_columns_and_a_base_that_only_answers(words, rows, columns):
    ((left_rows, left_columns),) = part(*words).values()
    assert (left_rows, left_columns[: len(columns)]) == (rows, columns)


def test_results_without_a_chosen_run_are_left_out_and_the_others_keep_their_numbers():
    assert part("1,2,9,10", "tasks=finer").keys() == {"2", "9"}
    experiments, _ = narrowed(EXPERIMENTS, ["2", "figure_1"], read_choice(["tasks=formula"]))
    assert experiments.cell("2/ace_offline_gt/formula") == EXPERIMENTS.cell("2/ace_offline_gt/formula")
    assert [*experiments.by_name["figure_1"].bars] == ["Formula"]
    assert experiments.run("2", "base", "finer") == EXPERIMENTS.run("2", "base", "finer"), "others may refer to it"


def test_a_part_needs_the_runs_that_its_contexts_come_from():
    experiments, _ = narrowed(EXPERIMENTS, ["1"], read_choice(["methods=ace_online"]))
    needed = EXPERIMENTS.run("1", "ace_offline", "normal_tgc")
    assert "ace_offline" not in experiments.by_name["1"].rows
    assert needed in experiments.runs("1")


def test_a_choice_is_read_and_written_as_it_is_typed():
    words = ["tasks=finer,formula", "methods=ace"]
    assert choice_words(read_choice([*words, "table=2", "limit=3"])) == words


def test_an_empty_choice_is_not_all():
    with pytest.raises(DataError, match="tasks= names nothing"):
        part("2", "tasks=")
