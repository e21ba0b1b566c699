"""A prompt that a server refuses is one failed attempt; only a server that refuses every call stops the run."""

import json
import signal
import subprocess
import sys
import time

import pytest

from ace_bench.backbones.embedded.backbone import EmbeddedBackbone
from ace_bench.backbones.embedded.server.requests import BadRequest
from ace_bench.backbones.embedded.server.serve import ReaderServer
from tests.backbones.serving import over_http, running
from tests.launching import ROOT, launch

SAID = "the request is not acceptable"


class Choosy(EmbeddedBackbone):
    """Refuses the requests that ``refuses`` picks by their text; keeps how often each was refused."""

    def __init__(self):
        super().__init__()
        self.refuses, self.status, self.code, self.said = (lambda _: False), 400, "invalid_value", SAID
        self.refused, self.answered = [], []

    def complete(self, messages, *, role, session, schema=None):
        text = "\n".join([*(message.content for message in messages), str(schema)])
        if self.refuses(text):
            self.refused.append(text)
            raise BadRequest(self.status, self.code, self.said)
        self.answered.append(text)
        return super().complete(messages, role=role, session=session, schema=schema)


@pytest.fixture
def server():
    with running(ReaderServer(host="127.0.0.1", port=0)) as one:
        one.backbone = Choosy()
        yield one


def run(server, *more):
    small = ("task=formula", "task.source=sample", "limit={train: 4, val: 2, test: 8}", "concurrency=1")
    return (*small, *over_http(server.address), "backbone.retry.times=1", "backbone.retry.first_pause=0", *more)


def questions(split="test"):
    path = ROOT / "ace_bench/tasks/samples/formula" / f"{split}.jsonl"
    return [json.loads(line)["context"].partition('Question: "')[2][:40] for line in path.read_text().splitlines()]


def asks(*some):
    """Pick requests that hold one of some questions."""
    return lambda text: any(one in text for one in some)


@pytest.mark.parametrize("which", [(0,), (7,), (2, 3, 4, 5, 6, 7)])
@pytest.mark.parametrize("status", [400, pytest.param(422, marks=pytest.mark.slow)])
def test_prompts_that_are_refused_are_wrong_answers_and_the_run_ends(which, status, server, tmp_path):
    server.backbone.refuses, server.backbone.status = asks(*(questions()[one] for one in which)), status
    ran = launch(tmp_path, *run(server, "method=base"))
    assert ran.status == 0
    assert ran.metrics["headline"]["n"] == 8
    assert ran.metrics["faults"]["evaluate"] == {"generator/model/bad_request": len(which)}
    assert f"bad_request {len(which)}" in (ran.folder / "summary.txt").read_text()
    assert len(server.backbone.refused) == 2 * len(which), "each was refused, and refused again"
    again = launch(tmp_path, *run(server, "method=base", "resume=true"))
    assert again.lasting() == ran.lasting()


def test_only_what_fails_for_every_call_stops_the_run(server, tmp_path):
    server.backbone.refuses = asks(*questions())  # all of the run, none of the probe
    stopped = launch(tmp_path, *run(server, "method=base"))
    assert stopped.status == 3
    assert SAID in json.loads((stopped.folder / "status.json").read_text())["reason"]
    server.backbone.refuses = lambda _: False
    ended = launch(tmp_path, *run(server, "method=base"))
    assert (ended.status, ended.folder) == (0, stopped.folder)
    assert ended.metrics["faults"]["evaluate"] == {}, "what was undecided is answered now"
    whole = launch(tmp_path / "whole", *run(server, "method=base"))
    assert ended.lasting() == whole.lasting()


def test_a_server_that_refuses_everything_from_some_call_on_stops_the_run(server, tmp_path):
    server.backbone.refuses = lambda _: len(server.backbone.answered) >= 7  # the probe takes three
    stopped = launch(tmp_path, *run(server, "method=base"))
    assert stopped.status == 3
    assert stopped.lines("calls")[3]["fault"] is None
    assert all(call["fault"] is None or call["fault"]["owner"] == "backbone" for call in stopped.lines("calls"))


@pytest.mark.parametrize("method", [("method=ace", "mode=online"), ("method=ace", "mode.epochs=1"), ("method=icl",)])
def test_learning_goes_on_beside_refused_prompts(method, server, tmp_path):
    server.backbone.refuses = asks(questions()[0], questions("train")[0])
    ran = launch(tmp_path, *run(server, *method))
    assert ran.status == 0
    faults = ran.metrics["faults"]["adapt"] | ran.metrics["faults"]["evaluate"]
    assert {kind.split("/", 1)[1] for kind in faults} == {"model/bad_request"}
    assert launch(tmp_path, *run(server, *method)).lasting() == ran.lasting()


def test_a_kill_between_a_refusal_and_its_decision_loses_nothing(server, tmp_path):
    bad = asks(questions()[7])
    server.backbone.refuses = bad
    whole = launch(tmp_path / "whole", *run(server, "method=base"))
    answered, server.backbone.refused = len(server.backbone.answered), []

    def refuse_and_wait(text):
        if bad(text) and server.backbone.refused:
            time.sleep(30)  # the decision never comes
        return bad(text)

    server.backbone.refuses = refuse_and_wait
    command = [sys.executable, "run.py", *run(server, "method=base"), f"results={tmp_path / 'cut'}"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 60
        while not server.backbone.refused:
            assert time.monotonic() < until
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
    server.backbone.refuses, server.backbone.answered = bad, []
    ran = launch(tmp_path / "cut", *run(server, "method=base"))
    assert ran.status == 0
    assert ran.lasting() == whole.lasting()
    assert len(server.backbone.answered) <= answered - 8 + 2, "only probes, and no sample again"


def test_json_that_the_server_could_not_parse_is_an_unreadable_reply(server, tmp_path):
    server.backbone.refuses, server.backbone.code = asks(questions()[2]), "json_validate_failed"
    server.backbone.said = "Failed to generate JSON. Please adjust your prompt."
    ran = launch(tmp_path, *run(server, "method=base", "agent.scaffold=json"))
    assert ran.status == 0
    assert ran.metrics["unreadable_replies"]["evaluate"] == {"generator": 1}
    assert ran.metrics["faults"]["evaluate"] == {}, "it is an attempt that failed"


@pytest.mark.parametrize(
    "what", ["key_insight", "You are shown one attempt at a question"], ids=["its schema", "its prompt"]
)
def test_a_role_of_which_every_call_is_refused_stops_the_run(what, server, tmp_path):
    server.backbone.refuses = lambda text: what in text
    stopped = launch(
        tmp_path, *run(server, "method=ace", "mode=online", "limit={test: 12}", "backbone.structured=auto")
    )
    assert stopped.status == 3
    assert SAID in json.loads((stopped.folder / "status.json").read_text())["reason"]


@pytest.mark.parametrize("accepts", [False, True])
def test_a_server_that_fails_for_one_prompt_alone_does_not_stop_the_run_for_ever(accepts, server, tmp_path):
    server.backbone.refuses, server.backbone.status = asks(questions()[7]), 500
    accepted = ("accept_faults=true",) if accepts else ()
    ran = launch(tmp_path, *run(server, "method=base", "backbone.retry.times=0", *accepted))
    assert ran.status == 0
    owner = "backbone" if accepts else "model"
    assert ran.metrics["faults"]["evaluate"] == {f"generator/{owner}/server_error": 1}


def test_a_refused_prompt_is_tried_once_with_less_of_the_context(server, tmp_path):
    server.backbone.refuses = lambda text: text.count("\n[") > 3  # in words that nobody knows, a context is too long
    ran = launch(tmp_path, *run(server, "method=ace", "mode=online", "limit={test: 12}"))
    assert ran.status == 0
    assert ran.metrics["dropped_items"]["evaluate"] + ran.metrics["dropped_items"]["adapt"] > 0
