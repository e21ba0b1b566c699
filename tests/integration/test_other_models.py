"""Runs whose server answers with another model, or reports replies as reasoning: every page that shows them says so."""

import json
from types import SimpleNamespace

import pytest

from ace_bench.cli.main import main
from ace_bench.report.page.run_data import run_data
from ace_bench.report.records import read_run
from tests.backbones.openai_compatible.scripted import Server, answer
from tests.backbones.serving import over_http, running
from tests.launching import launch

OTHER = "another-model-7b"
RUN = ("task=finer", "task.source=sample", "concurrency=1", "estimate=false", "method=base")


class Router(Server):
    """Answers by the model that was asked for, and every second call of the run by another one."""

    asked_for = 0

    def next(self, path, headers, body):
        reply = super().next(path, headers, body)
        if body is not None:
            self.asked_for += "tag" in str(body["messages"])  # the probe asks for none
            reply.body["model"] = OTHER if self.asked_for and self.asked_for % 2 == 0 else body["model"]
        return reply


def overrides(server, *more):
    return (*over_http(server.url, model="small-model"), *RUN, *more)


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """A finished run and a stopped one."""
    folder = tmp_path_factory.mktemp("results")
    with running(Router([answer("x")], ["small-model"])) as server:
        ended = launch(folder, *overrides(server, "limit=4"))
        server.asked_for = 0
        stopped = launch(folder, *overrides(server, "limit=4", "seed=1", "budget.calls=2"))
    assert (ended.status, stopped.status) == (0, 3)
    return SimpleNamespace(root=folder, run=ended.folder, stopped=stopped.folder)


def test_summary_list_page_and_tables_name_the_model_that_answered(answered, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    metrics = json.loads((answered.run / "metrics.json").read_text())
    assert metrics["models"] == {"small-model": {"small-model": 2, OTHER: 2}}
    words = f"{OTHER} answered 2 of 4 calls to small-model"
    assert words in " ".join((answered.run / "summary.txt").read_text().split())
    assert run_data(read_run(answered.run))["warnings"] == [words]
    assert run_data(read_run(answered.stopped))["warnings"] == [f"{OTHER} answered 1 of 2 calls to small-model"]

    main(["ls", str(answered.root)])
    assert f"small-model (simulated, 2 calls by {OTHER})" in capsys.readouterr().out
    main(["ls", "--json", str(answered.root)])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["model"], row["other_models"]) for row in rows] == [
        ("small-model", {OTHER: 2}),
        ("small-model", {OTHER: 1}),
    ]


@pytest.mark.parametrize(
    ("form", "wanted"), [("markdown", ["table=2"]), ("latex", ["--rows", "method"]), ("csv", ["--rows", "method"])]
)
def test_a_cell_carries_a_mark_that_every_format_explains(answered, form, wanted, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["tables", *wanted, "--results", str(answered.root), "--format", form, "--out", str(out)]) == 0
    files = [out] if out.is_file() else [*out.rglob("*")]
    text = "".join([capsys.readouterr().out, *(file.read_text() for file in files if file.is_file())])
    assert f"{OTHER} answered 2 of 4 calls to small-model" in " ".join(text.split())
    if form != "csv":
        assert text.count("#") >= 2


class Reasoning(Server):
    """Answers the probe, and reports all later replies as reasoning."""

    def next(self, path, headers, body):
        reply = super().next(path, headers, body)
        asks = body is not None and "tag" in str(body["messages"])
        return answer(None, reasoning_content='{"final_answer": "x"}') if asks else reply


def test_replies_that_are_all_reasoning_are_counted_and_paid_for_once(tmp_path):
    with running(Reasoning([answer('{"ready": true}')], ["small-model"])) as server:
        ended = launch(tmp_path, *over_http(server.url, model="small-model"), *RUN, "limit=8")
        asked = sum("tag" in str(body["messages"]) for body in server.asked())
    metrics = json.loads((ended.folder / "metrics.json").read_text())
    summary = " ".join((ended.folder / "summary.txt").read_text().replace("│", " ").split())
    assert metrics["all_reasoning_replies"] == {"adapt": {}, "evaluate": {"generator": 8}}
    assert "replies without text generator 8 of 8: the server reports all of it as reasoning" in summary
    assert "raise sampling" not in summary
    assert asked == 8 + 3
    *_, warning = run_data(read_run(ended.folder))["warnings"]
    assert warning.startswith("8 of 8 replies have no text")
