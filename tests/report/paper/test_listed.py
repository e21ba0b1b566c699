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


def test_costs_on_appworld_are_estimated_by_the_papers_counts(commands):
    shown = lines(commands, "reproduce table=1,4a --estimate")
    for line in (
        "base offline appworld task.test_split=test_normal seed=0 2,552 calls, 29 million tokens, $87.87 "
        "2,552 calls, 29 million tokens, $87.87",
        "labels=gold ace offline appworld task.test_split=test_normal seed=0 22,766 calls, 450 million tokens, "
        "$1,344.04 51,867 calls, 980 million tokens, $2,947.73",
        "Estimate, 15 of 17 runs: about 122,725 calls, 2,100 million tokens, $6,242.24; at most 160,691 calls, "
        "2,800 million tokens, $8,345.03.",
        "On AppWorld: by the paper's tables 12 and 14, at most with all reflection rounds. Dollars are without cache "
        "discounts.",
    ):
        assert line in shown, line
    search = lines(commands, "reproduce table=4a gepa:method.auto=light --estimate")
    assert any(line.endswith("seed=0 n/a n/a") for line in search), "nobody knows what a search needs"
    settings = "'limit={train: 9, test: 16}' mode.before=true backbone=gpt_5_1 gepa:method.max_metric_calls=717"
    part = lines(commands, f"reproduce table=4a {settings} seed=0,1 --estimate")
    assert any(line.startswith("Estimate, 4 runs: about ") for line in part), part


def test_all_results_are_listed_with_their_models_and_runs(commands):
    shown = lines(commands, "reproduce --list")
    for line in (
        "figure=2 Context collapse on AppWorld deepseek_v3_1 9",
        "table=2 Financial analysis, DeepSeek-V3.1 deepseek_v3_1 28",
        "experiment=field Methods of the field deepseek_v3_1 at most 444",
        "experiment=seed_004 Retrieval of bullets by stage embedded none: a measurement",
    ):
        assert line in shown, line
    assert len(shown) == 35
