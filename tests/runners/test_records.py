"""What a run records about its processes, and that a run which fails before its first call leaves nothing behind."""

import errno

import pytest

from ace_bench.core.errors import BackboneUnavailable, ConfigError
from ace_bench.runners import executing
from ace_bench.runners.host import reporting
from ace_bench.store.processes import read_processes
from tests.launching import launch
from tests.runners.test_preflight import real

SMALL = ("task=formula", "task.source=sample", "limit=4", "mode.epochs=1")


class Killed(BaseException):
    """Stands in for ``kill -9``: nothing is recorded after it."""


@pytest.mark.slow
def test_a_run_that_was_stopped_and_killed_shows_it_and_ends_with_the_same_metrics(tmp_path, monkeypatch, capsys):
    whole = launch(tmp_path / "whole", *SMALL)
    assert launch(tmp_path / "cut", *SMALL, "budget.calls=2").status == 3
    with monkeypatch.context() as patched:
        patched.setattr(executing, "_record_end", lambda *_: None)
        patched.setattr(executing, "run_loop", killed)
        with pytest.raises(Killed):
            launch(tmp_path / "cut", *SMALL)
    capsys.readouterr()
    monkeypatch.setattr(executing, "describe_environment", other_software)
    continued = launch(tmp_path / "cut", *SMALL)
    output = " ".join(capsys.readouterr().out.split())
    assert "This run continues with other software than before: " in output
    assert " to 9.9." in output
    assert continued.lasting() == whole.lasting()
    processes = read_processes(continued.folder)
    assert [process.how for process in processes] == ["stopped", None, "finished"]
    assert "budget.calls=2" in processes[0].reason
    summary = (continued.folder / "summary.txt").read_text()
    for words in ("3: stopped after", "killed", "finished after", "software changed", "to 9.9"):
        assert words in summary
    assert "software changed" not in (whole.folder / "summary.txt").read_text()


def killed(*_):
    raise Killed


def other_software(describe=executing.describe_environment):
    described = describe()
    return {**described, "packages": {**described["packages"], "numpy": "9.9"}}


@pytest.mark.parametrize("error", [ConfigError("no such model"), BackboneUnavailable("no server")])
def test_a_folder_that_exists_is_never_removed(error, tmp_path):
    log = []
    stopped = real(tmp_path, log, "budget.calls=5", "estimate=false")
    before = {path.name for path in stopped.folder.iterdir()}
    assert "calls.jsonl" in before
    again = real(tmp_path, log, "estimate=false", probe=error)
    assert again.folder == stopped.folder
    assert before <= {path.name for path in stopped.folder.iterdir()}
    assert [process.how for process in read_processes(stopped.folder)] == ["stopped", "stopped"]


@pytest.mark.parametrize("error", [OSError(errno.EINVAL, "odd"), ImportError("odd", name="nothing_known")])
def test_an_error_that_names_neither_a_file_nor_a_missing_extra_is_raised(error):
    with pytest.raises(type(error), match="odd"), reporting():
        raise error
