"""Words of a command that cannot be composed: one sentence with the likely fix, in place of Hydra's errors."""

import os

import pytest
from hydra.errors import CompactHydraException, ConfigCompositionException, HydraException

from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders
from ace_bench.runners import override_help
from ace_bench.runners.identifying import compose_run

LISTED = "`ace-bench run --help` lists the options"
QUOTED = "write key=value, close brackets, and quote other characters than words"
OTHER_PLACES = "roles.reflector, roles.curator, roles.proposer, roles.merger, roles.judge, rehearsal"
TWO_MODELS = "method=mam_stream_icl backbone@roles.generator_2=vllm"
REPRODUCED = (
    "`ace-bench run` makes one run; all runs of a result, and its table or figure, are made by `ace-bench reproduce "
)
SAID = {
    # names of options
    "task=finr": "task=finr: did you mean finer?",
    "task=finer,formla": "task=finer,formla: did you mean formula?",
    "tracker=[wandb,nothing]": "tracker=[wandb,nothing]: did you mean none?",
    "method.colour=1 mode=now": "mode=now: there are evaluate, lifelong, offline, online",
    "mode=null": "mode=null: there are evaluate, lifelong, offline, online",
    "method=nowhere": f"method=nowhere: {LISTED}",
    "method@x=ace": "method@x: no method goes there",
    "backbone@roles=embedded": f"backbone@roles: no backbone goes there; there are {OTHER_PLACES}",
    f"{TWO_MODELS} backbone@roles.generator_4=vllm": "backbone@roles.generator_4: no backbone goes there; there are "
    f"roles.generator_2, roles.generator_3, {OTHER_PLACES}",
    "colour@red=blue": "colour@red: there is no such key; did you mean concurrency?",
    # keys
    "methd=ace": "methd: there is no such key; did you mean method?",
    "seed=0 x=y=z": f"x: there is no such key; {LISTED}",
    "method.merge=3": "method.merge: there is no such key; did you mean method.merge_wording?",
    "method.reflector.x=1": "method.reflector.x: there is no such key; did you mean method.reflector?",
    "method=dc mode=offline,online mode.windw=3": "mode.windw: there is no such key; did you mean mode.window?",
    "experiment=real_small_model backbone.lunch=false": "backbone.lunch: there is no such key; "
    "did you mean backbone.launch?",
    "roles.reflector=5": "roles.reflector: there is no such key; did you mean method.reflector?",
    f"{TWO_MODELS} roles.generator_2.nothing=1": "roles.generator_2.nothing: there is no such key; "
    "did you mean roles.generator_2.sampling?",
    f"{TWO_MODELS} roles.generator_3.model=M": "roles.generator_3.model: roles.generator_3 has no backbone of its own: "
    "give it one by backbone@roles.generator_3=NAME",
    "method=ace method.playbook=text": "method.playbook is gone: protocol=official learns the authors' text",
    "experiment=real_small_model limit.test=2": "the preset limits other splits than test: write "
    "+limit.test=NUMBER to limit this one, too",
    "experiment=real_small_model limit={test:2}": "the preset limits other splits than test: write "
    "+limit.test=NUMBER to limit this one, too",
    "experiment=real_small_model limit.tran=2": "limit.tran: there is no such key; did you mean limit.train?",
    "budget={hours:1}": "budget has no setting hours; `ace-bench run --cfg job` shows it",
    # what is left out
    "~task": "~task: it cannot be left out; choose with task=...",
    "~nothing": f"~nothing: there is nothing of this name to leave out; {LISTED}",
    "~mode.epochz": "~mode.epochz: there is nothing of this name to leave out; did you mean mode.epochs?",
    "~seed=4": f"Could not delete from config. The value of 'seed' is 0 and not 4; {LISTED}",
    "~mode.epochs method=[ace]": "method must be one option: write method=NAME, without brackets",
    # values
    "limit": "limit has no value: write limit=...",
    "limit={train:": f"limit={{train: cannot be read: {QUOTED}",
    "task=qa task.delimiter=;": f"task.delimiter=; cannot be read: {QUOTED}, with quotes that the shell leaves in "
    "place: 'task.delimiter=\";\"'",
    "task=qa task.data=~/x.csv": "task.data=~/x.csv cannot be read: shells leave a ~ behind = as it is; write "
    '"task.data=$HOME/x.csv"',
    "mode.epochs=1,2": "mode.epochs=1,2 gives several values: add --multirun for a sweep, or write [a,b] for a list",
    "task=[finer]": "task must be one option: write task=NAME, without brackets",
    "budget=[1]": "budget=[1] must be a group of settings: write budget.NAME=VALUE",
    "+method=ace": "method exists already: write method=... without the +",
    "+seed=2": "seed exists already: write seed=... without the +",
    # what needs several runs
    "table=2": f"{REPRODUCED}table=2`",
    "+experiment=table_04a": f"{REPRODUCED}table=4a`",
    "experiment=figure_02": f"{REPRODUCED}figure=2`",
    "experiment=seed_000": f"{REPRODUCED}experiment=seed_000`",
}


@pytest.mark.parametrize("words", SAID)
def test_words_that_cannot_be_composed(words):
    with pytest.raises(ConfigError) as refused:
        compose_run(words.split(" "))
    assert str(refused.value) == SAID[words]


def test_a_preset_that_cannot_be_composed_is_no_reason_to_doubt_what_is_left_out(tmp_path):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text("defaults: [{override /method: nowhere}]\n")
    words = ["experiment=mine", "~mode.epochs", "mode.windw=3"]
    assert override_help.suggestions([*config_folders(), tmp_path], words) == []


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


@pytest.mark.parametrize("before", [None, "1"])
def test_hydra_raises_its_errors_and_those_of_a_sweep_end_the_program(before, monkeypatch, capsys):
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
    if before is not None:
        monkeypatch.setenv("HYDRA_FULL_ERROR", before)

    def fail(error):
        with override_help.raised_by_hydra():
            assert os.environ["HYDRA_FULL_ERROR"] == "1"
            raise error

    with pytest.raises(ConfigCompositionException):
        fail(ConfigCompositionException("no such option"))
    with pytest.raises(SystemExit) as ended:
        fail(CompactHydraException("two runs failed"))
    assert (ended.value.code, capsys.readouterr().err) == (1, "two runs failed\n")
    assert os.environ.get("HYDRA_FULL_ERROR") == before


def test_an_error_of_the_program_and_one_that_is_asked_for_in_full_are_left_alone(monkeypatch):
    with pytest.raises(ValueError, match="of the program"), override_help.explain(config_folders(), ["seed=1"]):
        raise ValueError("of the program")
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    with pytest.raises(HydraException):
        compose_run(["+seed=2"])
