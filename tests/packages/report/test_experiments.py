"""The paper's results as experiments: every number has a run behind it, and every run can be composed."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from ace_bench.core.embedders import default_embedder
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.core.identity import identity_settings
from ace_bench.core.resources import config_folders
from ace_bench.report.planned import Need, PlannedRun
from ace_bench.report.records import find_runs
from ace_bench.runners.planning import Composer
from ace_bench.store.results import CHECKSUMS
from ace_report.conditions import Variant
from ace_report.experiments import load_experiments
from ace_report.matching import Runs, settings_with_defaults
from ace_report.tables.similar import SimilarRuns
from tests.launching import ROOT, composed, launch, options
from tests.packages.report.contradictions import refs
from tests.packages.report.planned import Planner

FOLDER = ROOT / "packages" / "ace_report" / "paper" / "data"
EXPERIMENTS = load_experiments()
REFS = {ref for table in EXPERIMENTS.tables.values() for ref in refs(table)}

compose = Composer(config_folders())


def explained(ref):
    """The experiments that say where a number of the paper comes from: a run, other numbers, or why from none."""
    table, row, column = ref.split("/")
    spec = EXPERIMENTS.table(table).columns[column]
    found = []
    for name, experiment in EXPERIMENTS.by_name.items():
        if experiment.paper == table:
            measured = row in experiment.rows and spec.metric and row not in experiment.not_reproducible
            parts = [f"{table}/{row}/{part}" for part in spec.mean_of]
            if spec.per:
                parts = [f"{EXPERIMENTS.table(table).rows[row].same_as}/{part}" for part in spec.per]
            derived = not measured and spec.derived and all(explained(part) for part in parts)
            found += [name] * (bool(measured) + derived + (row in experiment.not_reproducible))
    return found


def test_every_number_of_the_paper_is_measured_or_derived_or_said_to_be_out_of_reach_exactly_once():
    assert {ref: explained(ref) for ref in REFS if len(explained(ref)) != 1} == {}
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


def known(run: PlannedRun) -> bool:
    """Whether the options that a run names exist by now."""
    for override in run.overrides:
        key, _, value = override.partition("=")
        if key in ("task", "method") and value not in options(key):
            return False
    return True


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "field" else ())
        for name, experiment in EXPERIMENTS.by_name.items()
        if experiment.rows
    ],
)
def test_every_run_composes(name):
    for run in EXPERIMENTS.narrowed({"tasks": ("finer",)}).runs(
        name
    ):  # the methods of the field are the same on all tasks
        if known(run):
            files = [f"{need.setting}=some/contexts/{need.context}.json" for need in run.needs]
            config = compose([*run.overrides, *files])
            assert config["mode"]["_target_"]


class Scratch:
    """Experiments of one small table's shape, on sample data."""

    RUN = ("task=finer", "task.source=sample", "mode.before=false", "limit=4")

    def __init__(self, results: Path):
        self.results = results
        self.offline = PlannedRun(overrides=(*self.RUN, "method=ace", "mode=offline", "mode.epochs=1"))

    def runs(self):
        return Runs(find_runs(self.results).runs, compose)


@pytest.mark.slow
def test_a_planned_run_is_found_again_whatever_its_places_and_budget(tmp_path):
    scratch = Scratch(tmp_path)
    assert scratch.runs().find(scratch.offline, seed=0) is None
    done = launch(tmp_path, *scratch.offline.overrides, "concurrency=2", "budget.calls=5000", "name=paper")
    assert scratch.runs().find(scratch.offline, seed=0).folder == done.folder
    assert scratch.runs().find(scratch.offline, seed=1) is None
    assert scratch.runs().find(scratch.offline, seed=0, extra=["method.refiner.threshold=0.5"]) is None
    assert scratch.runs().find(scratch.offline, seed=0, extra=["labels=none"]) is None
    assert scratch.runs().find(scratch.offline, seed=0, extra=["backbone=gpt_5_1"]) is None
    again = launch(tmp_path, *scratch.offline.overrides, "name=paper", "resume=false")
    assert scratch.runs().find(scratch.offline, seed=0).folder == again.folder != done.folder


def test_a_run_folder_holds_what_tables_compare_with_their_plan(tmp_path):
    scratch = Scratch(tmp_path)
    done = launch(tmp_path, *scratch.offline.overrides)
    written = json.loads((done.folder / "identity.json").read_text())
    assert written["settings"] == identity_settings(compose([*scratch.offline.overrides, "backbone=embedded"]))
    assert done.metrics["digest"] == written["digest"]
    assert done.folder.parent.name == written["digest"][:12]


def test_a_run_that_was_also_evaluated_before_adaptation_has_all_that_is_asked_of_one_that_was_not(tmp_path):
    scratch = Scratch(tmp_path)
    more = launch(tmp_path, *scratch.offline.overrides, "mode.before=true")
    assert more.metrics["headline"]["before"] is not None
    assert scratch.runs().find(scratch.offline, seed=0).folder == more.folder
    plain = launch(tmp_path, *scratch.offline.overrides)
    assert scratch.runs().find(scratch.offline, seed=0).folder == plain.folder, "the very one that is asked for"
    assert scratch.runs().find(scratch.offline, seed=0, extra=["mode.before=true"]).folder == more.folder
    shutil.rmtree(more.folder)
    assert scratch.runs().find(scratch.offline, seed=0, extra=["mode.before=true"]) is None, "it lacks what is asked"


def test_a_run_on_other_data_is_not_the_planned_one(tmp_path):
    known, other = (f"task.sample_data=pkg://ace_rehearsal/samples/{name}" for name in ("qa", "two_hop"))
    plan, like = (PlannedRun(overrides=("task=qa", "method=base", "mode=offline", data)) for data in (known, other))
    done, runs = launch(tmp_path, *plan.overrides, "limit=1"), Scratch(tmp_path).runs()
    assert runs.find(plan, seed=0, extra=["limit=1"]).folder == done.folder
    assert runs.find(like, seed=0, extra=["limit=1"]) is None
    assert runs.find(plan, seed=0, extra=["limit=1", "task.source=real"]) is None
    shown = SimilarRuns(find_runs(tmp_path).runs, (), compose)
    longer = Variant(backbone="embedded", name="embedded", overrides=("limit=2",), simulated=True, source="sample")
    found, none = (shown.find(one, longer, lambda *_: None) for one in (plan, like))
    assert ([run.folder for run in found.runs], found.differs) == ([done.folder], ("limit=1",))
    assert none.runs == ()


def test_a_models_run_on_sample_data_is_not_taken_for_one_on_real_data(tmp_path):
    plan, model = PlannedRun(overrides=("task=finer", "method=base", "mode=offline")), "backbone=gpt_5_1"
    Planner(tmp_path, compose, source="sample").make(plan, [1.0], extra=(model, "task.source=sample"))
    runs = Scratch(tmp_path).runs()
    assert runs.find(plan, seed=0, extra=[model, "task.source=sample"])
    assert runs.find(plan, seed=0, extra=[model]) is None


def test_a_run_of_a_version_without_some_setting_is_taken_to_have_had_its_default(tmp_path):
    scratch = Scratch(tmp_path)
    done = launch(tmp_path, *scratch.offline.overrides)
    (done.folder / CHECKSUMS).unlink()
    file = done.folder / "identity.json"
    written = OmegaConf.create(json.loads(file.read_text()))
    for name in ("method.retrieval", "method.refiner.harmful_min", "mode.batch_size", "agent.sandbox"):
        part, _, key = name.rpartition(".")
        del OmegaConf.select(written.settings, part)[key]
    file.write_text(json.dumps(OmegaConf.to_container(written)))
    assert scratch.runs().find(scratch.offline, seed=0).folder == done.folder
    other = ["method.refiner.threshold=0.5"]
    assert scratch.runs().find(scratch.offline, seed=0, extra=other) is None, "its version could not do that"


def test_what_a_run_needs_comes_first_and_is_handed_on(tmp_path):
    scratch = Scratch(tmp_path)
    frozen = PlannedRun(
        overrides=("task=finer", "task.source=sample", "limit=4", "method=ace", "mode=evaluate"),
        needs=(Need(setting="mode.context", run=scratch.offline),),
    )
    assert scratch.runs().overrides(frozen, seed=0) is None
    launch(tmp_path, *scratch.offline.overrides)
    overrides = scratch.runs().overrides(frozen, seed=0)
    assert scratch.runs().find(frozen, seed=0) is None
    done = launch(tmp_path, *overrides)
    moved = tmp_path.parent / f"{tmp_path.name}, moved = 'elsewhere'"
    shutil.move(tmp_path, moved)
    scratch.results = moved
    assert scratch.runs().find(frozen, seed=0).folder == moved / done.folder.relative_to(tmp_path)


@pytest.mark.slow
def test_only_runs_that_restate_a_default_are_taken_for_each_other():
    alike = {}
    for name in EXPERIMENTS.by_name:
        for run in EXPERIMENTS.runs(name):
            if known(run) and not run.needs:
                alike.setdefault(digest_of(identity_settings(compose(run.overrides))), set()).add(run)
    for runs in alike.values():
        first, *others = runs
        for other in others:
            restated = set(first.overrides) ^ set(other.overrides)
            assert restated <= {"labels=gold", "method.max_reflection_rounds=5", "method.refiner.threshold=0.9"}


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


@pytest.mark.parametrize("wrong", ["method.nothing=1", "task=nothing", "mode.epochs=[", "nothing=1"])
def test_an_override_that_does_not_fit_is_told(wrong):
    with pytest.raises(ConfigError, match="cannot be composed"):
        compose(["task=finer", wrong])


@pytest.fixture
def edited(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "data")

    def edit(name, old, new):
        file = tmp_path / "data" / "experiments" / name
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
        return load_experiments(tmp_path / "data")

    return edit


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  gepa: {label", "  gaap: {label", "no cell gepa/average"),
        ("evaluates: normal_tgc", "evaluates: normal", "names 'normal', which is not one of normal_tgc"),
        ("starts_from: 1/ace_offline", "starts_from: 1/ace", "no measured cell ace/normal_tgc"),
        ("starts_from: 1/ace_offline", "starts_from: 99/ace", "no experiment 99"),
        ("adapts: offline", "adapts: never", "Invalid enum value 'never'"),
        ("metric: sgc", "metrics: sgc", "unknown field `metrics`"),
        ('section: "4.3"\nmodel: deepseek_v3_1', "", "give the paper's section, or a model"),
    ],
)
def test_a_mistake_in_an_experiment_is_told(old, new, message, edited):
    with pytest.raises(DataError, match=message):
        edited("table_01.yaml", old, new)


def test_an_unknown_experiment_lists_those_there_are():
    with pytest.raises(DataError, match=r"no experiment 22; there are .*4a"):
        EXPERIMENTS.runs("22")


def test_a_run_on_a_server_of_ones_own_has_no_settings_of_a_server_that_runs_start():
    chosen = {"task": "finer", "method": "base", "mode": "offline", "backbone": "smollm2"}
    own = ("backbone.launch=false", "backbone.url=http://localhost:8000", "backbone.model=smollm2")
    settings = identity_settings(compose([*(f"{group}={name}" for group, name in chosen.items()), *own]))
    assert "server" not in settings["backbone"]
    assert settings_with_defaults(SimpleNamespace(**chosen, identity=settings), compose) == settings
