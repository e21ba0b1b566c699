"""Words of a command that cannot be composed: one sentence with the likely fix, in place of Hydra's errors."""

import pytest
from hydra.errors import HydraException

from ace_bench.cli.main import main
from ace_bench.core.resources import config_folders
from ace_bench.runners import override_help
from ace_bench.runners.composing import compose_run
from ace_bench.runners.planning import Composer
from tests.outcomes import outcomes

WORDS = [
    "task=finr",
    "task=finer,formla",
    "tracker=[wandb,nothing]",
    "method.colour=1 mode=now",
    "mode=null",
    "method=nowhere",
    "method@x=ace",
    "backbone@roles=embedded",
    "method=ace backbone@roles.reflector=vllm backbone@roles.reflectors=vllm",
    "colour@red=blue",
    "methd=ace",
    "seed=0 x=y=z",
    "method.merge=3",
    "method.reflector.x=1",
    "method=dc mode=offline,online mode.windw=3",
    "experiment=first_contact backbone.lunch=false",
    "roles.reflector=5",
    "method=ace backbone@roles.reflector=vllm roles.reflector.nothing=1",
    "method=ace backbone@roles.reflector=vllm roles.curator.model=M",
    "method=ace method.playbook=text",
    "experiment=bird_sql_paper limit.test=2",
    "experiment=bird_sql_paper limit={test:2}",
    "experiment=bird_sql_paper limit.tran=2",
    "budget={hours:1}",
    "~task",
    "~nothing",
    "~mode.epochz",
    "~seed=4",
    "~mode.epochs method=[ace]",
    "limit",
    "limit={train:",
    "task=qa task.delimiter=;",
    "task=qa task.data=~/x.csv",
    "mode.epochs=1,2",
    "agent=[react]",
    "task=[finer]",
    "budget=[1]",
    "+method=ace",
    "+seed=2",
    "table=2",
    "+experiment=table_04a",
    "experiment=figure_02",
    "experiment=seed_000",
]


def test_words_that_cannot_be_composed(snapshot):
    composer = Composer(config_folders())
    assert outcomes(lambda words: compose_run(words.split(" "), composer), WORDS) == snapshot


def test_a_preset_that_cannot_be_composed_is_no_reason_to_doubt_what_is_left_out(tmp_path):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text("defaults: [{override /method: nowhere}]\n")
    words = ["experiment=mine", "~mode.epochs", "mode.windw=3"]
    assert override_help.suggestions([*config_folders(), tmp_path], words) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["method=ace,base,icl", "method.refiner.threshold=1"],
            "method=base and method=icl have no setting refiner.threshold: leave",
        ),
        pytest.param(
            ["mode=offline,online", "mode.select=1"],
            "mode=online has no setting select: leave mode=online out, or make",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_sweep_names_the_option_that_lacks_a_setting(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-m", "task=finer", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {said}")
    assert not (tmp_path / "results" / "main").exists()


def test_options_of_hydra_and_their_values_are_no_settings():
    words = ["-cn", "config", "--cfg", "--config-path", "configs", "-p", "mode", "hydra.verbose=true"]
    assert override_help.suggestions(config_folders(), words) == []


@pytest.mark.parametrize(("launcher", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_a_launcher_that_is_not_installed_is_named_with_its_extra(launcher, package, monkeypatch):
    words = [f"launcher={launcher}", "seed=0,1"]
    assert override_help.suggestions(config_folders(), words) == []
    monkeypatch.setattr(override_help, "find_spec", lambda name: None if name == package else object())
    said = f"launcher={launcher} needs {package}: pip install 'ace-bench[sweeps]'"
    assert override_help.suggestions(config_folders(), words) == [said]


def test_an_error_of_the_program_and_one_that_is_asked_for_in_full_are_left_alone(monkeypatch):
    with pytest.raises(ValueError, match="of the program"), override_help.explain(config_folders(), ["seed=1"]):
        raise ValueError("of the program")
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    with pytest.raises(HydraException):
        compose_run(["+seed=2"])
