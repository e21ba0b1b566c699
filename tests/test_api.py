"""The Python API: the same runs as the command line makes, as values."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

import ace_bench
from ace_bench import Playbook, compare_runs, load_context, load_run, load_runs, run
from ace_bench.api import Runs
from ace_bench.backbones.embedded.server.serve import ReaderServer
from ace_bench.core.errors import BudgetExhausted, ConfigError, DataError, Interrupted, StoreError
from ace_bench.report.page.comparing import comparison
from tests.backbones.serving import over_http, running
from tests.launching import ROOT, launch
from tests.outcomes import outcome, outcomes

SHORT = ("task.source=sample", "mode.epochs=1", "embedder=hashing")


def served(server):
    return (*over_http(server.address), "estimate=false")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder with runs of two methods."""
    folder = tmp_path_factory.mktemp("results")
    for method in ("ace", "base"):
        run(method=method, limit=4, results=folder, overrides=SHORT, progress=False)
    return folder


def test_a_run_is_the_one_that_the_command_makes_and_is_made_once(tmp_path, capfd):
    launched = launch(tmp_path, "task=finer", "method=ace", "limit=4", *SHORT)
    capfd.readouterr()
    again = run(task="finer", method="ace", limit=4, results=tmp_path, overrides=SHORT)
    assert again.folder.resolve() == launched.folder.resolve()
    assert "This run is finished" in capfd.readouterr().out
    assert again.metrics == launched.metrics
    assert again.score == launched.metrics["headline"]["after"]
    assert again.settings["limit"] == 4


def test_a_run_has_its_contexts_and_frames(results):
    (learnt,) = load_runs(results, "method=ace")
    assert isinstance(learnt.playbook, Playbook)
    assert learnt.playbook == learnt.context == learnt.contexts["tested"]
    assert learnt.playbook == load_context(learnt.folder / "contexts" / "tested.json")
    *_, last = learnt.steps()
    assert last == learnt.contexts["final"]
    frames = learnt.frames()
    assert len(frames.calls) == sum(sum(roles.values()) for roles in learnt.metrics["calls"].values())
    assert str(learnt).startswith("finer · ace")
    low, high = learnt.interval
    assert low < learnt.score < high


def test_several_runs_are_a_table_that_says_how_they_differ(results):
    runs = load_runs(results)
    frame = runs.frame().set_index("method")
    assert set(frame.index) == {"ace", "base"}
    assert frame.loc["ace", "before"] == runs.where("method=ace")[0].metrics["headline"]["before"]
    assert frame["simulated"].all()
    assert set(runs.frames().rollouts["method"]) == {"ace", "base"}
    ours, base = runs.where("method=ace")[0], runs.where("method=base")[0]
    assert compare_runs(ours, base).difference == pytest.approx(ours.score - base.score)
    metrics = {**base.metrics, "headline": {**base.metrics["headline"], "metric": "sample_accuracy"}}
    for other in ({"simulated": False}, {"source": "real"}, {"metrics": metrics}):
        changed = replace(base, **other)
        with pytest.raises(DataError, match="the runs differ in"):
            compare_runs(ours, changed)
        assert "problem" in comparison({"ours": ours, "base": changed})["pairs"][0]
    assert "problem" not in comparison({"ours": ours, "base": base})["pairs"][0]
    with pytest.raises(DataError, match="not a playbook"):
        _ = base.playbook
    with pytest.raises(ConfigError, match="no run has method=gepa"):
        runs.where("method=gepa")


API_MISTAKES = [
    '{"task": "finr"}',
    '{"overrides": ["methd=ace"]}',
    '{"overrides": ["method.no_such=1"]}',
    '{"overrides": ["seed=0,1"]}',
    '{"limit": 0}',
    '{"labels": "all"}',
    (
        '{"overrides": ["task.source=sample", "mode.epochs=1", "embedder=hashing", '
        '"backbone=openai_compatible", "backbone.model=m"]}'
    ),
    '{"overrides": ["backbone.api_key=sk-abcdefghijklmnop1234"]}',
]


def test_mistakes_are_errors_with_a_sentence_and_leave_nothing(snapshot, tmp_path):
    def mistake(case):
        return outcome(run, results=tmp_path / "results", progress=False, **json.loads(case))

    assert outcomes(mistake, API_MISTAKES) == snapshot
    assert not (tmp_path / "results").exists()


def test_what_is_not_there_is_said(tmp_path):
    for read in (load_run, lambda folder: compare_runs(folder, folder)):
        with pytest.raises(StoreError, match="nowhere is not a folder: name the folder that a run prints"):
            read(str(tmp_path / "nowhere"))
        with pytest.raises(StoreError, match=r"holds no run: .* or use load_runs"):
            read(tmp_path)
    with pytest.raises(StoreError, match="no runs"):
        load_runs(tmp_path)
    with pytest.raises(AttributeError, match="no attribute 'load_runz'"):
        _ = ace_bench.load_runz


@pytest.mark.slow
def test_ctrl_c_is_an_error_that_the_same_call_continues_and_pays_for_nothing_twice(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    with running(ReaderServer(host="127.0.0.1", port=0, latency_s=0.05)) as server:

        def made():
            settings = (*SHORT, *served(server), "concurrency=2")
            return run(task="formula", limit=6, results=tmp_path, overrides=settings, progress=False)

        def interrupt_when_busy():
            while server.stats()["completions"] < 10:
                pass
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt_when_busy).start()
        with pytest.raises(Interrupted):
            made()
        assert signal.getsignal(signal.SIGINT) is before
        (stopped,) = load_runs(tmp_path)
        assert (stopped.state, stopped.score) == ("stopped", None)
        finished = made()
        asked = server.stats()["completions"]
    calls = sum(sum(roles.values()) for roles in finished.metrics["calls"].values())
    assert calls + 2 <= asked <= calls + 2 + 2, "but for a probe a start and the calls in flight"


@pytest.mark.slow
def test_a_budget_stops_and_runs_may_start_in_threads(tmp_path):
    with pytest.raises(BudgetExhausted):
        run(limit=4, results=tmp_path, overrides=[*SHORT, "budget.calls=5"], progress=False)
    found = []
    threads = [
        threading.Thread(
            target=lambda seed=seed: found.append(
                run(limit=2, seed=seed, results=tmp_path, overrides=SHORT, progress=False)
            )
        )
        for seed in (1, 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.seed for one in found) == [1, 2]


def test_a_frame_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match=r"Runs.frame needs pandas: pip install 'ace-bench\[analysis\]'"):
        Runs(()).frame()


def test_importing_the_package_is_cheap():
    """Commands import the package; pandas, Hydra and the rest come with the first name that needs them."""
    code = "import sys, ace_bench; print(sorted({'hydra', 'pandas', 'omegaconf'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_names_of_the_package_are_those_it_documents():
    assert dir(ace_bench) == sorted(ace_bench.__all__)
