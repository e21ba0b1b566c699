"""The paper's results as experiments: every number has a run behind it, and every run can be composed."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from ace_bench.core.embedders import default_embedder
from ace_bench.core.errors import DataError
from ace_bench.core.identity import identity_settings
from ace_bench.report.conditions import Variant
from ace_bench.report.configurations import Configurations
from ace_bench.report.experiments import load_experiments
from ace_bench.report.matching import ModelNames, Runs, SimilarRuns
from ace_bench.report.narrowing import with_parts
from ace_bench.report.paper.measures import check_metric
from ace_bench.report.planned import Need, PlannedRun
from ace_bench.report.records import find_runs
from ace_bench.store.results import CHECKSUMS
from tests.launching import composed, launch
from tests.report.paper.conftest import EXPERIMENTS, compose, refs
from tests.report.paper.planned import Planner

REFS = {ref for table in EXPERIMENTS.tables.values() for ref in refs(table)}


def explained(ref):
    """In how many ways an experiment says where a number comes from: a run, other numbers, or why from none."""
    table, row, column = ref.split("/")
    experiment = EXPERIMENTS.table(table)
    spec, unreachable = experiment.columns[column], row in experiment.not_reproducible
    measured = bool(spec.metric) and not unreachable
    first = f"{experiment.rows[row].same_as}" if spec.per else f"{table}/{row}"
    derived = not measured and spec.derived and all(explained(f"{first}/{part}") for part in spec.per or spec.mean_of)
    return measured + derived + unreachable


def test_every_number_of_the_paper_is_measured_or_derived_or_said_to_be_out_of_reach_exactly_once():
    assert {ref: explained(ref) for ref in REFS if explained(ref) != 1} == {}
    measured = {f"{name}/{row}/{column}" for name in EXPERIMENTS.by_name for row, column in EXPERIMENTS.cells(name)}
    reasons = {f"{e.paper}/{row}" for e in EXPERIMENTS.by_name.values() for row in e.not_reproducible}
    assert reasons == {f"figure_5/{row}" for row in EXPERIMENTS.table("figure_5").rows}
    assert len(measured & REFS) == 262


def test_labels_agree_with_the_papers_marks():
    for experiment in EXPERIMENTS.by_name.values():
        for name, line in experiment.rows.items():
            if line.gt is not None:
                assert ("labels=gold" in [*experiment.common, *line.overrides]) is line.gt, name


def test_results_that_the_paper_repeats_share_their_runs():
    def run(ref):
        return EXPERIMENTS.run(*ref.split("/"))

    assert (
        run("1/ace_offline_gt/normal_tgc") == run("3/ace_offline_gt/normal_sgc") == run("18/ace_offline_gt/normal_tgc")
    )
    assert (
        run("1/ace_online/challenge_sgc") == run("3/ace_online/challenge_tgc") != run("3/ace_online_cold/challenge_sgc")
    )
    assert run("12/ace_curator/input") == run("14/ace/output")
    assert run("2/ace_offline_gt/finer") == run("16/deepseek_v3_1/finer") == run("17/never/finer")


def test_an_adaptation_is_paid_once_for_both_test_splits_and_before_what_needs_it():
    challenge = EXPERIMENTS.run("1", "ace_offline_gt", "challenge_tgc")
    assert "mode=evaluate" in challenge.overrides
    (need,) = challenge.needs
    assert (need.setting, need.run) == ("mode.context", EXPERIMENTS.run("1", "ace_offline_gt", "normal_tgc"))
    warm = EXPERIMENTS.run("1", "ace_online", "challenge_tgc")
    assert [(need.setting, need.run) for need in warm.needs] == [
        ("method.initial", EXPERIMENTS.run("1", "ace_offline", "normal_tgc"))
    ]
    runs = EXPERIMENTS.runs("1")
    assert all(runs.index(need.run) < place for place, run in enumerate(runs) for need in run.needs)
    assert len(runs) == len(set(runs))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "field" else ())
        for name, experiment in EXPERIMENTS.by_name.items()
        if experiment.rows
    ],
)
def test_every_run_composes(name):
    field = with_parts(EXPERIMENTS, ["field"], {"tasks": ["finer"]})  # it has the same methods on all tasks
    for run in field.runs(name):
        assert compose([*run.overrides, *(f"{need.setting}=some/file.json" for need in run.needs)])


SAMPLE = ("task=finer", "task.source=sample", "limit=4", "method=ace")
OFFLINE = PlannedRun(overrides=(*SAMPLE, "mode=offline", "mode.before=false", "mode.epochs=1"))


def find(results, *extra, plan=OFFLINE, seed=0):
    """The folder of the run of a plan, with more settings; none without one."""
    found = Runs(find_runs(results).runs, Configurations(compose)).find(plan, seed=seed, extra=extra)
    return found and found.folder


def test_a_planned_run_is_found_again_whatever_its_places_and_budget(tmp_path):
    assert find(tmp_path) is None
    done = launch(tmp_path, *OFFLINE.overrides, "concurrency=2", "budget.calls=5000", "name=paper")
    assert find(tmp_path) == done.folder
    assert find(tmp_path, seed=1) is None
    others = ("method.refiner.threshold=0.5", "labels=none", "backbone=gpt_5_1")
    assert [find(tmp_path, other) for other in others] == [None] * 3
    again = launch(tmp_path, *OFFLINE.overrides, "name=paper", "resume=false")
    assert find(tmp_path) == again.folder != done.folder


def test_a_run_that_was_also_evaluated_before_adaptation_has_all_that_is_asked_of_one_that_was_not(tmp_path):
    more = launch(tmp_path, *OFFLINE.overrides, "mode.before=true")
    assert more.metrics["headline"]["before"] is not None
    assert find(tmp_path) == more.folder
    plain = launch(tmp_path, *OFFLINE.overrides)
    assert find(tmp_path) == plain.folder, "the very one that is asked for"
    assert find(tmp_path, "mode.before=true") == more.folder
    shutil.rmtree(more.folder)
    assert find(tmp_path, "mode.before=true") is None, "it lacks what is asked"


def test_a_run_on_other_data_is_not_the_planned_one(tmp_path):
    known, other = (f"task.sample_data=pkg://ace_bench/tasks/samples/{name}" for name in ("qa", "two_hop"))
    plan, like = (PlannedRun(overrides=("task=qa", "method=base", "mode=offline", data)) for data in (known, other))
    done = launch(tmp_path, *plan.overrides, "limit=1")
    assert find(tmp_path, "limit=1", plan=plan) == done.folder
    assert find(tmp_path, "limit=1", plan=like) is None
    assert find(tmp_path, "limit=1", "task.source=real", plan=plan) is None
    shown = SimilarRuns(find_runs(tmp_path).runs, (), Configurations(compose), ModelNames((), compose))
    longer = Variant(backbone="embedded", name="embedded", overrides=("limit=2",), simulated=True, source="sample")
    other_form = replace(longer, overrides=("limit=1", "agent.scaffold=json"))
    found, none = (shown.find(one, other_form, lambda *_: None) for one in (plan, like))
    assert ([run.folder for run in found.runs], found.differs) == ([done.folder], ("agent.scaffold=own",))
    assert not none.runs
    assert not shown.find(plan, longer, lambda *_: None).runs, "fewer questions are another experiment"


def test_a_models_run_on_sample_data_is_not_taken_for_one_on_real_data(tmp_path):
    plan, model = PlannedRun(overrides=("task=finer", "method=base", "mode=offline")), "backbone=gpt_5_1"
    Planner(tmp_path, compose, source="sample").make(plan, [1.0], extra=(model, "task.source=sample"))
    assert find(tmp_path, model, "task.source=sample", plan=plan)
    assert find(tmp_path, model, plan=plan) is None


def test_a_run_of_a_version_without_some_setting_is_taken_to_have_had_its_default(tmp_path):
    done = launch(tmp_path, *OFFLINE.overrides)
    (done.folder / CHECKSUMS).unlink()
    file = done.folder / "identity.json"
    written = OmegaConf.create(json.loads(file.read_text()))
    for name in ("method.retrieval", "method.refiner.harmful_min", "mode.batch_size", "agent.scaffold"):
        part, _, key = name.rpartition(".")
        del OmegaConf.select(written.settings, part)[key]
    file.write_text(json.dumps(OmegaConf.to_container(written)))
    assert find(tmp_path) == done.folder
    assert find(tmp_path, "method.refiner.threshold=0.5") is None, "its version could not do that"


def test_what_a_run_needs_comes_first_and_is_handed_on(tmp_path):
    frozen = PlannedRun(overrides=(*SAMPLE, "mode=evaluate"), needs=(Need(setting="mode.context", run=OFFLINE),))
    assert Runs((), Configurations(compose)).overrides(frozen, seed=0) is None
    first = launch(tmp_path, *OFFLINE.overrides)
    written = json.loads((first.folder / "identity.json").read_text())
    assert written["settings"] == identity_settings(compose([*OFFLINE.overrides, "backbone=embedded"]))
    overrides = Runs(find_runs(tmp_path).runs, Configurations(compose)).overrides(frozen, seed=0)
    assert find(tmp_path, plan=frozen) is None
    done = launch(tmp_path, *overrides)
    moved = tmp_path.parent / f"{tmp_path.name}, moved = 'elsewhere'"
    shutil.move(tmp_path, moved)
    assert find(moved, plan=frozen) == moved / done.folder.relative_to(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "overrides",
    [
        ["task=finer", "method=ace", "mode=online", "labels=none", "limit={train: 3, val: 2}"],
        ["task=finer", "backbone=vllm", "+backbone.extra_body.chat_template_kwargs={thinking: false}"],
        ["mode=evaluate", "method=frozen", "mode.context=some/final.json"],
        ["method=ace_rich"],
        ["tracker=wandb", "method=dc", "mode=online", "mode.window=2"],
        ["task=formula", "backbone=gpt_5_1", "backbone@roles.reflector=gpt_oss_120b", "method.reflector=off"],
    ],
)
def test_quick_composition_is_hydras(overrides):
    config = composed(*overrides)[0]
    config.embedder = default_embedder(simulated=config.backbone.get("name") == "embedded")
    assert compose(overrides) == OmegaConf.to_container(config, resolve=True)


def test_an_unknown_experiment_lists_those_there_are():
    with pytest.raises(DataError, match=r"no experiment 22; there are .*4a"):
        EXPERIMENTS.runs("22")


def test_a_run_on_a_server_of_ones_own_has_no_settings_of_a_server_that_runs_start():
    chosen = {"task": "finer", "method": "base", "mode": "offline", "backbone": "smollm2"}
    own = ("backbone.launch=false", "backbone.url=http://localhost:8000", "backbone.model=smollm2")
    settings = identity_settings(compose([*(f"{group}={name}" for group, name in chosen.items()), *own]))
    assert "server" not in settings["backbone"]
    run = SimpleNamespace(**chosen, older=False, identity=settings, folder=Path())
    assert Configurations(compose).of_run(run) == settings


def leaves(record, path=""):
    for name, value in record.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{path}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{path}{name}"


def test_every_number_of_a_run_is_a_known_metric(tmp_path):
    run = launch(tmp_path, "task=formula", "task.source=sample", "method=ace", "limit=2", "mode.epochs=1")
    besides = (
        "schema",
        "seed",
        "steps",
        "splits.",
        "as_authors.",
        "role_quality.",
        "data.",
        "models.",
        "thoughts.",
        "cache.servers",
    )
    for path in leaves(run.metrics):
        if not path.startswith(besides):
            check_metric(path, "here")


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("{unit: bulets}", "column one: there is no unit bulets; did you mean bullets?"),
        ("{unit: count, metric: context.itemz}", "there is no metric context.itemz; below context did you mean items?"),
        ("{unit: count, metric: contxt.items}", "there is no metric contxt.items; did you mean context?"),
        ("{unit: count, metric: spent.adapt.all.in}", "metric spent.adapt.all.in has 4 parts, and those of spent 5"),
        ("{unit: count, metric: usd.total/timing.adapt.wal_s}", "below timing.adapt did you mean wall_s?"),
    ],
)
def test_units_and_metrics_that_no_run_has_are_refused_when_the_file_is_read(column, said, tmp_path):
    file = tmp_path / "experiments" / "seed_009.yaml"
    file.parent.mkdir()
    file.write_text(f"title: x\nmodel: embedded\ncolumns:\n  one: {column}\nrows: {{}}\n")
    with pytest.raises(DataError) as refused:
        load_experiments(tmp_path)
    assert said in str(refused.value)
