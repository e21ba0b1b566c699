"""What a run's certificate says of its switches and requests, counted from its own records."""

import json
from contextlib import closing
from dataclasses import replace

import pytest

from ace_bench.core.replies import RETRY_START
from ace_bench.core.types import NO_USAGE, Completion, Message, Stage
from ace_bench.report.records import read_run
from ace_bench.store.authors_code import UNKNOWN, Source, with_record
from ace_bench.store.call_log import CallLog, PaidReply
from ace_bench.store.fidelity import certify
from ace_bench.store.files import write_files
from tests.backbones.serving import over_http
from tests.launching import launch
from tests.official.serving import Reply, serving

FIELDS = ("reasoning", "final_answer", "error_identification", "root_cause_analysis", "correct_approach", "key_insight")
REPLY = Reply(json.dumps({**dict.fromkeys(FIELDS, "-1"), "bullet_ids": [], "bullet_tags": [], "operations": []}))
SIZES = ("task=formula", "task.source=sample", "limit={train: 2, val: 1, test: 2}", "estimate=false", "concurrency=1")
THEIR_LOOP = ("protocol=official", "method.max_reflection_rounds=3")
MODES = {"offline": ("mode.eval_every=1",), "online": ("mode=online", "mode.window=2")}
THEIR_CALLS = ("backbone.sampling.seed=null", "backbone.structured=none", "backbone.retry.empty=false")


@pytest.fixture
def play(tmp_path):
    """Runs ACE before a server; returns the run's certificate, and how often the server was asked."""

    def run(*overrides, replies=()):
        asked = []

        def script(messages):
            asked.append(messages)
            return replies[len(asked) - 1] if len(asked) <= len(replies) else REPLY

        with serving(script) as server:
            ran = launch(tmp_path, *over_http(server.url), *SIZES, *overrides)
        assert ran.status == 0
        found = read_run(ran.folder)
        stored = found.metrics["as_authors"]
        older = {key: value for key, value in found.metrics.items() if key != "as_authors"}
        assert replace(found, metrics=older).certificate == stored, "runs of older versions have the same one"
        return stored, len(asked)

    return run


RUNS = {
    "ours": (("mode.epochs=1",), (Reply(""), Reply("no JSON"))),
    **{f"their loop, {mode}": ((*THEIR_LOOP, *words), ()) for mode, words in MODES.items()},
    **{
        f"their loop and calls, {mode}": ((*THEIR_LOOP, *THEIR_CALLS, "repeat_calls=true", *words), (Reply(""),))
        for mode, words in MODES.items()
    },
}


@pytest.mark.parametrize("name", RUNS)
def test_the_certificate_says_what_differs_and_counts_what_was_sent(snapshot, name, play):
    overrides, replies = RUNS[name]
    found, asked = play(*overrides, replies=replies)
    assert found["equal"] == found["switches"] - len(found["differs"])
    text = json.dumps({"asked": asked, **{key: found[key] for key in ("code", "differs", "requests")}}, indent=1)
    assert f"{text}\n" == snapshot


@pytest.mark.parametrize(
    ("commit", "differs", "unknown"),
    [("ba78d34c0ffee", None, False), ("ba78d34, with changes", {"theirs": "ba78d34"}, False), (UNKNOWN, None, True)],
)
def test_imported_prompts_are_theirs_if_their_commit_is(commit, differs, unknown, tmp_path):
    source = Source(repository="ace-agent/ace", commit=commit, licence="MIT")
    write_files({tmp_path / "set" / name: text for name, text in with_record({}, [source]).items()})
    ran = launch(tmp_path, *SIZES, "protocol=official", f"prompts={tmp_path / 'set'}")
    found = ran.metrics["as_authors"]
    assert found["unknown"] == ["prompts"] * unknown
    assert found["differs"].get("prompts") == (differs and {"ours": commit, **differs})


def test_a_reply_asked_for_again_by_a_later_process_counts_where_its_words_are_those_of_another(tmp_path):
    question, reply = Message(role="user", content="Which?"), Message(role="assistant", content="no JSON")
    again = Message(role="user", content=f"{RETRY_START}it holds no object. Send only the JSON object asked for above.")
    for process in (["one"], ["two", "two again", "one again"]):
        with closing(CallLog(tmp_path / "calls.jsonl")) as calls:
            for session in process:
                messages = [question, *([reply, again] if "again" in session else [])]
                request = calls.prepare(session.split()[0], "generator", messages, schema=None, settings={})
                done = PaidReply(completion=Completion(text="no JSON", usage=NO_USAGE, seconds=0.1))
                calls.add(f"{request.name}/0", done, stage=Stage.ADAPT, request=request)
    found = certify(tmp_path, {"task": "formula", "method": "base", "calls": {}})
    assert found["requests"]["asked_again"] == {"empty": 0, "unreadable": 2}


def test_what_no_code_was_published_for_counts_as_unknown(tmp_path):
    ran = launch(tmp_path, "task=finer", "method=base", "limit=2")
    found = read_run(ran.folder).certificate
    assert (found["code"], found["requests"]["compared"]) == (None, 0)
    assert "equal" not in found
    said = " ".join((ran.folder / "summary.txt").read_text().split())
    assert "unknown, as the authors published no code" in said.replace("│ │ ", "")
    assert "stand-ins answered" in said
