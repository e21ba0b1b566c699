"""Run folders as values: what real runs left behind, unfinished and damaged ones included."""

import json
import re
from dataclasses import replace
from statistics import fmean

import msgspec
import pytest

from ace_bench.core.errors import ConfigError, DataError, StoreError
from ace_bench.core.types import Fault, Stage, Usage
from ace_bench.report.evidence import (
    CallCosts,
    GradeScores,
    collapsed,
    evaluates_other_context,
    points_of,
    sharpest_fall,
    spent,
)
from ace_bench.report.frames import load_frames
from ace_bench.report.histories import history
from ace_bench.report.records import check_comparable, find_runs, marks_of, read_run
from ace_bench.report.statistics import mean_score
from ace_bench.store.calls import restore_calls, stored_calls
from ace_bench.store.lines import SEAL
from ace_bench.store.results import CHECKSUMS
from tests.launching import launch
from tests.outcomes import outcomes
from tests.report.page.runs import changed, copied, permissions_count

SMALL = ("task=finer", "task.source=sample", "limit=6", "mode.epochs=1")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A base, an offline, an online and a stopped run."""
    folder = tmp_path_factory.mktemp("results")
    launch(folder, *SMALL, "method=base")
    launch(folder, *SMALL)
    launch(folder, "mode=online", *SMALL[:3], "mode.window=3")
    launch(folder, *SMALL, "seed=1", "budget.calls=9")
    return folder


def only(results, **wanted):
    runs = find_runs(results).runs
    (run,) = [run for run in runs if all(getattr(run, name) == value for name, value in wanted.items())]
    return run


def test_finished_and_unfinished_runs_are_found_with_what_they_are(results):
    found = find_runs(results)
    assert found.damaged == ()
    assert [(run.method, run.mode, run.seed, run.state) for run in found.runs] == [
        ("ace", "offline", 0, "finished"),
        ("ace", "offline", 1, "stopped"),
        ("ace", "online", 0, "finished"),
        ("base", "offline", 0, "finished"),
    ]
    stopped = only(results, state="stopped")
    assert not stopped.finished
    assert "budget.calls" in stopped.reason
    assert [stopped.value(metric) for metric in ("accuracy", "fall.before.tokens", "episodes.n")] == [None] * 3
    assert not any(run.comparable for run in found.runs), "the embedded backbone is no model"
    assert only(results, method="base").settings["limit"] == 6


@pytest.mark.parametrize(
    "wanted", [{"method": "base"}, {"method": "ace", "mode": "offline", "seed": 0}, {"mode": "online"}]
)
def test_points_are_those_that_the_metrics_rest_on(wanted, results):
    run = only(results, **wanted)
    points = run.points("accuracy")
    assert len(points) == 6
    assert mean_score({0: points}) == pytest.approx(run.value("accuracy"), abs=1e-3)
    assert run.value("accuracy") == run.metrics["headline"]["after"]
    assert run.points("no such metric") is None
    assert run.value("no such metric") is None


def test_spending_by_role_adds_up_to_the_metrics(results):
    run = only(results, method="ace", mode="offline", seed=0)
    for stage in ("adapt", "evaluate"):
        for what in ("in", "out"):
            assert run.value(f"spent.{stage}.all.all.{what}") == run.value(f"tokens.{stage}.{what}") > 0
    for role in ("generator", "reflector", "curator"):
        assert run.value(f"spent.adapt.{role}.train.calls") == run.value(f"calls.adapt.{role}") > 0
    assert run.value("spent.adapt.all.all.samples") == 6
    assert run.value("spent.adapt.all.train.rollouts") == run.value("rollouts.adapt") > 6
    with pytest.raises(ConfigError, match="names the unknown 'dollars'; use in, out, calls, rollouts, samples"):
        run.value("spent.adapt.all.all.dollars")


def call(session, role="generator", **about):
    usage = Usage(prompt=10, completion=1, cached=None, usd=None)
    return CallCosts(stage=Stage(session.partition("/")[0]), role=role, session=session, usage=usage, **about)


LOST = Fault(owner="backbone", kind="no_reply", message="")
CALLS = [
    call("adapt/epoch0/finer-train-0001/0123456789ab/0"),
    call("adapt/epoch0/finer-train-0001/0123456789ab/0", "reflector"),
    call("adapt/epoch0/finer-train-0001/0123456789ab/1", replayed=True),
    call("adapt/epoch0/finer-val-0002/0123456789ab/0"),
    call("adapt/step0", "curator", fault=LOST),
    call("evaluate/finer-test-0001/0123456789ab/0"),
]


SPENT = [
    "adapt.all.all.in",
    "adapt.all.all.out",
    "adapt.all.all.calls",
    "adapt.all.all.samples",
    "adapt.all.train.calls",
    "adapt.all.train.in",
    "adapt.all.train.rollouts",
    "adapt.all.not_val.in",
    "adapt.all.not_val.samples",
    "adapt.all.val.calls",
    "adapt.reflector.all.calls",
    "adapt.curator.all.calls",
    "adapt.curator.all.in",
    "evaluate.all.test.in",
    "evaluate.all.train.in",
    "adapt.generator.all.rollouts",
]


def test_what_was_spent_is_summed_over_calls_by_stage_role_and_split(snapshot):
    assert outcomes(lambda wanted: str(spent(CALLS, wanted)), SPENT) == snapshot


def test_a_call_evaluates_another_context_by_the_digest_in_its_session():
    sessions = {
        "evaluate/finer-test-0001/0123456789ab/0": False, "evaluate/finer-test-0001/ffffffffffff/0": True,
        "evaluate/finer-val-0001/ffffffffffff/0": False, "adapt/finer-test-0001/ffffffffffff/0": False,
        "evaluate/finer-test-0001": False, "evaluate/all": False,
    }  # fmt: skip
    found = {one: evaluates_other_context(call(one), "test", "0123456789ab" + 52 * "c") for one in sessions}
    assert found == sessions


def flat_lines(folder, name, kind=None):
    """The lines of a file of a run, as a frame shows them: nested values under names with one dot."""
    for line in map(json.loads, (folder / name).read_text().splitlines()):
        if line.get("kind") == kind:
            fields = {key: value for key, value in line.items() if key not in (*SEAL, "request")}
            nested = {key: value for key, value in fields.items() if isinstance(value, dict) and value}
            inner = {f"{key}.{name}": value for key, part in nested.items() for name, value in part.items()}
            yield {key: value for key, value in fields.items() if key not in nested} | inner


def test_frames_hold_all_lines_and_say_which_run_a_row_is_from(results):
    frames, runs = load_frames(results, prompts=True), find_runs(results).runs
    one, alone = load_frames(runs[0].folder), load_frames([run.folder for run in runs])
    files = {"rollouts": ("journal.jsonl", "rollout"), "steps": ("journal.jsonl", "step"), "calls": ("calls.jsonl",)}
    for name, file in files.items():
        frame = getattr(frames, name)
        about = [
            {"run": f"{run.method} · {run.mode} · seed {run.seed}", "method": run.method, "mode": run.mode,
             "seed": run.seed} for run in runs
        ]  # fmt: skip
        lines = [names | line for names, run in zip(about, runs, strict=True) for line in flat_lines(run.folder, *file)]
        assert list(frame.columns[:4]) == list(about[0])
        rows = frame.to_dict("records")
        assert [{key: row[key] for key in line} for row, line in zip(rows, lines, strict=True)] == lines
        assert len(getattr(one, name)) == len([*flat_lines(runs[0].folder, *file)])
        assert not {"run", "seed", "messages"} & {*getattr(one, name)}
        assert len(getattr(alone, name)) == len(frame)
    sent = [call.request for run in runs for call in restore_calls(stored_calls(run.folder).entries)]
    shown = frames.calls[["messages", "schema", "settings"]].to_dict("records")
    assert shown == [json.loads(msgspec.json.encode(request)) for request in sent]


def test_frames_leave_out_what_is_damaged_with_a_warning_where_they_were_asked_for(results, tmp_path):
    folder = copied(only(results, mode="offline", method="ace", seed=0).folder, tmp_path / "seed0")
    copied(folder, tmp_path / "broken").joinpath("identity.json").write_text("{")
    calls = [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]
    first = next(filter(None, (call["request"]["base"] for call in calls)))
    for name, damaged in (("journal.jsonl", '"rollout"'), ("calls.jsonl", f"/{first}/")):
        before, line, after = (folder / name).read_text().partition(damaged)
        (folder / name).write_text(before + '"' + line + after)
    with pytest.warns(UserWarning, match="left out") as warned:
        frames = load_frames(tmp_path, prompts=True)
    assert {warning.filename for warning in warned} == {__file__}
    places = (
        f"{tmp_path}/broken/identity.json is damaged",
        f"{folder}/journal.jsonl: line",
        f"{folder}/calls.jsonl: line",
    )
    for warning, place in zip(warned, places, strict=True):
        assert re.fullmatch(f"{place} .*: left out", str(warning.message))
    assert len(frames.calls) == len(calls) - 1
    assert frames.calls["messages"].isna().any(), "a prompt that begins as a damaged one does"
    with pytest.raises(StoreError, match=r"no run folder .* in an empty list; give the folder that a run printed"):
        load_frames([])


def test_a_setting_with_the_name_of_a_column_is_shown_by_its_path(results, tmp_path):
    for name in "ab":
        folder = copied(only(results, method="base").folder, tmp_path / name)
        identity = json.loads((folder / "identity.json").read_text())
        identity["settings"]["mode"]["context"] = name
        (folder / "identity.json").write_text(json.dumps(identity))
        metrics = json.loads((folder / "metrics.json").read_text()) | {"digest": name * 64}
        (folder / "metrics.json").write_text(json.dumps(metrics))
        (folder / CHECKSUMS).unlink()
    frames = load_frames(tmp_path)
    assert list(frames.rollouts["run"].unique()) == ["context=a", "context=b"]
    assert list(frames.rollouts["mode.context"].unique()) == list(frames.calls["context"].unique()) == ["a", "b"]
    assert set(frames.rollouts["context"].str.len()) == {64}


def test_what_the_test_took_leaves_out_the_evaluation_before_adaptation(results):
    run = only(results, method="ace", mode="offline", seed=0)
    assert run.metrics["headline"]["before"] is not None
    assert run.value("spent.tested.all.test.calls") == 6 == run.value("spent.evaluate.all.test.calls") / 2
    assert run.value("spent.evaluate.all.test.calls/n") == 2.0
    assert (run.value("episodes.n"), run.value("long_episodes.n")) == (6, 0), "answered at once: no long episodes"
    assert run.value("n/faults") is run.value("n/unknown") is run.value("unknown/n") is None
    base = only(results, method="base")
    assert base.value("spent.tested.all.test.in") == base.value("spent.evaluate.all.test.in") > 0


def test_unknown_tokens_are_not_zero(results, tmp_path):
    folder = copied(only(results, method="base").folder, tmp_path / "seed0")
    changed(folder, "calls.jsonl", lambda line: line["usage"].update(prompt=None))
    run = read_run(folder)
    assert run.value("spent.evaluate.all.all.in") is None
    assert run.value("spent.evaluate.all.all.out") > 0


def test_scenarios_count_if_all_their_tasks_are_right_and_levels_by_their_own():
    given = [(True, "a", "simple"), (True, "a", "hard"), (True, "b", "simple"), (False, "b", "hard")]
    grades = {
        f"s{n}": GradeScores(score=float(right), correct=right, group=group, detail={level: 1.0, "judge": float(right)})
        for n, (right, group, level) in enumerate(given)
    }

    def mean(metric):
        return fmean(point.score for point in points_of(grades, metric, "tgc").values())

    assert (mean("tgc"), mean("sgc"), mean("judge_simple"), mean("judge_hard")) == (0.75, 0.5, 1.0, 0.5)
    assert points_of(grades, "judge_moderate", "tgc") == {}


def test_contexts_are_made_again_step_by_step(results):
    run = only(results, method="ace", mode="offline", seed=0)
    contexts = list(history(run.folder))
    assert len(contexts) == 1 + run.metrics["steps"] == 7
    assert contexts[0].size == 0
    assert contexts[-1].digest == run.metrics["context"]["digest"]
    final = json.loads((run.folder / "contexts" / "final.json").read_text())
    assert json.loads(json.dumps(contexts[-1].dump())) == final


@pytest.mark.parametrize("content", ['{"kind": "tablet"}', "{"])
def test_a_history_that_cannot_be_made_again_says_so(content, results, tmp_path):
    folder = copied(only(results, method="ace", mode="offline", seed=0).folder, tmp_path / "seed0")
    (folder / "contexts" / "initial.json").write_text(content)
    with pytest.raises(StoreError, match="repeat the"):
        list(history(folder))


FALLS = [
    "sizes:",
    "sizes: 5",
    "sizes: 1 2 2",
    "sizes: 9 8 8 2 9 8",
    "sizes: 9 0 9 0",
    "sizes: 10 6 5 2",
    "sizes: 10 5",
    "sizes: 10 6",
    "sizes: 10 6 4 1",
    "sizes: 0 0",
]


def test_a_collapse_leaves_half_of_a_context_that_was_half_as_large_as_the_largest(snapshot):
    def answer(line):
        sizes = [int(size) for size in line.split()[1:]]
        return f"sharpest fall: {sharpest_fall(sizes)}, collapsed: {collapsed(sizes)}"

    assert outcomes(answer, FALLS) == snapshot


def test_a_collapse_is_told_by_the_sizes_around_it(results, tmp_path):
    run = only(results, method="ace", mode="offline", seed=0)
    assert run.value("fall.before.tokens") is None, "this playbook only grew"
    folder = copied(run.folder, tmp_path / "seed0")
    sizes = iter([100, 900, 18_282, 122, 300, 250])
    changed(folder, "journal.jsonl", lambda line: line["kind"] == "step" and line.update(context_tokens=next(sizes)))
    run = read_run(folder)
    assert (run.value("fall.before.tokens"), run.value("fall.after.tokens")) == (18_282, 122)


def test_repetitions_of_a_seed_are_told_apart(results, tmp_path):
    attempts = {"seed0": 1, "seed0-2": 2, "copied by hand": 1}
    for name in attempts:
        copied(only(results, method="base").folder, tmp_path / name)
    found = find_runs(tmp_path)
    assert {run.folder.name: run.attempt for run in (*found.runs, *found.copies)} == attempts
    assert [run.folder.name for run in found.copies] == ["seed0"]


DAMAGED = [
    '{"metrics.json": "{"}',
    '{"metrics.json": "[]"}',
    '{"metrics.json": "{\\"task\\": \\"finer\\"}"}',
    '{"metrics.json": "\\u00ff\\u00fe"}',
    '{"metrics.json": null, "environment.json": null}',
    '{"metrics.json": null, "status.json": null}',
]


def test_a_damaged_folder_is_listed_and_spoils_nothing_else(snapshot, results, tmp_path):
    """The questions are files with their contents as Latin-1, or null where they are missing."""

    def answer(line):
        root = copied(results, tmp_path / str(len([*tmp_path.iterdir()])))
        broken = only(root, method="base").folder
        (broken / CHECKSUMS).unlink()
        for name, content in json.loads(line).items():
            (broken / name).unlink() if content is None else (broken / name).write_bytes(content.encode("latin-1"))
        found = find_runs(root)
        assert [run.method for run in found.runs] == ["ace"] * 3
        (damaged,) = found.damaged
        assert damaged.folder == broken
        return damaged.reason.replace(str(broken), "FOLDER")

    assert outcomes(answer, DAMAGED) == snapshot


def test_a_damaged_journal_matters_only_where_it_is_read_and_a_torn_end_never(results, tmp_path):
    run = read_run(copied(only(results, method="base").folder, tmp_path / "seed0"))
    changed(run.folder, "journal.jsonl")
    journal = run.folder / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"kind": "rollout", "st')
    assert len(run.points("accuracy")) == 6
    journal.write_bytes(b"{broken}\n" + whole)
    (again,) = find_runs(tmp_path).runs
    with pytest.raises(StoreError, match="line 1 is damaged"):
        again.points("accuracy")


def test_a_folder_that_may_not_be_entered_is_named_and_one_that_is_missing_has_no_runs(tmp_path):
    assert find_runs(tmp_path / "nothing").runs == ()
    (tmp_path / "theirs").mkdir(mode=0)
    with permissions_count():
        found = find_runs(tmp_path)
    (tmp_path / "theirs").chmod(0o700)
    assert [damaged.reason for damaged in found.damaged] == [
        f"{tmp_path / 'theirs'} cannot be read (Permission denied); ask its owner to open it"
    ]


def test_scores_of_another_metric_other_data_or_other_models_are_not_compared(results):
    run = only(results, method="base")
    check_comparable(run, run)
    judged = {**run.metrics, "headline": {**run.metrics["headline"], "metric": "judge"}}
    for change, differ in (
        ({"metrics": judged}, r"the metric \(judge, accuracy\)"),
        ({"source": "real"}, r"the data \(real, sample\)"),
        ({"simulated": False}, r"who answered \(a model, a stand-in\)"),
    ):
        with pytest.raises(DataError, match=f"the runs differ in {differ}; compare runs that have the same"):
            check_comparable(replace(run, **change), run)


def test_runs_that_cannot_be_compared_with_published_numbers_are_marked():
    rest = ": not comparable with published numbers]"
    marks = [marks_of(simulated=simulated, source=source) for simulated in (0, 1) for source in ("real", "sample")]
    assert marks == ["", f"[sample data{rest}", f"[simulated{rest}", f"[simulated, sample data{rest}"]
