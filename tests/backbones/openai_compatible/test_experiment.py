"""Whole experiments through the client, against servers with faults on purpose."""

from types import SimpleNamespace

from tests.backbones.openai_compatible.scripted import Server, answer, error
from tests.backbones.serving import over_http, running
from tests.launching import launch

SAMPLES = ("task=finer", "mode.epochs=2", "task.source=sample", "limit={train: 8, val: 4, test: 12}")


def overrides(server, *more):
    pauses = {"retry.first_pause": 0.001, "retry.longest_pause": 0.002}
    return (*over_http(server.address, **pauses), *SAMPLES, *more)


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
    assert [form["type"] for form in forms[:2]] == ["json_schema", "json_object"]
    assert all("schema" in form for form in forms[1:]), "the run began in llama.cpp's form and goes on so"
    assert len(forms) == 1 + 2 + 4
