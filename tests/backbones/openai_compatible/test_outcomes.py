"""What becomes of a server's replies: text, tokens and dollars, faults with the server's words, retries, stops."""

import email.utils
import json
import re
import time

import pytest

from ace_bench.backbones.openai_compatible.problems import from_status
from ace_bench.backbones.openai_compatible.settings import Retry
from ace_bench.core.errors import BackboneUnavailable, RolloutFault
from ace_bench.core.replies import offer
from tests.backbones.openai_compatible.scripted import CUT, DROP, Reply, answer, complete, error, serving
from tests.outcomes import as_texts, outcomes

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def completed(*replies, **settings):
    with serving(*replies) as server:
        return complete(server.url, **settings), len(server.asked())


def body(**changes):
    return json.dumps({**answer().body, **changes}).encode()


ODD = {
    "half an emoji": Reply(status=400, body=rb'{"error": {"message": "no \ud83d here"}}'),
    "503": Reply(status=503, body=b"<html>overloaded</html>"),
    "dropped": DROP,
    "cut": CUT,
}
UNREADABLE = (b"<html>busy</html>", b"", b"\xff\xfe", {"choices": []}, {}, [1], b"[" * 99_999)


def what_became(reply):
    """Return the error that a reply ends in and the number of requests."""
    with serving(reply) as server:
        try:
            complete(server.url)
        except RolloutFault as fault:
            found = f"fault of the {fault.fault.owner}: {fault.fault.kind}: {fault.fault.message}"
        except BackboneUnavailable as stopped:
            found = f"stop: {stopped.reason}"
        found = re.sub(r"(connection was lost|not a chat completion): .* \(", r"\1 (", found)  # words of libraries
        return f"{found.replace(server.url, 'URL').encode().decode()} ({len(server.asked())} requests)"


def reply_of(case):
    """Read a reply behind its name: a status and a body, or the text and more of a completion."""
    given = json.loads(case.partition(": ")[2])
    return Reply(**given) if "status" in given else answer(given.pop("text"), **given)


FAULTS = [
    (
        'too long for OpenAI: {"status": 400, "body": {"error": {"message": "Your input is over the '
        'limit.", "code": "context_length_exceeded"}}}'
    ),
    (
        'too long for vLLM: {"status": 400, "body": {"error": {"message": "This model\'s maximum context '
        'length is 131072 tokens. However, you", "code": 400}}}'
    ),
    'too long, a flat error: {"status": 400, "body": {"message": "maximum context length is 32768"}}',
    (
        'too long to decode: {"status": 400, "body": {"error": {"message": "The decoder prompt (length '
        '9000) is longer than the maximum model length of 8."}}}'
    ),
    (
        'too long behind Together: {"status": 422, "body": {"error": {"message": "`inputs` tokens + '
        '`max_new_tokens` must be <= 8193. Given: 9001"}}}'
    ),
    'too long, FastAPI: {"status": 413, "body": {"detail": "prompt is too long: 2 tokens > 1"}}',
    'refused: {"status": 400, "body": {"error": {"message": "none of these"}}}',
    'refused in a list: {"status": 422, "body": {"detail": [{"loc": ["body", "n"], "msg": "field required"}]}}',
    'refused in plain text: {"status": 418, "body": "stout"}',
    (
        'Azure\'s filter: {"status": 400, "body": {"error": {"message": "No.", "innererror": {"code": '
        '"ResponsibleAIPolicyViolation"}}}}'
    ),
    'held back: {"text": "", "ended": "content_filter"}',
    'a refusal: {"text": null, "refusal": "I will not."}',
    'empty twice: {"text": " \\n"}',
    'null twice: {"text": null}',
    'hidden reasoning alone: {"text": "", "ended": "length", "reasoning_content": "hmm"}',
    'an error with status 200: {"status": 200, "body": {"error": {"message": "upstream is gone"}}}',
    'an error with a code: {"status": 200, "body": {"error": {"message": "no such field", "code": 400}}}',
    (
        'no key: {"status": 401, "body": {"error": {"message": "Incorrect API key provided.", "code": '
        '"invalid_api_key"}}}'
    ),
    'no balance: {"status": 402, "body": {"error": {"message": "Insufficient Balance"}}}',
    (
        'no quota: {"status": 429, "body": {"error": {"message": "You exceeded your current quota, please '
        'check your plan."}}}'
    ),
    (
        'no such model: {"status": 404, "body": {"error": {"message": "The model `x` does not exist or you '
        'do not have access."}}}'
    ),
    'no such page: {"status": 404, "body": {"error": {"message": "Not Found"}}}',
    'no such model, 400: {"status": 400, "body": {"error": {"message": "Model Not Exist"}}}',
    'not a model: {"status": 400, "body": {"error": {"message": "acme/model is not a valid model ID"}}}',
    'more patience than there is: {"status": 429, "body": {"error": "slow down"}, "headers": {"Retry-After": "700"}}',
]


def test_a_reply_that_cannot_be_used_is_a_fault_or_stops_the_run_and_names_the_fix(snapshot):
    assert outcomes(lambda case: what_became(reply_of(case)), FAULTS) == snapshot
    odd = ODD | {f"unreadable {number}": Reply(body=body) for number, body in enumerate(UNREADABLE)}
    assert as_texts([(name, what_became(reply)) for name, reply in odd.items()]) == snapshot


STATUSES = (300, 307, 399, 400, 401, 402, 403, 404, 405, 408, 409, 413, 418, 422, 429, 500, 503, 529, 599)
WORDS = ("no", "insufficient_quota", "flagged", "context window", "unsupported: temperature", "model_not_found")


def test_status_and_words_decide_what_a_problem_is_and_what_follows(snapshot):
    found = []
    for words in WORDS:
        problems = {status: from_status(status, {"error": words}) for status in STATUSES}
        kinds = {f"{one.kind}, {one.disposition.value}, {one.owner}": [] for one in problems.values()}
        for status, one in problems.items():
            kinds[f"{one.kind}, {one.disposition.value}, {one.owner}"].append(status)
        found += [(f"{words}: {kind}", statuses) for kind, statuses in kinds.items()]
    assert as_texts(found) == snapshot


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
        *(answer().payload.replace(b'"tiny"', b'"tiny ' + half + b'"') for half in (rb"\ud83d", b"\xed\xa0\xbd")),
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


BLANKS = {"spaces": " " * 500, "lines": "\n" * 500, "indented lines": "\n  \t" * 90, "wide spaces": "\u3000" * 90}


@pytest.mark.parametrize("blanks", BLANKS.values(), ids=BLANKS)
def test_a_reply_that_ends_in_blanks_names_the_option_of_the_server_and_not_a_higher_limit(blanks):
    with pytest.raises(RolloutFault, match="ended in blanks") as caught:
        completed(answer(f'{{"a":{blanks}', ended="length"), schema=SCHEMA)
    assert "disable_any_whitespace" in caught.value.fault.message
    assert "max_tokens" not in caught.value.fault.message
    assert caught.value.paid.cut_in_blanks
    code = f"def f():\n    return 1\n{' ' * 12}"
    assert not completed(answer(code, ended="length"))[0].cut_in_blanks
    assert not completed(answer(f"done{blanks}"))[0].cut_in_blanks


ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


def test_a_reply_of_calls_alone_is_not_empty():
    with serving(answer(None, tool_calls=[CALL, {"id": "c2"}, "odd"], ended="tool_calls")) as server:
        reply = complete(server.url, schema=offer([ADD], "auto"))
    assert json.loads(reply.text) == {
        "content": "",
        "tool_calls": [{"id": "c1", "name": "add", "arguments": '{"a": 1}'}],
    }
    (sent,) = server.asked()
    assert sent["tools"] == [ADD]
    assert sent["tool_choice"] == "auto"
    assert "response_format" not in sent


def test_text_is_passed_on_beside_offered_tools():
    with serving(answer("Cut.", ended="length")) as server:
        reply = complete(server.url, schema=offer([ADD]))
    assert json.loads(reply.text) == {"content": "Cut.", "tool_calls": []}


@pytest.mark.parametrize(
    ("reply", "schema", "kind"),
    [
        (answer("", tool_calls=[CALL], ended="length"), offer([ADD]), "length_truncated"),
        (answer("", tool_calls=[]), offer([ADD]), "empty_reply"),
        (answer("", tool_calls=[CALL]), None, "empty_reply"),
    ],
    ids=["cut", "empty", "nobody offered tools"],
)
def test_calls_that_cannot_be_used_are_faults_that_were_paid_for(reply, schema, kind):
    with serving(reply) as server, pytest.raises(RolloutFault) as caught:
        complete(server.url, schema=schema)
    assert caught.value.fault.kind == kind
    assert caught.value.paid.usage.prompt
