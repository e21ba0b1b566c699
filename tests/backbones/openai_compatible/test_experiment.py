"""Whole experiments through the client, against servers with faults on purpose."""

from types import SimpleNamespace

import pytest

from ace_rehearsal.server.faults import Faults
from ace_rehearsal.server.serve import ReaderServer
from tests.backbones.openai_compatible.scripted import Server, answer, error
from tests.backbones.serving import over_http, running
from tests.launching import launch

MIX = {"http_500": 0.1, "http_429": 0.05, "drop": 0.05, "truncate": 0.05, "empty": 0.02}
"""What the harness must bear (the truncated replies are JSON cut in the middle)."""
SAMPLES = ("task=finer", "mode.epochs=2", "task.source=sample", "limit={train: 8, val: 4, test: 12}")


def overrides(server, *more):
    pauses = {"retry.first_pause": 0.001, "retry.longest_pause": 0.002}
    return (*over_http(server.address, **pauses), *SAMPLES, *more)


@pytest.mark.slow
def test_faults_on_the_way_change_nothing_but_time_and_cost(tmp_path):
    ran = []
    for chances in ({}, MIX):
        with running(ReaderServer(host="127.0.0.1", port=0, faults=Faults(chances=chances, seed=0))) as server:
            ran.append(launch(tmp_path / str(len(ran)), *overrides(server)))
            happened = [server.stats().get(f"fault_{kind}", 0) for kind in MIX]
    calm, stormy = ran
    assert (calm.status, stormy.status) == (0, 0)
    assert all(happened)
    paid = ("tokens", "as_authors")  # an empty reply is paid for, and asked once more
    lasting = [{key: part for key, part in run.lasting()[0].items() if key not in paid} for run in ran]
    assert lasting[0] == lasting[1]
    assert stormy.lasting()[1] == calm.lasting()[1]
    assert stormy.metrics["faults"] == {"adapt": {}, "evaluate": {}}
    assert sum(call["retries"] for call in stormy.lines("calls")) == sum(happened)


class Limited(Server):
    """Refuses JSON schemas as llama.cpp's Python server does, until ``takes_schemas``."""

    takes_schemas = False

    def next(self, path, headers, body):
        form = (body or {}).get("response_format", {}).get("type")
        found = super().next(path, headers, body)
        refused = form == "json_schema" and not self.takes_schemas
        return error(500, "1 validation error: response_format: Input should be 'text'") if refused else found


def test_a_continued_run_asks_in_the_form_in_which_it_began(tmp_path):
    server = Limited([answer('{"reasoning": "r", "bullet_ids": [], "final_answer": "x"}')], ["embedded"])
    run = ("method=base", "agent.scaffold=json", "concurrency=1", "limit=4", "mode.epochs=1", "estimate=false")
    with running(server):
        base = overrides(SimpleNamespace(address=server.url), *run)
        stopped = launch(tmp_path, *base, "budget.calls=2")
        server.takes_schemas = True
        ended = launch(tmp_path, *base)
    forms = [body["response_format"] for body in server.asked() if "response_format" in body]
    assert (stopped.status, ended.status) == (3, 0)
    assert [form["type"] for form in forms[:3]] == ["json_schema", "json_schema", "json_object"]
    assert all("schema" in form for form in forms[2:]), "the run began in llama.cpp's form and goes on so"
    assert len(forms) == 2 + 2 + 4
