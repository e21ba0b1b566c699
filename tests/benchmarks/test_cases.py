"""The cases on small runs, without their clocks: what is counted, and the tables of it."""

import json
import re
from contextlib import closing, nullcontext
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from ace_bench.playbook.playbook import Playbook
from ace_bench.report.records import find_runs
from ace_bench.tasks.catalog import make_task
from benchmarks import cases, command, growth, network
from benchmarks.measuring import RunFailedError, Setting
from benchmarks.results import make_runs
from benchmarks.scripted import InstantModel, ShuffledGolds, instant_server, large_playbook
from tests.launching import launch

SMALL = ("task=ddxplus", "task.source=sample", "limit=7", "mode.epochs=1", "concurrency=1")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A folder with a run that adapts offline and one that adapts online."""
    folder = tmp_path_factory.mktemp("runs")
    for more in (("method=ace",), ("method=dc", "mode=online")):
        assert launch(folder, *SMALL, *more).status == 0
    return folder


def test_runs_like_real_ones_differ_in_settings_seeds_and_scores(snapshot, ran, tmp_path):
    originals = [run.folder for run in find_runs(ran).runs]
    make_runs(originals, tmp_path / "made", 13)
    found = find_runs(tmp_path / "made").runs
    lines = []
    for run in found:
        settings, config = run.identity, (run.folder / "config.yaml").read_text()
        assert f"\nlimit: {settings['limit']}\n" in config
        assert f"\nseed: {run.seed}\n" in config
        headline, split = run.metrics["headline"], run.metrics["splits"]["test"]["after"]
        assert split[headline["metric"]] == headline["after"]
        length = len((run.folder / "journal.jsonl").read_text().splitlines())
        varied = f"epochs {settings['mode']['epochs']}, limit {settings['limit']}, seed {run.seed}"
        lines.append(f"{run.method} {run.mode}: {varied}: {headline['after']:g}, {length} lines")
    assert "\n".join(sorted(lines)) == snapshot


def test_a_run_is_compared_with_one_that_was_not_killed(ran):
    one, other = (run.folder for run in find_runs(ran).runs)
    same, unlike = ([figure.measured for figure in cases._compare_runs(one, whole)] for whole in (one, other))
    assert same == ["True", "True", same[2], f"{same[2]}, {same[2]} distinct", "1"]
    assert unlike == ["False", "False", unlike[2], same[3], "1"]


METRICS = {
    "headline": {"after": 62.5, "before": 50.0, "n": 8},
    "rollouts": {"adapt": 10, "evaluate": 5},
    "calls": {"adapt": {"generator": 10, "curator": 4}, "evaluate": {"generator": 5}},
    "tokens": {"adapt": {"in": 20_000, "out": 1_000}, "evaluate": {"in": 5_000, "out": 100}},
    "cache": {"adapt": {"cached_tokens": 15_000, "share": 0.75}, "evaluate": {"cached_tokens": None}},
    "timing": {"adapt": {"wall_s": 12.0}, "evaluate": {"wall_s": 3.0}},
}


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Take metrics in place of runs, which grow from run to run; return the settings of the runs."""
    asked = []

    def run(setting, *overrides):
        del setting
        asked.append(" ".join(overrides))
        folder = tmp_path / str(len(asked))
        folder.mkdir(exist_ok=True)
        tokens = {**METRICS["tokens"], "adapt": {"in": 20_000 * len(asked), "out": 1_000}}
        cache = {**METRICS["cache"], "adapt": {"cached_tokens": 15_000 if len(asked) % 4 else None, "share": 0.875}}
        (folder / "metrics.json").write_text(json.dumps({**METRICS, "tokens": tokens, "cache": cache}))
        return folder

    monkeypatch.setattr(Setting, "run", run)
    monkeypatch.setattr(cases, "in_process", lambda setting, words, **parts: run(setting, *words, str([*parts])))
    return asked


def test_what_cases_print_and_write(snapshot, measured, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(growth, "_measure", lambda *_: ("1.0",) * (len(growth.PARTS) + 5))
    monkeypatch.setattr(growth, "instant_server", nullcontext)
    page, lines = tmp_path / "page.md", []
    for words in (
        ["cache", "learning"],
        ["growth"],
        ["growth", "--bullets", "5", "70"],
    ):
        assert command.main([*words, "--out", str(page)]) == 0
        printed = capsys.readouterr().out
        lines += [f"$ {' '.join(words)}", *measured, re.sub(r", \d+ s", "", page.read_text())]
        measured.clear()
    lines.append(printed)
    assert "\n".join(lines).replace(str(tmp_path), "DATA") == snapshot


def interrupt(setting):
    raise KeyboardInterrupt


def fail(setting):
    raise RunFailedError("the run failed")


def status_of(words):
    try:
        return command.main(words)
    except SystemExit as error:
        return error.code


def test_what_cannot_go_on_says_why(monkeypatch, capsys):
    monkeypatch.setitem(command.CASES, "startup", interrupt)
    monkeypatch.setitem(command.CASES, "cache", fail)
    for words, status, said in (
        (["cache"], 2, "cache: the run failed"),
        (["startup"], 130, "Stopped."),
        (["caches"], 2, "there is no case caches"),
    ):
        assert (status_of(words), said in capsys.readouterr().err) == (status, True)


@pytest.mark.slow
def test_a_row_for_each_kind_of_retrieval_view_and_size(monkeypatch, tmp_path):
    monkeypatch.setattr(growth, "RETRIEVAL", ("fused",))
    table = growth.growth(Setting(scratch=tmp_path, data=None, bullets=(50, 300)))
    assert [row[:3] for row in table.rows] == [
        ("fused", sees, size) for sees in ("all", "nearest") for size in ("50", "300")
    ]
    numbers = [dict(zip(table.headings, row, strict=True)) for row in table.rows]
    assert all(float(row[part]) > 0 for row in numbers for part in (*growth.PARTS, "CPU ms/step", "memory MB"))
    sent = [float(row["prompts MB/step"]) for row in numbers]
    assert (sent[0] < sent[1], sent[2] == sent[3]) == (True, True)


@pytest.mark.slow
def test_the_reader_answers_prompts_of_finer_with_and_without_bullets(tmp_path):
    figures = cases.embedded_call(Setting(scratch=tmp_path, data=None))
    assert [one.figure for one in figures] == ["generator, 0 bullets", "generator, 100 bullets"]


def test_queries_are_graded_and_steps_are_cut_apart(monkeypatch, tmp_path):
    monkeypatch.setattr(cases, "PREDICTIONS", 6)
    figures = cases.sql(Setting(scratch=tmp_path / "sql", data=None))
    assert figures[-1].measured == "execution 100.0, execution_corrected 100.0"
    journal = [{"kind": "rollout"}, {"kind": "step", "wall": 2.0, "calls_made": 2}]
    journal += [{"kind": "step", "wall": 5.0, "calls_made": 3}]
    lines = [json.dumps(one) + "\n" for one in journal]
    (tmp_path / "journal.jsonl").write_text("".join(lines))
    (tmp_path / "calls.jsonl").write_text("a\nbb\nccc\n")
    assert cases._steps(tmp_path) == ([2.0, 3.0], [len(lines[0]) + len(lines[1]) + 5, len(lines[2]) + 4])


def test_the_time_of_a_step_by_part(tmp_path):
    steps = [{**dict.fromkeys(growth.PARTS, 0.25 * n), "all": 4.0 * n} for n in range(growth._WARM + 3)]
    (tmp_path / "steps").write_text("".join(json.dumps(one) + "\n" for one in steps))
    parts = len(growth.PARTS)
    expected = {"all": 4.0, **dict.fromkeys(growth.PARTS, 0.25), "rest": 4.0 - 0.25 * parts}
    assert growth._read_clock(tmp_path / "steps") == expected
    clock = growth.StepClock()
    clock.begin(tmp_path, {}, "")
    inner = clock._watch("delta", lambda: sum(range(300_000)))
    clock._watch("select", lambda: inner() and inner())()
    clock.close()
    assert clock._spent["delta"] > clock._spent["select"] >= 0


def test_the_model_that_answers_at_once(snapshot):
    model, seen = InstantModel(), []
    said = [
        json.loads(model.complete((), role=role, session="").text) for role in ("generator", "reflector", "curator")
    ]
    assert (model.calls, model.seconds > 0, model.count("eight ch")) == (3, True, 2)
    with instant_server() as address, closing(HTTPConnection(urlsplit(address).netloc)) as connection:
        for prompt in ("x", '"bullet_tags" ', '"operations" '):
            body = json.dumps({"messages": [{"role": "user", "content": prompt}]})
            connection.request("POST", "/v1/chat/completions", body=body)
            reply = json.load(connection.getresponse())
            assert reply["usage"]["prompt_tokens"] == len(body)
            said.append(json.loads(reply["choices"][0]["message"]["content"]))
    assert "".join(json.dumps(one) + "\n" for one in said) == snapshot
    book = Playbook.load(large_playbook(3))
    assert ([one.number for one in book.bullets], book.next_number) == ([1, 2, 3], 4)
    assert len({one.content for one in book.bullets}) == 3
    assert network._time_calls(seen.append, 2)[0] > 0
    assert sorted(seen) == [*range(-4, 3 * network.CALLS)]


def test_shuffled_golds_are_those_of_other_training_samples():
    task = make_task("formula", source="sample", sample_allowed=True)
    shuffled, samples = ShuffledGolds(task), task.samples("train")

    def gold(task, sample):
        with task.open(sample) as session:
            return session.grade(None).gold

    golds = [gold(shuffled, sample) for sample in samples]
    assert golds != [gold(task, sample) for sample in samples]
    assert sorted(golds) == sorted(gold(task, sample) for sample in samples)
    assert gold(shuffled, task.samples("test")[0]) == gold(task, task.samples("test")[0])
    assert shuffled.headline == task.headline
