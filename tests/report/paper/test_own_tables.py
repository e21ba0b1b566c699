"""Tables of a user's own runs, as the command prints them: any settings and metrics, compared with a base row."""

MARK = "embedded · offline [simulated, sample data: not comparable with published numbers]"
THRESHOLDS = "tables OWN --rows method,threshold --base base"


def own(commands, line):
    """The one table that a command prints."""
    ((title, table),) = commands.tables(line).items()
    return title, table


def test_rows_are_compared_with_a_base_and_never_average_over_other_settings(commands):
    title, table = own(commands, "OWN --rows method,threshold --base base")
    assert title == f"Score by method and threshold and task: {MARK}"
    assert table.grids["Results"][0] == [
        *("method", "threshold", "labels", "max_tokens"),
        *("FiNER (limit=10) accuracy", "FiNER (limit=null) accuracy", "Formula accuracy"),
    ]
    assert [line[:4] for line in table.grids["Results"][1:]] == [
        ["base", "-", "gold", "-"],
        *(["ace", threshold, "gold", "80000"] for threshold in ("0.5", "0.7")),
        *(["ace", "0.9", *rest] for rest in (("gold", "1000"), ("gold", "80000"), ("none", "80000"))),
    ]
    best = ("ace", "0.5", "gold", "80000")
    assert table.cells(*best) == {
        "FiNER (limit=null) accuracy": "63.3 [49.0, 75.6]*",
        "Formula accuracy": "70.0 [52.1, 83.3]*",
    }
    assert table.statistics(*best, "FiNER (limit=null) accuracy") == (
        "30 | 2 (seeds 0, 1) | 0 | 0.0 | +31.7 [+12.7, +46.7] | 24.1 | 0.012 | <0.004 | - | 20 (+17, -3) | -"
    )
    assert table.cells("ace", "0.9", "gold", "80000")["FiNER (limit=10) accuracy"] == "50.0 [23.7, 76.3]"
    assert table.noted("* differs from base labels=gold with p < 0.05")
    assert table.noted("for the 10 comparisons of this table")
    assert table.noted(
        "Runs also differ in labels, max_tokens: they have rows of their own, since only seeds are averaged."
    )
    assert table.noted(
        "Scores of runs that tested different samples cannot be compared: they have columns of their own."
    )


def test_several_metrics_are_rows_or_columns_with_bounds_over_seeds(commands):
    metrics = "score,usd.total,steps,usd.adapt/n,accuracy/n,timing.adapt.wall_s,tokens.total.in"
    title, table = own(commands, f"OWN --rows metric,update --columns method --metric {metrics}")
    assert title.startswith(
        "Score, usd total, steps, usd adapt/n, accuracy/n, timing adapt wall s, tokens total in by update"
    )
    rows = dict.fromkeys(line[0] for line in table.grids["Results"][1:])
    assert [*rows] == metrics.split(","), "in the order that was asked for"
    ace = ("delta", "gold", "0.9", "80000", "finer")
    shown = {metric: table.cells(metric, *ace) for metric in rows}
    assert shown["score"] == {"ace (limit=10) score": "50.0 [23.7, 76.3]", "ace (limit=null) score": "43.3 [2.6, 95.7]"}
    assert shown["accuracy/n"] == {"ace (limit=10) score": "5", "ace (limit=null) score": "1.44 [1.11, 1.78]"}
    assert shown["tokens.total.in"] == {"ace (limit=10) score": "20,000", "ace (limit=null) score": "60,000"}
    assert shown["usd.adapt/n"]["ace (limit=null) score"] == "0.01", "equal over seeds, so without bounds"
    base = ("-", "gold", "-", "-", "finer")
    assert table.cells("usd.total", *base) == {"base score": "0.6"}


def test_latex_of_single_runs_has_a_row_for_each_seed_and_the_best_in_bold(commands):
    tex = commands.printed("tables OWN task=finer --over nothing --format latex").splitlines()
    for line in (
        r"{method} & {labels} & {threshold} & {\shortstack[l]{max \\ tokens}} & {seed} & {\shortstack{FiNER \\ "
        r"(limit=10) \\ accuracy}} & {\shortstack{FiNER \\ (limit=null) \\ accuracy}} \\",
        r"ace & gold & 0.7 & 80000 & 0 & {--} & \bfseries 80.0 \\",
        r" &  &  &  &  &  & {\acebounds{[62.7, 90.5]}} \\[2pt]",
        r"ace & gold & 0.9 & 80000 & 0 & 50.0 & 53.3 \\",
        r"base & gold & -- & -- & 1 & {--} & 23.3 \\",
        "% No row is the base, so no difference is tested: name one by --base.",
    ):
        assert line in tex, line
    assert sum(line.startswith(("ace & ", "base & ")) for line in tex) == 12
