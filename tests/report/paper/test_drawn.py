"""Figures of made-up runs, as the command draws them: the points, bars, axes and words that a reader relies on."""

import pytest

from ace_bench.cli.main import start
from tests.report.paper.reading import bars, points, texts

COSTS = "DRAWN figure=cost,breakdown,cache"


def test_every_figure_that_has_runs_is_drawn_and_named_by_its_conditions(commands):
    assert [name.removesuffix("_deepseek_v3_1") for name in commands.figures("PAPER")] == [
        *("figure_01_overall", "figure_02_collapse", "figure_05_leaderboard"),
        *("learning_appworld_offline", "learning_appworld_online", "learning_finer_offline", "learning_finer_online"),
        *("learning_formula_offline", "cost_appworld", "cost_finer", "cost_formula"),
        *("breakdown_appworld", "breakdown_finer", "breakdown_formula"),
        *("cache_appworld", "cache_finer", "cache_formula", "sensitivity_table_17"),
    ]


def test_bars_stand_beside_the_papers_numbers(commands):
    figure = commands.figures("PAPER")["figure_01_overall_deepseek_v3_1"]
    (axis,) = figure.axes
    assert bars(axis) == {
        "Base LLM": [36.7, 66.7],
        "ICL": [36.7, 0.0],
        "GEPA": [0.0, 0.0],
        "DC": [0.0, 0.0],
        "ACE": [70.0, 78.3],
    }
    paper = [round(float(line.get_segments()[0][0][1]), 1) for line in axis.collections if line.get_label() == "paper"]
    assert paper == [70.7, 67.5, 72.3, 67.0, 73.5, 71.5, 74.2, 69.5, 78.3, 85.5]
    words = texts(figure)
    assert words[0] == "Overall results, deepseek_v3_1"
    assert words.count("n/a") == 5
    assert {"36.7", "66.7", "70.0", "78.3"} <= {*words}
    leaderboard = commands.figures("PAPER")["figure_05_leaderboard_deepseek_v3_1"]
    assert bars(leaderboard.axes[0])["IBM CUGA (published)"] == [73.2, 62.5, 57.6, 48.2, 60.4]
    assert [label.get_text() for label in leaderboard.axes[0].get_xticklabels()] == [
        *("Test-Normal TGC", "Test-Normal SGC", "Test-Challenge TGC", "Test-Challenge SGC", "Average"),
    ]


def test_a_collapse_is_labelled_by_its_sizes_and_accuracies(commands):
    figure = commands.figures("PAPER")["figure_02_collapse_deepseek_v3_1"]
    sizes, scores = figure.axes
    assert points(sizes)["DC"] == [[1, 9000], [2, 18282], [3, 122], [4, 122]]
    labels = [(text.get_text(), text.xy, text.get_position(), text.get_ha()) for text in sizes.texts]
    assert labels == [
        ("18,282 tokens\naccuracy 66.7", (2, 18282), (-4, 4), "right"),
        ("122 tokens\naccuracy 16.7", (3, 122), (4, 4), "left"),
    ]
    assert points(scores)["DC"][:4] == [[1, 0], [2, 50], [3, 66.7], [4, 75]]
    assert points(scores)["ReAct, no adaptation"] == [[0, 40], [1, 40]]
    assert (sizes.get_xlabel(), sizes.get_ylabel()) == ("Adaptation steps", "Context (tokens)")
    fall = commands.figures("DRAWN figure=speed,collapse")["figure_02_collapse_deepseek_v3_1"]
    assert any("(sharpest fall: 18,282 to 15,000 tokens" in words for words in texts(fall)), (
        "a fall that is no collapse"
    )


def test_curves_are_means_over_seeds_in_a_band(commands):
    figure = commands.figures("PAPER")["learning_finer_online_deepseek_v3_1"]
    scores, sizes = figure.axes
    assert figure.get_suptitle() == "FiNER: online adaptation, deepseek_v3_1, labels=gold"
    ((name, curve),) = points(scores).items()
    assert name == "ACE"
    assert (len(curve), curve[-1]) == (30, [30, 50.0])
    (band,) = scores.collections
    assert sorted({round(float(y), 1) for x, y in band.get_paths()[0].vertices if x == 30}) == [43.3, 56.7]
    assert points(sizes)["ACE"] == [[1, 5], [2, 9], [3, 20]]
    assert scores.get_ylabel() == "FiNER accuracy so\nfar (%)"


def test_scores_stand_over_dollars_or_over_tokens_where_dollars_are_unknown(commands):
    figures = commands.figures(COSTS)
    dollars, tokens = (figures[f"cost_{task}_deepseek_v3_1"].axes[0] for task in ("appworld", "finer"))
    assert dollars.get_xlabel() == "Cost of adaptation (dollars)"
    assert points(dollars) == {"DC": [[0.4, 25.0]]}
    assert tokens.get_xlabel() == "Cost of adaptation (tokens)"
    assert points(tokens)["ACE, harmful every 1, epochs 5, batch size 1"] == [[44000, 70.0]]
    assert tokens.get_xscale() == "symlog"


def test_tokens_are_stacked_by_stage_and_role_and_unknown_ones_are_named(commands):
    figure = commands.figures(COSTS)["breakdown_finer_deepseek_v3_1"]
    prompt, reply = figure.axes
    assert (prompt.get_xlabel(), reply.get_xlabel()) == ("Prompt tokens (thousands)", "Reply tokens")
    widths = {one.get_label(): [round(float(bar.get_width()), 1) for bar in one] for one in prompt.containers}
    tokens = [40, 40, 40, 40, 0, 40, 40]
    assert widths == {"Adaptation: Generator": tokens, "Evaluation: Generator": tokens}
    assert [(text.get_text(), text.xy) for text in prompt.texts] == [("n/a", (0, 4))], "the run without known tokens"


def test_the_share_of_the_cache_is_over_the_calls_made(commands):
    figure = commands.figures(COSTS)["cache_appworld_deepseek_v3_1"]
    (axis,) = figure.axes
    curve = points(axis)["DC"]
    assert (curve[0], curve[-1][0], len(curve)) == ([1.2, 0.0], 100.0, 80)
    assert axis.get_ylim() == (0, 100)
    assert axis.get_xlabel() == "Calls made (%); each point: the last 50"


def test_sensitivity_shows_ours_the_papers_and_the_base(commands):
    figure = commands.figures("PAPER")["sensitivity_table_17_deepseek_v3_1"]
    (axis,) = figure.axes
    assert points(axis) == {
        "ours, 95% interval": [[1, 73.3], [6, 70.0]],
        "paper": [[0, 66.7], [1, 76.1], [2, 77.0], [3, 77.8], [4, 78.2], [5, 78.2], [6, 78.3]],
        "Base LLM": [[0, 36.7], [1, 36.7]],
    }
    assert [label.get_text() for label in axis.get_xticklabels()] == ["1", "5", "10", "25", "50", "100", "never"]
    assert axis.get_xlabel() == "Harmful every"


def test_speed_stands_over_seconds_with_the_size_of_each_batch(commands):
    figure = commands.figures("DRAWN figure=speed,collapse")["combee_speed_deepseek_v3_1"]
    accuracy, calls = figure.axes
    assert (accuracy.get_xscale(), calls.get_ylabel()) == ("log", "Calls of adaptation")
    assert points(accuracy) == {
        "ACE, deltas applied in order": [[50, 70], [5, 25]],
        "Combee": [[6, 70]],
        "one Curator for a batch": [[9, 25]],
    }
    assert sorted((text.get_text(), text.xy) for text in accuracy.texts) == [
        *(("1", (50, 70.0)), ("16", (5, 25.0)), ("16", (6, 70.0)), ("2", (9, 25.0))),
    ]


@pytest.mark.slow
def test_the_field_has_a_panel_for_each_group_with_the_front(commands):
    figures = commands.figures("REHEARSED figure=field")
    assert [name.partition("_embedded")[0] for name in figures] == [
        *("field_score_by_cost_finer_answer_alone", "field_score_by_cost_finer_json"),
    ]
    figure = next(iter(figures.values()))
    assert all(axis.get_xscale() == "log" for axis in figure.axes)
    panels = {axis.get_title().partition("\n")[2]: axis for axis in figure.axes}
    names = [(text.get_text(), text.get_fontweight()) for text in panels["answer_alone, stream, labels none"].texts]
    assert [name for name in names if name[0]] == [("dc 100%", "bold"), ("base 1%", "normal")]


def test_own_runs_are_lines_over_a_setting_and_levels_without_it(commands):
    figure = commands.figures("OWN --x threshold")["score_by_threshold_simulated_sample_data"]
    assert points(figure.axes[0]) == {
        "base labels=gold": [[0.0, 31.7], [1.0, 31.7]],
        "ace labels=gold max_tokens=1000": [[0.9, 66.7]],
        "ace labels=gold max_tokens=80000": [[0.5, 63.3], [0.7, 70.0], [0.9, 43.3]],
        "ace labels=none max_tokens=80000": [[0.9, 61.7]],
    }
    assert figure.get_suptitle().splitlines()[1:] == [
        "[simulated, sample data: not comparable with published numbers]",
        "bars: 95% intervals",
    ]
    costs = commands.figures("OWN --x max_tokens --y usd.total")["usd_total_by_max_tokens_simulated_sample_data"]
    assert "bars: smallest and largest value over seeds" in costs.get_suptitle()
    assert costs.axes[0].get_ylabel() == "usd total (dollars)"
    words = commands.figures("OWN --x labels")["score_by_labels_simulated_sample_data"].axes[0]
    assert [label.get_text() for label in words.get_xticklabels()] == ["gold", "none"]
    both = points(words)["ace threshold=0.9 max_tokens=80000"]
    assert both == [[0.2, 43.3], [1.2, 61.7]], "beside the points of other lines"
    assert {line.get_linestyle() for line in words.lines if len(line.get_xdata()) == 2} == {"None"}


@pytest.mark.parametrize(("out", "said"), [("a.png", "several files"), ("figures-0.3", "there are no runs")])
def test_figures_are_written_to_a_folder_whose_name_may_have_a_point(out, said, tmp_path, capsys):
    assert start("figures", ["--results", str(tmp_path), "--x", "threshold", "--out", out]) == 2
    assert said in capsys.readouterr().err


def test_figures_for_a_paper_fit_a_column_and_keep_only_warnings_above(commands):
    figures = commands.figures("PAPER figure=overall,learning,collapse style=paper --width column")
    curves = figures["learning_finer_online_deepseek_v3_1"]
    assert curves.get_figwidth() == 3.3
    assert curves.axes[1].get_position().y1 < curves.axes[0].get_position().y0, "panels stand below each other"
    assert curves.get_suptitle() == ""
    assert curves.get_label() == "FiNER: online adaptation, deepseek_v3_1, labels=gold", "of which the caption is made"
    assert figures["figure_01_overall_deepseek_v3_1"].get_figwidth() == 3.3


def test_bars_for_a_paper_take_a_page_unless_a_column_is_asked_for(commands):
    (bars_of_figure_1,) = commands.figures("PAPER figure=overall style=paper").values()
    assert bars_of_figure_1.get_figwidth() == 6.8
