"""What servers say when they refuse one prompt, in their own words, and what sounds like it and is not."""

from functools import partial
from pathlib import Path

import msgspec
import pytest

from ace_bench.backbones.openai_compatible.problems import Disposition, from_status
from ace_bench.core.replies import ask
from tests.backbones.openai_compatible.scripted import PROMPT, answer, client, complete, error, serving


def rows(name, columns):
    """Read a table of ``refusals/``: the server, the status or the code, and what it says."""
    lines = (Path(__file__).parent / "refusals" / f"{name}.txt").read_text().splitlines()
    return [tuple(part.strip() for part in line.split("|", columns - 1)) for line in lines]


@pytest.mark.parametrize(("server", "status", "said"), rows("too_long", 3))
def test_a_prompt_that_is_too_long_is_known_by_what_any_server_says(server, status, said):
    for body in ({"error": {"message": said}}, {"object": "error", "message": said}, [{"error": {"message": said}}]):
        problem = from_status(int(status), body)
        assert (problem.kind, problem.owner) == ("context_length", "model"), (server, said)


@pytest.mark.parametrize(("status", "said"), rows("not_too_long", 2))
def test_what_sounds_like_a_long_prompt_is_none(status, said):
    assert from_status(int(status), {"error": {"message": said}}).kind != "context_length"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "No.", "code": "context_length_exceeded"}}),
        (500, {"error": {"code": 500, "message": "too much", "type": "exceed_context_size_error", "n_ctx": 256}}),
        (400, {"error": {"message": "No.", "code": "1261"}}),
        (413, {"error": {"message": "No.", "code": "tokens_limit_reached"}}),
        (413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
        (413, ""),
        (400, {"error": {"message": "Provider returned error", "metadata": {"raw": "prompt is too long: 9 > 5"}}}),
    ],
)
def test_codes_statuses_and_what_stands_behind_a_router_say_so_too(status, body):
    assert from_status(status, body).kind == "context_length"


def test_a_prompt_over_the_tokens_of_a_minute_is_refused_and_one_behind_others_waits():
    said = "{} for gpt-4o on tokens per min (TPM): Limit 30,000, {}Requested {}. Please try again."
    too_large, late = said.format("Request too large", "", "342389"), said.format("Rate limit", "Used 29000, ", "2000")
    kinds = [from_status(429, {"error": {"message": text}}).kind for text in (too_large, late)]
    assert kinds == ["bad_request", "rate_limited"]


@pytest.mark.parametrize(("server", "status", "said"), rows("filtered", 3))
def test_filters_of_all_providers_are_faults_of_the_prompt(server, status, said):
    problem = from_status(int(status), {"error": {"message": said}})
    assert (problem.kind, problem.owner) == ("content_filter", "model"), server


def test_filters_are_known_by_their_codes_too():
    for codes in ({"code": "1301"}, {"code": "DataInspectionFailed"}, {"status": 1, "code": "SAFETY"}):
        assert from_status(400, {"error": {"message": "No.", **codes}}).kind == "content_filter"
    assert from_status(403, {"code": "No permission", "error": "Content violates usage guidelines."}).owner == "model"


@pytest.mark.parametrize(("status", "said"), rows("not_filtered", 2))
def test_what_sounds_like_a_filter_is_none(status, said):
    assert from_status(int(status), {"error": {"message": said}}).kind != "content_filter"


@pytest.mark.parametrize("ended", ["content_filter", "content_filter: PROHIBITED_CONTENT", "SAFETY", "sensitive"])
def test_a_reply_that_a_filter_ended_is_not_asked_for_again(ended):
    with serving(answer("", ended=ended)) as server, pytest.raises(Exception, match="content filter blocked"):
        complete(server.url)
    assert len(server.asked()) == 1


@pytest.mark.parametrize(("status", "code", "said"), rows("no_json", 3))
def test_a_reply_that_the_server_could_not_parse_is_the_models(status, code, said):
    problem = from_status(int(status), {"error": {"message": said, "code": code, "failed_generation": '{"a": '}})
    assert (problem.kind, problem.owner, problem.text) == ("unreadable_reply", "model", '{"a": ')
    assert problem.disposition is Disposition.FAULT
    assert from_status(int(status), {"error": {"message": said, "code": code}}).kind == "unreadable_reply"


@pytest.mark.parametrize(("status", "code", "said"), rows("refused_schemas", 3))
def test_a_schema_that_the_server_refuses_is_not_the_models(status, code, said):
    problem = from_status(int(status), {"error": {"message": said, "code": code}})
    assert (problem.kind, problem.owner, problem.disposition) == ("bad_request", "backbone", Disposition.FAULT)


def test_what_the_model_wrote_is_read_or_asked_for_once_more():
    class Pair(msgspec.Struct):
        a: str

    def failed(written):
        return error(400, "Failed to generate JSON.", code="json_validate_failed", failed_generation=written)

    for replies, calls in (([failed('So: {"a": "x"}')], 1), ([failed('{"a": '), answer('{"a": "x"}')], 2)):
        with serving(*replies) as server:
            backbone = client(server.url)
            lm = partial(backbone.complete, role="generator", session="s")
            assert ask(lambda messages, schema, lm=lm: lm(messages, schema=schema), PROMPT, Pair) == Pair(a="x")
            assert len(server.asked()) == calls
