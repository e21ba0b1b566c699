"""What would make runs fail is found before the first of them starts, once for all."""

import subprocess
import sys

import pytest

from ace_bench import check_runs
from ace_bench.core.errors import ConfigError
from ace_bench.runners.checking import Candidate, RunChecks
from tests.backbones.serving import over_http
from tests.launching import ROOT, launch
from tests.outcomes import outcomes
from tests.report.paper.conftest import compose, one_composer, reproduce  # noqa: F401 - fixtures

SAMPLE = ("task.source=sample", "embedder=hashing")
DEAD = "http://127.0.0.1:9/v1"


def served(address, **settings):
    """A backbone that is asked once: nobody waits here for a server to come back."""
    return (*over_http(settings.pop("base_url", address), **settings), "backbone.retry.times=0")


def refused(*runs, **options):
    with pytest.raises(ConfigError) as caught:
        RunChecks(compose).check((Candidate(overrides=run) for run in runs), **options)
    return str(caught.value).splitlines()


def test_runs_that_can_start_pass_and_each_endpoint_is_called_once(reader, tmp_path):
    before = reader.stats()["completions"]
    runs = [
        ("task=formula", f"method={method}", f"seed={seed}", *SAMPLE, *over_http(reader.address), f"results={tmp_path}")
        for method in ("base", "icl", "ace")
        for seed in (0, 1, 2)
    ]
    RunChecks(compose).check(Candidate(overrides=run) for run in runs)
    assert reader.stats()["completions"] - before == 2, "one probe takes two calls"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": "other"}, "backbone.model"),
        ({"simulated": "false"}, "backbone.simulated=false, but the server reports"),
        ({"api_key_env": "ACE_NO_SUCH_KEY"}, "ACE_NO_SUCH_KEY"),
        ({"base_url": DEAD}, "cannot be reached"),
    ],
)
def test_a_wrong_backbone_is_one_sentence_for_all_runs(settings, said, reader, tmp_path):
    runs = [
        ("task=formula", f"method={method}", *SAMPLE, *served(reader.address, **settings), f"results={tmp_path}")
        for method in ("base", "icl")
    ]
    (line,) = refused(*runs)
    assert line.endswith(" (2 of 2 runs; none was started)")
    assert said in line
    (line,) = refused(runs[0])
    assert "runs" not in line


def test_every_problem_is_said_once_with_its_number_of_runs(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    good = ("task=formula", "method=base", *SAMPLE)
    wrong = ("task=formula", "method=ace", "mode=online", "mode.epochs=2", *SAMPLE)
    epochs = "mode.epochs=2 must be 1 with mode=online; use mode=offline for more epochs"
    said = refused(
        *((*good, f"results={file}", f"seed={seed}") for seed in (0, 1)),
        wrong,
        ("task=ddxplus", "method=base", "task.source=real", f"task.data_dir={tmp_path}"),
    )
    assert said[0] == "no run was started, because some would fail:"
    assert said[1].startswith(f"  2 of 4 runs: {file}/main/formula-base-embedded-offline/")
    assert said[1].endswith(" cannot be read (Not a directory); choose another folder with results=")
    assert said[2] == f"  1 of 4 runs: {epochs}"
    assert said[3].startswith("  1 of 4 runs: ")
    assert "ddxplus" in said[3]
    unwritable = f"  2 of 2 runs: {file} cannot be written (Not a directory); choose another folder with results="
    assert refused(good, wrong, results=file) == [said[0], f"  1 of 2 runs: {epochs}", unwritable]


def test_notes_are_returned_once_and_a_context_that_does_not_exist_yet_is_waited_for(tmp_path):
    official = ("protocol=official", "official_commit=ba78d34", "method=dc", "mode=online")
    words = ("task=finer", *official, *SAMPLE, f"results={tmp_path}")
    runs = (Candidate(overrides=(*words, f"seed={seed}")) for seed in (0, 1))
    (note,) = RunChecks(compose).check(runs)
    assert note.startswith("protocol=official@ba78d34 names a state of ace-agent/ace")
    (other := tmp_path / "other.json").write_text('{"kind": "none"}')
    later = ("task=formula", "method=ace", f"method.initial={other}", *SAMPLE)
    assert RunChecks(compose).check([Candidate(overrides=later, waits=True)], results=tmp_path) == []
    assert "ACE starts from one" in refused(later)[0]


REFUSALS = [
    "base",
    "base labels=gold",
    "base mode.epochs=2",
    "base mode=online",
    "base labels=none",
    "icl labels=gold",
    "icl mode.epochs=2",
    "icl labels=none",
    "ace mode.epochs=2 labels=none",
    "ace mode=online",
    "ace task.source=real",
]


def test_a_run_that_is_refused_or_repeats_another_one_is_left_out(snapshot):
    def refusal(words):
        sample = () if "task.source=real" in words else SAMPLE
        return RunChecks(compose).refusal(("task=formula", *sample, *f"method={words}".split())) or "is made"

    assert outcomes(refusal, REFUSALS) == snapshot


def test_the_api_checks_the_runs_of_a_loop(tmp_path):
    runs = [{"task": "formula", "method": "base", "seed": seed, "results": tmp_path} for seed in (0, 1)]
    check_runs(runs)
    with pytest.raises(ConfigError, match=r"no_such_key.* \(2 of 2 runs; none was started\)"):
        check_runs([{**run, "overrides": ["no_such_key=1"]} for run in runs])


def test_of_runs_on_other_machines_neither_keys_nor_endpoints_are_checked():
    run = ("task=formula", "method=base", *SAMPLE, *over_http(DEAD, api_key_env="ACE_NO_SUCH_KEY"))
    RunChecks(compose).check([Candidate(overrides=run)], local=False)


def test_a_finished_run_needs_no_server(reader, tmp_path):
    run = ("task=formula", "method=base", "limit=2", *SAMPLE, f"results={tmp_path}")
    assert launch(tmp_path, *run[:-1], *over_http(reader.address)).status == 0
    again = (*run, *served(DEAD))
    RunChecks(compose).check([Candidate(overrides=again)])
    (said,) = refused(*((*again, f"seed={seed}") for seed in (0, 1, 2)))
    assert "cannot be reached" in said
    assert said.endswith(" (2 of 2 runs; none was started)")


def test_a_dry_run_refuses_what_the_run_would_refuse(reader, tmp_path, capsys, monkeypatch):
    run = ("task=formula", "method=base", "limit=2", *SAMPLE, "dry_run=true")
    assert launch(tmp_path, *run, *over_http(reader.address)).status == 0
    assert launch(tmp_path, *run, *over_http(reader.address, model="other")).status == 2
    said = capsys.readouterr()
    assert said.out.count("Estimate") == 2
    assert "backbone.model" in said.err
    assert launch(tmp_path / "file" / "below", *run).status == 0
    (tmp_path / "file").write_text("")
    assert launch(tmp_path / "file" / "below", *run).status == 2


def test_a_text_table_needs_no_matplotlib_and_a_figure_says_so_first(reproduce, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr("ace_bench.core.resources.find_spec", lambda name: None if name == "matplotlib" else object())
    status, said = reproduce("figure=1", "backbone=embedded", "--dry-run")
    assert (status, "needs matplotlib: pip install 'ace-bench[analysis]'" in said) == (2, True)
    assert reproduce("table=4b", "backbone=embedded", "--dry-run")[0] == 0


@pytest.mark.slow
def test_a_sweep_that_cannot_start_is_refused_before_its_first_run(tmp_path):
    words = ("-m", "task=formula", "method=base,ace", "task.source=sample", "results=results", *over_http(DEAD))
    done = subprocess.run(
        [sys.executable, ROOT / "run.py", *words], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: the backbone does not answer: http://127.0.0.1:9/v1 cannot be reached")
    assert done.stderr.endswith(" (2 of 2 runs; none was started)\n")
    assert not list(tmp_path.iterdir())
