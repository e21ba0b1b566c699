"""The paper's tables from made-up runs: the cells, marks, statistics, costs and notes that a reader relies on."""

import csv
import io

import pytest

TABLE_2 = "Financial analysis, DeepSeek-V3.1 (table 2 of the paper): runs with deepseek_v3_1"
TABLE_12 = "Adaptation on AppWorld, sums (table 12 of the paper): runs with deepseek_v3_1"
PAPER = "PAPER table=1,2,4,12,13,17"
MIXED = "MIXED table=2,4b,16"
CLAIMED = "CLAIMED table=claims,10"
CLAIMS = {
    "ACE against ICL, GEPA and DC on AppWorld": "n/a | - | - | - | not measured",
    "ACE offline against GEPA": "+40.7 | [+11.9, +67.0] | 0.025 | 0 of 12 | supported",
    "ACE offline against ICL": "+4.9 | [-0.5, +9.9] | 0.060 | 0 of 12 | inconclusive",
    "ACE against the base on DDXPlus": "+38.0 | [+3.6, +68.3] | 0.009 | 0 of 3 | supported",
    "ACE against the base on BIRD-SQL": "+50.9 | [+5.6, +90.9] | 0.013 | 0 of 3 | supported",
    "ACE against GEPA on DDXPlus": "+26.9 | [+1.7, +49.2] | 0.043 | 1 of 6 | supported",
    "ACE online against ReAct": "+43.1 | [+26.6, +57.8] | <0.004 | 0 of 2 | these playbooks only",
    "ACE online against the published IBM CUGA, challenge SGC": "-14.9 | [-42.3, +16.8] | 0.369 | 0 of 1 | "
    "these playbooks only",
    "tokens that DC's cheatsheet loses in its sharpest fall": "+99.3% | - | - | 1 of 1 | these playbooks only",
    "10K tokens equal 100K": "+0.0 | [-6.4, +6.4] | 1.000 | 0 of 6 | inconclusive",
    "50K tokens equal 100K": "-11.1 | [-23.2, +2.2] | 0.138 | 0 of 6 | inconclusive",
    "rollouts saved offline against GEPA": "+54.4% | [+53.0, +55.8] | - | 0 of 6 | supported",
    "latency saved, mean of both": "+0.0% | all seeds equal | - | 0 of 12 | contradicted",
    "billed input of the test saved by the cache, GPT-5.1": "n/a | - | - | 0 of 1 | not measured",
}
"""What our runs give, the interval, p, collapsed runs, and the verdict."""
SIMULATED = "[simulated, sample data: not comparable with published numbers]"
IN_PART = "[in part not the paper's setting]"
FEW = "fewer than 3 seeds on a side: about these playbooks only"


def test_cells_have_intervals_and_the_papers_number_beside_them(commands):
    table = commands.tables(PAPER)[TABLE_2]
    assert table.cells("Base LLM", "-", "-") == {
        "FiNER": "36.7 [21.9, 54.5] | 70.7 | -34.0",
        "Formula": "66.7 [48.8, 80.8] | 67.5 | -0.8",
        "average": "51.7 | 69.1 | -17.4",
    }
    assert table.cells("ACE", "offline", "gold") == {
        "FiNER": "70.0 [28.3, 93.2] | 78.3 | -8.3",
        "Formula": "78.3 [18.5, 98.3] | 85.5 | -7.2",
        "average": "74.2 | 81.9 | -7.7",
    }
    assert table.cells("ACE", "online", "gold") == {"FiNER": "50.0 [6.9, 93.1] | 76.7 | -26.7"}
    assert table.cells("DC (CU)", "online", "none") == {}, "nobody ran it"
    assert len(table.grids["Results"]) == 1 + 14
    assert table.noted("The paper's numbers belong to deepseek_v3_1, section 4.4.")
    assert table.noted(
        "contradicts itself at 2/ace_online_gt/average: by its text 76.6 is the highest, and there is 81.9."
    )


def test_statistics_say_what_is_behind_a_cell(commands):
    table = commands.tables(PAPER)[TABLE_2]
    assert table.grids["Statistics behind the results"][0][4:] == [
        *("n", "seeds", "faults", "sd over seeds", "change against Base LLM (points)", "detectable"),
        *("p (Holm)", "p", "p over seeds", "discordant", "notes"),
    ]
    greedy = "1 run: greedy, nothing is drawn; one seed: about this playbook only"
    assert (
        table.statistics("Base LLM", "-", "-", "FiNER") == f"30 | 1 (seed 0) | 0 | - | - | - | - | - | - | - | {greedy}"
    )
    assert table.statistics("ICL", "offline", "gold", "FiNER") == (
        "30 | 1 (seed 0) | 0 | - | +0.0 [-25.9, +25.9] | 36.7 | 1.000 | 1.000 | - | 14 (+7, -7) | "
        "one seed: about this playbook only; within noise of the base"
    )
    assert table.statistics("ACE", "offline", "gold", "FiNER") == (
        "30 | 2 (seeds 0, 1) | 2 | 4.7 | +33.3 [-13.3, +75.8] | 55.7 | 0.295 | 0.074 | 0.068 | 21 (+17, -4) | "
        f"{FEW}; within noise of the base; the paper's is within our interval"
    )
    assert table.noted("corrected by Holm's method for the 4 comparisons of this table")
    assert table.noted("Averages are not tested.")
    assert table.noted("4 of 4 intervals of differences may be wider than 95% needs")
    assert table.noted("3 of 6 intervals of scores may be wider than 95% needs")


def test_costs_of_a_run_and_the_commands_that_are_missing(commands):
    table = commands.tables(PAPER)[TABLE_2]
    assert table.grids["Costs of a run"][0][5:] == [
        *("calls", "rollouts", "tokens in", "tokens out", "cached share", "dollars", "latency (s)", "model time (s)"),
    ]
    costs = table.line("Costs of a run", "ACE", "online", "gold", "FiNER", "adapt")
    assert costs == "30 | 30 | 30,000 | 3,000 | 0.5 | 0.3 | 12.5 | 35"
    (command,) = table.commands
    assert command.startswith("ace-bench reproduce table=2 seed=0,1 backbone=deepseek_v3_1 results=")


def test_a_line_of_csv_has_all_numbers_of_a_cell(commands):
    text = commands.files(PAPER)["table_02_deepseek_v3_1.csv"]
    lines = {(line["row"], line["column"]): line for line in csv.DictReader(io.StringIO(text))}
    assert len(lines) == 14 * 3
    found = lines["ace_offline_gt", "finer"]
    measured = {"value": 70.0, "low": 28.35, "high": 93.23, "sd_over_seeds": 4.71, "ours_less_paper": -8.3}
    changed = {"change": 33.33, "change_low": -13.28, "change_high": 75.78, "detectable": 55.66}
    numbers = measured | changed | {"p_holm": 0.29, "p": 0.07, "p_over_seeds": 0.07}
    assert {name: round(float(found[name]), 2) for name in numbers} == numbers
    words = ("table", "conditions", "simulated", "source", "method", "adaptation", "labels", "metric", "unit", "state")
    assert [found[name] for name in words] == [
        *("2", "backbone=deepseek_v3_1", "False", "real", "ACE", "offline", "gold", "accuracy", "percent", ""),
    ]
    counts = ("n", "seeds", "faults", "against", "change_unit", "test", "discordant", "better", "worse", "paper")
    assert [found[name] for name in counts] == [
        *("30", "0 1", "2", "Base LLM", "points", "t over seeds and samples", "21", "17", "4", "78.3"),
    ]
    assert len(found["folders"].split()) == 2
    assert lines["base", "finer"]["one_seed_about"] == "this playbook"
    missing = lines["mipro", "finer"]
    assert (missing["state"], missing["value"], missing["paper"]) == ("missing", "", "72.4")


def test_a_significant_cell_has_a_mark_and_few_seeds_another_one(commands):
    table = commands.tables(PAPER)["Harmful Reflector on FiNER (table 17 of the paper): runs with deepseek_v3_1"]
    row = ("ACE (harmful every 5)", "offline", "gold")
    assert table.cells(*row) == {"FiNER": "73.3 [55.6, 85.8]‡ | 76.1 | -2.8"}
    assert table.statistics(*row, "FiNER").startswith(
        "30 | 1 (seed 0) | 0 | - | +36.7 [+10.8, +57.9] | 33.4 | 0.011 | 0.006"
    )
    enough = commands.tables(CLAIMED)["DDXPlus, DeepSeek-V3.1 (table 10 of the paper): runs with deepseek_v3_1"]
    assert enough.cells("ACE", "offline", "gold") == {"accuracy": "88.0 [73.3, 95.1]* | 90.2 | -2.2"}
    assert enough.cells("GEPA", "offline", "gold") == {"accuracy": "57.4¶ | 76.4 | -19.0"}
    assert enough.statistics("GEPA", "offline", "gold", "accuracy").endswith(
        "+7.4 | - | - | - | - | - | 1 of 3 seeds collapsed: no interval or test over seeds holds"
    )


def test_scenarios_are_scored_as_wholes_and_costs_change_in_percent(commands):
    tables = commands.tables(PAPER)
    appworld = tables["AppWorld, DeepSeek-V3.1 (table 1 of the paper): runs with deepseek_v3_1"]
    assert appworld.cells("ReAct + ACE", "offline", "gold") == {
        "normal TGC": "70.0 [28.3, 93.2] | 76.2 | -6.2",
        "normal SGC": "35.0 [0.7, 97.5] | 64.3 | -29.3",
        "challenge TGC": "61.7 [3.7, 98.5] | 57.3 | +4.4",
        "challenge SGC": "35.0 [0.3, 99.1] | 39.6 | -4.6",
        "average": "50.4 | 59.4 | -9.0",
    }
    assert appworld.statistics("ReAct + GEPA", "offline", "gold", "normal SGC").startswith(
        "10 | 1 (seed 0) | 0 | - | +20.0 [-20.0, +53.3] | 51.3 | 1.000 | 0.339 | - | 2 (+2, -0)"
    )
    latency = tables["Cost of offline adaptation on AppWorld (table 4a of the paper): runs with deepseek_v3_1"]
    assert latency.cells("ReAct + ACE", "offline", "gold") == {
        "latency (seconds)": "12.5 | 9,517 | -99.9%",
        "rollouts": "30 | 357 | -91.6%",
        "model time (seconds)": "35 | - | -",
    }
    dollars = tables["Cost of online adaptation on FiNER (table 4b of the paper): runs with deepseek_v3_1"]
    assert dollars.cells("ACE", "online", "gold")["dollars"] == "0.3 | 2.9 | -89.7%"


def test_sums_by_role_and_ratios_of_them_count_what_the_paper_counted(commands):
    tables = commands.tables(PAPER)
    sums = tables[TABLE_12]
    assert sums.cells("ACE (Reflector), in calls", "offline", "gold")["rollouts or calls"] == "0 | 161 | -100.0%"
    assert sums.cells("GEPA (total), in rollouts", "offline", "gold") == {
        "input": "30,000 | 204,076,096 | -100.0%",
        "output": "3,000 | 1,870,188 | -99.8%",
        "rollouts or calls": "30 | 1,455 | -97.9%",
        "queries": "30 | 147 | -79.6%",
    }
    assert sums.noted("12/ace/calls: its change, +42.6%, compares calls with rollouts.")
    ratios = tables["Adaptation on AppWorld, averages (table 13 of the paper): runs with deepseek_v3_1"]
    assert ratios.cells("ACE (Generator), in calls", "offline", "gold") == {
        "input per rollout or call": "1,000 | 17,327 | -94.2%",
        "output per rollout or call": "100 | 111 | -10.0%",
        "input per query": "1,000 | 344,579 | -99.7%",
        "output per query": "100 | 2,209 | -95.5%",
        "rollouts or calls": "30 | 1,790 | -98.3%",
        "queries": "30 | 90 | -66.7%",
    }
    assert ratios.cells("ACE (Curator), in calls", "offline", "gold")["input per query"] == "n/a | 39,477 | -"


def test_latex_has_groups_changes_check_marks_and_bold_numbers(commands):
    tex = commands.files(PAPER)["table_02_deepseek_v3_1.tex"].splitlines()
    for line in (
        r"\caption{\textbf{Financial analysis, DeepSeek-V3.1 (table 2 of the paper):} runs with deepseek\_v3\_1}",
        r"\label{tab:2-deepseek_v3_1-results}",
        r"\acegroup{8}{DeepSeek-V3.1 as base model} \\",
        r"\acegroup{8}{Offline adaptation} \\",
        r"Base LLM &  & 36.7 & 70.7 & 66.7 & 67.5 & 51.7 & 69.1 \\",
        r" &  & {\acebounds{[21.9, 54.5]}} &  & {\acebounds{[48.8, 80.8]}} &  &  &  \\[2pt]",
        r"ICL & \aceyes{} & 36.7{\acesame{+0.0}} & 72.3 & {--} & 67.0 & {--} & 69.6 \\",
        r"ACE & \aceyes{} & \bfseries 70.0{\acesame{+33.3}} & 78.3 & 78.3{\acesame{+11.7}} & 85.5 "
        r"& 74.2{\acesame{+22.5}} & 81.9 \\",
        r"ACE & \aceno{} & {--} & 67.3 & {--} & 78.5 & {--} & 72.9 \\",
        r"\item[{}*] differs from Base LLM (p $<$ 0.05, paired, Holm over 4 comparisons).",
        "% Statistics of each cell, and costs, if any: table_02_deepseek_v3_1.md and table_02_deepseek_v3_1.csv.",
    ):
        assert line in tex, line
    (legend,) = [line for line in tex if line.startswith(r"\item In parentheses")]
    for part in (
        "change against Base LLM (points).",
        "In brackets: 95\\% interval of a score",
        "Bold: alone the best of its group.",
    ):
        assert part in legend
    sums = commands.files(PAPER)["table_12_deepseek_v3_1.tex"]
    assert "\nGEPA (total), in rollouts & 30000 & 204076096 & 3000 & 1870188 & 30 & 1455 & 30 & 147 \\\\\n" in sums
    assert "ACE (Curator), in calls & 0 & 3552963 &" in sums, "a part of a cost has no change"
    assert r"ACE (total), in calls & 30000{\acesame{+0.0\%}} & 39250925 &" in sums
    assert r"\resizebox{\linewidth}{!}{%" in sums, "it is wider than a page"


def test_runs_that_are_not_the_planned_ones_are_marked_and_not_compared_with_planned_ones(commands):
    tables = commands.tables(MIXED)
    table = tables[f"{TABLE_2} {IN_PART}"]
    assert table.cells("ICL", "offline", "gold") == {"Formula": "45.0 [25.8, 65.8] | 67.0 | -22.0"}, (
        "a run of another size fills no cell"
    )
    assert table.statistics("GEPA", "offline", "gold", "FiNER") == (
        "20 | 1 (seed 0) | 0 | - | - | - | - | - | - | - | one seed: about this playbook only; not the planned run: "
        "method.keep=1; not the paper's setting: method.keep=1"
    )
    assert table.statistics("ICL", "offline", "gold", "Formula").endswith("one seed: about these demonstrations only")
    assert table.noted(
        "§ not the planned runs, and compared only where both sides differ alike; they differ in method.keep=1 (GEPA "
        "offline gold (FiNER))."
    )
    assert table.noted(
        "Runs of the same task, method and mode that are not shown, as they differ in backbone.model=gpt-oss-120b (Base"
    )
    assert table.noted("limit=20 (ICL offline gold (FiNER)")
    assert table.noted("method.max_reflection_rounds=3, mode.epochs=1 (ACE offline gold (Formula))")
    assert table.noted("Differences of these to the paper are left out (--differences shows them).")
    limited = tables[f"{TABLE_2}, limit=20 [not the paper's setting]"]
    assert limited.cells("ICL", "offline", "gold")["FiNER"] == "55.0 [34.2, 74.2]† | 72.3", (
        "planned with this limit, and no cell has a difference"
    )


def test_damaged_void_and_unknown_runs_affect_only_their_own_cells(commands):
    tables = commands.tables(MIXED)
    table = tables[f"{TABLE_2} {IN_PART}"]
    void = ("ACE (void: 15% of the generator's replies were cut)", "offline", "correctness")
    assert table.cells(*void) == {"FiNER": "55.0 [34.2, 74.2] | 71.1 | -16.1"}
    assert table.cells("DC (CU)", "online", "none") == {
        "FiNER": "25.0 | 68.3 | -43.3",
        "Formula": "35.0 [18.1, 56.7] | 62.5 | -27.5",
        "average": "30.0 | 65.4 | -35.4",
    }, "a score without an interval, since the journal is damaged"
    damaged = table.statistics("DC (CU)", "online", "none", "FiNER")
    assert "journal.jsonl: line 1 is damaged (JSON is malformed" in damaged
    others = table.statistics("ACE", "online", "correctness", "Formula")
    assert "runs attempted different samples (formula-test-3 is missing in one); compare runs of one limit" in others
    twice = table.line("Costs of a run", "ACE", "offline", "gold", "FiNER", "evaluate, before and after")
    assert twice.startswith("20 | 20 | 20,000")
    unknown = table.line("Costs of a run", "ACE", "online", "gold", "FiNER", "adapt")
    assert unknown == "20 | 20 | 20,000 | 2,000 | 0.5 | n/a | 12.5 | 35"
    (folder,) = tables["Run folders that cannot be read"].notes
    assert folder.endswith("seed1/metrics.json is damaged (Input data was truncated); repeat the command of the run")


def test_simulated_runs_stand_alone_and_say_so(commands):
    mark = "[simulated: not comparable with published numbers]"
    table = commands.tables(MIXED)[f"{TABLE_2} {mark}"]
    assert table.grids["Results"][0] == ["method", "adaptation", "labels", "FiNER", "Formula", "average"]
    assert table.cells("MIPROv2", "offline", "gold") == {"FiNER": "40.0 [21.9, 61.3]†§"}
    assert table.noted("as they differ in who answered: a real model (Base LLM - - (FiNER)")
    assert table.noted("the data: sample (Base LLM - - (FiNER)")
    title = "Weaker and stronger Reflectors on FiNER (table 16 of the paper): runs with embedded"
    stand_ins = [row[0] for row in commands.tables(MIXED)[f"{title} {SIMULATED}"].grids["Results"] if "by" in row[0]]
    assert stand_ins == [
        "ACE (reflector GPT-OSS-120B), answered by embedded",
        "ACE (reflector GPT-5.1), answered by embedded",
    ], "who answers for a role that the row gives a model of its own"
    asked = commands.tables("MIXED table=2 backbone=embedded limit=1 task.source=sample --paper on")
    (shown,) = [table for title, table in asked.items() if "table 2" in title]
    assert shown.grids["Results"][0][4] == "paper"
    assert shown.noted("They are shown on request: runs that are simulated and on sample data measure something else.")
    assert shown.noted("† not the paper's setting: backbone.model=embedded, limit=1, sample data.")


def test_settings_choose_runs_and_differences_are_shown_on_request(commands):
    settings = "backbone=deepseek_v3_1 gepa:method.keep=1 mipro:method.auto=light"
    tables = commands.tables(f"MIXED table=2 {settings} --differences")
    conditions = "gepa:method.keep=1, mipro:method.auto=light"
    table = tables[f"{TABLE_2}, {conditions} {IN_PART}"]
    assert table.cells("GEPA", "offline", "gold") == {"FiNER": "45.0 [25.8, 65.8]† | 73.5 | -28.5"}
    assert table.statistics("GEPA", "offline", "gold", "FiNER").startswith(
        "20 | 1 (seed 0) | 0 | - | +5.0 [-32.9, +42.0] | 52.9 | 1.000 | 0.803 | - | 13 (+7, -6)"
    )
    assert table.noted("Differences of these to the paper are shown, as requested.")
    (command,) = table.commands
    assert command.startswith(f"ace-bench reproduce table=2 seed=0,1 {settings} results="), "settings of a method"


def test_a_table_without_runs_has_the_papers_numbers_and_all_commands(commands):
    line = "MIXED table=10 backbone=vllm backbone.url=http://here:1 backbone.model=org/none limit=3"
    table = commands.tables(line)["DDXPlus, DeepSeek-V3.1 (table 10 of the paper): runs with org/none, limit=3"]
    assert table.grids["Results"][1:] == [
        ["Base LLM", "-", "-", "missing", "75.2", "-"],
        ["ACE's prompt, empty playbook", "-", "-", "missing", "-", "-"],
        ["GEPA", "offline", "gold", "missing", "76.4", "-"],
        ["ACE", "offline", "gold", "missing", "90.2", "-"],
    ]
    assert [*table.grids] == ["Results"]
    assert [command.partition(" results=")[0] for command in table.commands] == [
        "ace-bench reproduce table=10 seed=0 backbone=vllm backbone.model=org/none backbone.url=http://here:1 limit=3"
    ]


def test_claims_have_verdicts_by_their_intervals(commands):
    table = commands.tables(CLAIMED)["The paper's claims: runs with deepseek_v3_1"]
    header, *lines = table.grids["Claims"]
    claims = {line[1]: dict(zip(header, line, strict=True)) for line in lines}
    shown = ("ours", "interval", "p", "collapsed", "verdict")
    assert {name: " | ".join(claims[name][part] for part in shown) for name in CLAIMS} == CLAIMS
    assert claims["10K tokens equal 100K"]["family"] == "exploratory, 90%", "two one-sided tests at 5%"
    assert {name: claims[name]["family"] for name in claims if claims[name]["family"].startswith("primary")} == {
        "ACE against ICL, GEPA and DC on AppWorld": "primary, 95%",
        "ACE against ICL, MIPROv2, GEPA and DC": "primary, 95%",
        "ACE against the base on DDXPlus": "primary, 98.75%",
        "ACE against the base on BIRD-SQL": "primary, 98.33%",
    }
    notes = {
        "ACE against GEPA on DDXPlus": "rate of collapse 0 to 64%; collapsed runs count as the best of their cells; "
        "measured +30.6",
        "ACE against the base on DDXPlus": "the paper's size is within our interval",
        "ACE offline against GEPA": "the paper's size is outside our interval",
        "50K tokens equal 100K": "margin 5 points",
        "billed input of the test saved by the cache, GPT-5.1": "unknown: a backbone did not report it",
        "ACE against ICL, GEPA and DC on AppWorld": "cells without a finished run in the rows 1/ace_offline, "
        "1/ace_offline_gt, 1/gepa, 1/icl",
    }
    assert {name: claims[name]["notes"] for name in notes} == notes
    assert claims["ACE online against ReAct"]["seeds"] == "1 (seed 0)"
    assert claims["ACE offline against GEPA"]["paper"] == "+9.4"
    assert table.noted("Primary: the 4 claims that were chosen before any run")
    assert table.noted("17 of 20 intervals of differences may be wider than 95% needs")


def test_claims_of_a_rehearsal_say_nothing_about_the_paper(commands):
    table = commands.tables(CLAIMED)[f"The paper's claims: runs with embedded {SIMULATED}"]
    assert "paper" not in table.grids["Claims"][0]
    shown = table.line("Claims", "Cost", "rollouts saved offline against GEPA")
    assert shown.startswith(
        "4.7 | +75.0%† | all seeds equal | exploratory, 95% | - | 3 (seeds 0, 1, 2) | 0 of 6 | supported"
    )
    assert table.noted("Rehearsed: a stand-in answered, so the verdicts say nothing about the paper.")


def test_claims_in_csv_and_latex(commands):
    files = commands.files(CLAIMED)
    lines = {line["of"]: line for line in csv.DictReader(io.StringIO(files["table_claims_deepseek_v3_1.csv"]))}
    found = lines["ACE against the base on DDXPlus"]
    assert [found[name] for name in ("claim", "unit", "level", "family", "n", "seeds", "test", "verdict", "paper")] == [
        *("Medicine", "points", "0.9875", "primary", "36", "0 1 2", "t over seeds and samples", "supported", "15.0"),
    ]
    assert [round(float(found[name]), 2) for name in ("value", "low", "high", "p")] == [37.96, 3.62, 68.31, 0.01]
    tex = files["table_claims_deepseek_v3_1.tex"]
    assert "\\acegroup{7}{Agents} \\\\\n" in tex
    assert (
        "ACE online against ReAct & 4 & +17.1 & +43.1 & {}[+26.6, +57.8] & $<$0.004 & these playbooks only \\\\\n"
        in tex
    )
    assert "ACE against the base on DDXPlus (primary) & A.2 &" in tex


@pytest.mark.slow
def test_tables_of_a_rehearsed_field_compare_within_groups(commands):
    tables = commands.tables("REHEARSED table=field --with-paper")
    table = tables[f"Methods of the field (field): runs with embedded {SIMULATED}"]
    row = ("dc", "stream", "json", "none")
    assert table.grids["Results"][0][:4] == ["method", "adaptation", "scaffold", "labels"]
    assert table.cells(*row) == {"AppWorld TGC": "left out", "FiNER accuracy": "80.0 [49.0, 94.3]"}
    assert table.statistics("dc", "stream", "answer_alone", "none", "FiNER accuracy") == (
        "10 | 1 (seed 0) | 0 | - | +40.0 [-8.1, +74.7] | 57.9 | 0.576 | 0.104 | - | 4 (+4, -0) | "
        "one seed: about this playbook only; within noise of the base"
    )
    assert table.noted("Not planned: icl: feedback gold only; passes fit only (it shows reference answers)")
    assert table.noted("(AppWorld TGC): agents act in one form, as in another row.")
    costs = tables[f"Costs: Methods of the field (field): runs with embedded {SIMULATED}"]
    assert (
        costs.line("Costs of a run", *row, "FiNER accuracy", "adapt")
        == "10 | 10 | 10,000 | 1,000 | 0.5 | 0.1 | 12.5 | 35"
    )
    files = commands.files("REHEARSED table=field --with-paper")
    text = files["table_field_costs_embedded-simulated-sample_data.csv"]
    assert next(csv.DictReader(io.StringIO(text)))["tokens in"] == "10000.0"
