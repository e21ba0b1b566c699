"""What `reproduce` lists before anything is made: results, states of runs, commands and costs."""


def lines(commands, line):
    """What a command prints, line by line, with single blanks."""
    return [" ".join(one.split()) for one in commands.printed(line).splitlines()]


def test_the_state_of_each_run_and_its_command(commands):
    shown = lines(commands, "reproduce table=4 figure=2 backbone=embedded results=REHEARSED --dry-run")
    states = [line.split()[0] for line in shown[:-1]]
    assert states == [
        *("missing", "missing", "finished"),
        *("missing",) * 3,
        *("waiting",) * 2,
        "missing",
        *("waiting",) * 2,
        "missing",
        "waiting",
    ]
    assert shown[1].startswith(
        "missing ace-bench run labels=gold method=ace mode=offline task=appworld mode.before=false mode.epochs=1 "
        "task.test_split=test_normal backbone=embedded task.source=sample seed=0 name=paper results="
    )
    assert shown[6].endswith("backbone=embedded task.source=sample seed=0 # then mode.context=...")
    assert shown[-1] == "13 runs, 1 of them finished"


def test_runs_of_methods_that_repeat_others_are_left_out_with_the_reason(commands):
    chosen = "tasks=finer methods=icl,ace_empty passes=fit,once feedback=gold"
    shown = lines(
        commands, f"reproduce experiment=field {chosen} backbone=embedded results=REHEARSED seed=0,1 --dry-run"
    )
    assert shown[:2] == [
        "one seed, 4 runs: greedy, nothing is drawn, so others would ask the same",
        "left out, 2 runs: it does not learn step by step: epochs change nothing",
    ]
    assert shown[-1] == "6 runs, 4 of them finished"


def test_costs_are_estimated_by_the_papers_counts(commands):
    shown = lines(commands, "reproduce table=1,2,4,10 --estimate")
    for line in (
        "base offline appworld task.test_split=test_normal seed=0 2,552 28.8M 0.30M 87.87 0.2",
        "labels=gold ace offline appworld task.test_split=test_normal seed=0 9,992 to 51,867 202.2 to 971.8M "
        "1.35 to 7.21M 612.84 to 2,947.73 3.5 to 16.8",
        "labels=gold dc online finer seed=0 882 n/a n/a 17.70 18.1",
        "51 together 207,334 to 532,925 (44 of 51 runs) 1,700.5 to 2,751.7M (15 of 51 runs) 11.91 to 20.00M "
        "(15 of 51 runs) 5,237.37 to 8,427.43 (23 of 51 runs) 108.5 to 124.5 (23 of 51 runs)",
    ):
        assert line in shown, line
    settings = (
        "'limit={train: 9, test: 16}' mode.before=true backbone=gpt_5_1 gepa:method.max_metric_calls=717 seed=0,1"
    )
    part = lines(commands, f"reproduce table=4,12 experiment=no_gain {settings} --estimate")
    assert "labels=gold ace online online finer seed=0 48 to 192 n/a n/a n/a 0.1" in part
    assert any(line.startswith("16 together 26,094 to 28,172 (10 of 16 runs)") for line in part)
    assert part[0] == "one seed, 2 runs: greedy, nothing is drawn, so others would ask the same"
    search = lines(commands, "reproduce table=4a gepa:method.auto=light --estimate")
    assert any(line.endswith("seed=0 n/a n/a n/a n/a n/a") for line in search), "nobody knows what a search needs"


def test_all_results_are_listed_with_their_models_and_runs(commands):
    shown = lines(commands, "reproduce --list")
    for line in (
        "figure=2 Context collapse on AppWorld deepseek_v3_1 9",
        "table=2 Financial analysis, DeepSeek-V3.1 deepseek_v3_1 28",
        "experiment=field Methods of the field deepseek_v3_1 at most 462",
        "experiment=seed_004 Retrieval of bullets by stage embedded none: a measurement",
    ):
        assert line in shown, line
    assert len(shown) == 35
