"""What Hydra is given and how a sweep ends; whole sweeps are run in tests/integration/test_sweeps.py."""

import signal
import sys

import pytest

from ace_bench.cli import experiment
from ace_bench.cli.experiment import settings_first
from ace_bench.core.errors import ConfigError
from ace_bench.core.program import INTERRUPTED


@pytest.mark.parametrize(
    ("words", "sorted_words"),
    [
        (["-m", "task=finer", "--cfg", "job", "seed=1"], ["task=finer", "seed=1", "-m", "--cfg", "job"]),
        (["--cfg=all", "+a=b", "--package=x", "-r"], ["+a=b", "--cfg", "all", "--package", "x", "-r"]),
        (["~a", "-cn", "mine"], ["~a", "-cn", "mine"]),
        ([], []),
    ],
)
def test_hydra_gets_the_settings_before_its_options(words, sorted_words):
    assert settings_first(words) == sorted_words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--package"], "--package needs a value"),
        (["--cfg=", "all"], "--cfg needs one of job, hydra, all"),
        (["-sc", "x"], "there is no option -sc; "),
    ],
)
def test_an_option_without_its_value_is_named(words, said):
    with pytest.raises(ConfigError, match=f"^{said}"):
        settings_first(words)


@pytest.fixture
def sweeping(monkeypatch):
    """Makes a sweep whose launcher raises an error."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    checked = []
    monkeypatch.setattr(experiment, "_check_runs", checked.append)

    def sweep(error, *words):
        checked.clear()

        def launch():
            assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
            raise error

        monkeypatch.setattr(sys, "argv", ["run.py", *words])
        monkeypatch.setattr(experiment, "experiment", launch)
        try:
            experiment.sweep()
        finally:
            assert checked == [[*words]]

    yield sweep
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_an_interrupted_sweep_is_one_sentence(sweeping, capsys):
    with pytest.raises(SystemExit) as stop:
        sweeping(KeyboardInterrupt(), "-m", "seed=0,1")
    assert (stop.value.code, capsys.readouterr().err) == (130, INTERRUPTED)


@pytest.mark.parametrize(("error", "reason"), [("first\nlast line ", "last line"), (" ", "it gives no reason")])
def test_a_cluster_that_is_not_there_is_one_sentence(sweeping, error, reason):
    with pytest.raises(ConfigError, match=rf"^launcher=slurm cannot submit jobs \({reason}\); start the sweep on"):
        sweeping(RuntimeError(error), "-m", "launcher=slurm", "seed=0,1")
    with pytest.raises(RuntimeError):
        sweeping(RuntimeError(error), "-m", "seed=0,1")
