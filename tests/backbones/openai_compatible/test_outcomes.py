"""What becomes of a server's replies: text, tokens and dollars, faults with the server's words, retries, stops."""

import email.utils
import json
import time

import pytest

from ace_bench.backbones.openai_compatible.problems import from_status
from ace_bench.backbones.openai_compatible.settings import Retry
from ace_bench.core.errors import BackboneUnavailable, RolloutFault
from tests.backbones.openai_compatible.scripted import CUT, DROP, Reply, answer, complete, error, serving

pytestmark = pytest.mark.usefixtures("each_client")

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def completed(*replies, **settings):
    with serving(*replies) as server:
        return complete(server.url, **settings), len(server.asked())


def body(**changes):
    return json.dumps({**answer().body, **changes}).encode()


def too_long(words="", status=400, **more):
    return error(status, words, **more), ("model", "context_length"), 1, "sampling.max_tokens"


def passing(reply, kind):
    return reply, ("backbone", kind), 4, "after 3 retries"


def refused(reply, words):
    return reply, ("backbone", "bad_request"), 1, words


def unreadable(content):
    return Reply(body=content), ("backbone", "unreadable_body"), 4, "not a chat completion"


FAULTS = {
    "too long for OpenAI": too_long("Your input is over the limit.", code="context_length_exceeded"),
    "too long for vLLM": too_long("This model's maximum context length is 131072 tokens. However, you", code=400),
    "too long, a flat error": (Reply(status=400, body={"message": "maximum context length is 32768"}), *too_long()[1:]),
    "too long to decode": too_long("The decoder prompt (length 9000) is longer than the maximum model length of 8192."),
    "too long behind Together": too_long("`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9001", status=422),
    "too long, FastAPI": (Reply(status=413, body={"detail": "prompt is too long: 2 tokens > 1"}), *too_long()[1:]),
    "refused": refused(error(400, "none of these"), "HTTP 400: none of these"),
    "refused in a list": refused(
        Reply(status=422, body={"detail": [{"loc": ["body", "n"], "msg": "field required"}]}), "field required"
    ),
    "refused in plain text": refused(Reply(status=418, body="stout"), "HTTP 418: stout"),
    "half an emoji": refused(Reply(status=400, body=rb'{"error": {"message": "no \ud83d here"}}'), "no ? here"),
    "Azure's filter": (
        Reply(status=400, body={"error": {"message": "No.", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
        ("model", "content_filter"),
        1,
        "HTTP 400: No.",
    ),
    "held back": (answer("", ended="content_filter"), ("model", "content_filter"), 1, "filter"),
    "a refusal": (answer(None, refusal="I will not."), ("model", "refusal"), 1, "I will not."),
    "empty twice": (answer(" \n"), ("model", "empty_reply"), 2, "empty"),
    "null twice": (answer(None), ("model", "no_content"), 2, "empty"),
    "hidden reasoning alone": (
        answer("", ended="length", reasoning_content="hmm"),
        ("model", "length_truncated"),
        1,
        "after 20 tokens",
    ),
    "503": passing(Reply(status=503, body=b"<html>overloaded</html>"), "server_error"),
    "dropped": passing(DROP, "dropped"),
    "cut": passing(CUT, "dropped"),
    "an error with status 200": passing(Reply(body={"error": {"message": "upstream is gone"}}), "server_error"),
    "an error with a code": refused(Reply(body={"error": {"message": "no such field", "code": 400}}), "no such field"),
    **{
        f"unreadable {number}": unreadable(content)
        for number, content in enumerate(
            (b"<html>busy</html>", b"", b"\xff\xfe", {"choices": []}, {}, [1], b"[" * 99_999)
        )
    },
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_reply_that_cannot_be_used_is_a_fault_with_an_owner_and_the_servers_words(case):
    reply, owner_and_kind, calls, words = FAULTS[case]
    with serving(reply) as server:
        with pytest.raises(RolloutFault) as caught:
            complete(server.url)
        assert len(server.asked()) == calls
    fault = caught.value.fault
    assert (fault.owner, fault.kind) == owner_and_kind
    assert words in fault.message
    assert fault.message.encode()


STOPS = {
    "no key": (error(401, "Incorrect API key provided.", code="invalid_api_key"), "api_key_env=NAME"),
    "no balance": (error(402, "Insufficient Balance"), "top up"),
    "no quota": (error(429, "You exceeded your current quota, please check your plan."), "top up"),
    "no such model": (error(404, "The model `x` does not exist or you do not have access."), "does list tiny"),
    "no such page": (error(404, "Not Found"), "tiny"),
    "no such model, 400": (error(400, "Model Not Exist"), "tiny"),
    "not a model": (error(400, "acme/model is not a valid model ID"), "tiny"),
    "more patience than there is": (
        Reply(status=429, body=error(429, "slow down").body, headers={"Retry-After": "700"}),
        r"slow down.*longer than backbone\.retry\.seconds=600",
    ),
}


@pytest.mark.parametrize("case", STOPS)
def test_what_every_call_would_meet_stops_the_run_at_once_and_names_the_fix(case):
    reply, words = STOPS[case]
    with serving(reply) as server:
        with pytest.raises(BackboneUnavailable, match=rf"HTTP {reply.status}.*{words}"):
            complete(server.url)
        assert len(server.asked()) == 1


KINDS = {
    "no": {
        **dict.fromkeys((400, 405, 413, 418, 422), "bad_request"),
        **dict.fromkeys((300, 307, 399), "redirected"),
        **dict.fromkeys((500, 503, 529, 599), "server_error"),
        **dict.fromkeys((401, 403), "authentication"),
        402: "quota_exhausted",
        404: "unknown_model",
        408: "timeout",
        409: "conflict",
        429: "rate_limited",
    },
    "insufficient_quota": dict.fromkeys((400, 402, 403, 429), "quota_exhausted"),
    "flagged": dict.fromkeys((400, 403, 422), "content_filter") | {401: "authentication", 429: "rate_limited"},
    "context window": dict.fromkeys((400, 404, 413, 422, 500), "context_length") | {503: "server_error"},
    "unsupported: temperature": {400: "bad_request", 500: "bad_request", 503: "bad_request", 429: "rate_limited"},
    "model_not_found": dict.fromkeys((400, 404, 422), "unknown_model") | {500: "server_error"},
}
STOPPING = {"quota_exhausted", "authentication", "unknown_model", "redirected"}
RETRIED = {"rate_limited", "timeout", "conflict", "server_error"}


@pytest.mark.parametrize("words", KINDS)
def test_status_and_words_decide_what_a_problem_is_and_what_follows(words):
    found = {status: from_status(status, {"error": words}) for status in KINDS[words]}
    assert {status: problem.kind for status, problem in found.items()} == KINDS[words]
    for problem in found.values():
        follows = "stop" if problem.kind in STOPPING else "retry" if problem.kind in RETRIED else "fault"
        owner = "model" if problem.kind in ("content_filter", "context_length") else "backbone"
        assert (problem.disposition.value, problem.owner) == (follows, owner)


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "=max_completion_tokens"),
        ("Unsupported value: 'temperature' does not support 0.0 with this model.", "sampling.temperature=null"),
        ("Invalid schema for response_format 'Reply'", "structured=auto"),
        ("Unrecognized request argument supplied: cache_salt", "cache.salt=null"),
        ("x" * 10_000, "x..."),
    ],
)
def test_a_refused_setting_names_its_fix_and_long_words_are_cut(said, hint):
    message = from_status(400, {"error": {"message": said}}).message
    assert hint in message
    assert len(message) <= len("HTTP 400: ") + 600 + len("...")


def test_an_unknown_model_is_told_which_there_are():
    models = ["Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B", "meta/llama"]
    for listed, named, said in (
        (models, "Qwen3-0.6B", r"Qwen/Qwen3-0\.6B"),
        (models, "zzz", "meta/llama$"),
        (models, "meta/llama", "does list meta/llama"),
        ([f"m{number}" for number in range(9)], "zzz", "m7 and 1 more"),
        ([], "zzz", "in /v1"),
    ):
        with serving(error(404, "Not Found"), models=listed) as server, pytest.raises(BackboneUnavailable, match=said):
            complete(server.url, model=named)


def test_a_redirect_is_not_followed_because_the_key_would_go_along():
    with serving() as elsewhere, serving(Reply(status=307, headers={"Location": elsewhere.url})) as server:
        with pytest.raises(BackboneUnavailable, match=r"correct backbone\.base_url"):
            complete(server.url)
        assert not elsewhere.seen


def test_where_nobody_listens_the_run_stops():
    with serving(DROP) as server:
        gone = server.url  # the first attempt may still be dropped; that it is gone at the end is what counts
    for url in (gone, "http://no-such-host.invalid/v1"):
        with pytest.raises(BackboneUnavailable, match=r"cannot be reached.*backbone\.base_url") as caught:
            complete(url, retry=Retry(times=1, first_pause=0.001))
        assert url in caught.value.reason


@pytest.mark.parametrize(
    "reply",
    [*(error(status, "not now") for status in (408, 409, 429, 503, 529)), DROP, CUT, Reply(body=b'{"choices": [')],
)
def test_a_passing_failure_is_tried_again_and_waiting_is_kept_apart(reply):
    completion, asked = completed(reply, reply, answer("fine"))
    assert (completion.text, completion.retries, asked) == ("fine", 2, 3)
    assert completion.waited > 0
    assert completion.usage.prompt == 100


@pytest.mark.parametrize("nothing", ["", None, " \n"])
def test_an_empty_reply_is_asked_for_once_more_and_both_are_paid_for(nothing):
    completion, asked = completed(answer(nothing), answer("now"))
    assert (completion.text, completion.retries, asked) == ("now", 1, 2)
    assert completion.waited > 0
    assert (completion.usage.prompt, completion.usage.completion, completion.usage.cached) == (200, 40, 120)


HOUR = email.utils.formatdate(time.time() + 3600, usegmt=True)
PAUSES = [{"Retry-After": "7"}, {"retry-after-ms": "7000"}, {"Retry-After": "1", "Retry-After-Ms": "7000"}]


@pytest.mark.parametrize("headers", [*PAUSES, {"Retry-After": HOUR}])
def test_retry_after_is_read_in_all_its_forms(headers):
    # The pause asked for is longer than the client's patience, so the run is to go on later.
    reply = Reply(status=429, body=error(429, "slow down").body, headers=headers)
    with pytest.raises(BackboneUnavailable, match=r"longer than backbone\.retry\.seconds=6\.5"):
        completed(reply, answer(), retry=Retry(times=3, seconds=6.5, first_pause=0.001))


@pytest.mark.parametrize("value", ["soon", "-3", "nan", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_a_retry_after_that_says_nothing_does_no_harm(value):
    reply = Reply(status=429, body=error(429, "slow down").body, headers={"Retry-After": value})
    assert completed(reply, answer("fine"))[0].retries == 1


@pytest.mark.parametrize(
    "reply",
    [
        answer([{"type": "text", "text": "fi"}, {"type": "text", "text": "ne"}], reasoning_content="let me think").body,
        body(usage={"prompt_tokens": "100", "completion_tokens": "20"}),
        body(usage={"prompt_tokens": 100.0, "completion_tokens": 2e1}),
        body(model=5),
        body(model={"name": "tiny", "revision": 3}),
        body(system_fingerprint=float("nan"), created="today", simulated="no"),
        b"\xef\xbb\xbf" + answer().payload,
        *(answer().payload.replace(b"tiny-1", b"tiny " + half) for half in (rb"\ud83d", b"\xed\xa0\xbd")),
    ],
)
def test_strange_fields_beside_the_text_cost_no_reply(reply):
    completion, asked = completed(Reply(body=reply), answer("asked again"))
    assert (completion.text, completion.retries, asked) == ("fine", 0, 1)
    assert (completion.usage.prompt, completion.usage.completion) == (100, 20)
    assert completion.model.encode()


def test_an_answer_cut_at_the_limit_is_passed_on_where_it_can_be_used():
    completion, _ = completed(answer("as far as it we", ended="length"))
    assert (completion.text, completion.cut) == ("as far as it we", True)
    whole = '{"a": "b"} and then some wor'
    assert completed(answer(whole, ended="length"), schema=SCHEMA)[0].text == whole
    with pytest.raises(RolloutFault, match=r"length_truncated: .*max_tokens"):
        completed(answer('{"a": "b', ended="length"), schema=SCHEMA)
