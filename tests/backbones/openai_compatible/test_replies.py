"""What becomes of replies: text, usage, dollars, and the written rules for bad ones."""

import json

import pytest

from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import Fault
from tests.backbones.openai_compatible.scripted import USAGE, Reply, answer, complete, serving

pytestmark = pytest.mark.usefixtures("each_client")

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def completed(*replies, **settings):
    with serving(*replies) as server:
        return complete(server.url, **settings), len(server.asked())


def faulted(*replies, **settings) -> tuple[Fault, int]:
    with serving(*replies) as server:
        with pytest.raises(RolloutFault) as caught:
            complete(server.url, **settings)
        return caught.value.fault, len(server.asked())


def test_a_good_reply():
    completion, asked = completed(answer("fine"))
    assert (completion.text, completion.model, completion.retries, completion.waited) == ("fine", "tiny-1", 0, 0.0)
    assert completion.seconds > 0
    assert not completion.replayed
    assert asked == 1


def tokens(usage):
    used = completed(answer(usage=usage))[0].usage
    return used.prompt, used.completion, used.cached


def test_usage_is_what_the_server_reports_and_none_where_it_does_not():
    assert tokens(USAGE) == (100, 20, 60)
    assert tokens(None) == (None, None, None)
    assert tokens({"prompt_tokens": 5}) == (5, None, None)
    assert tokens({"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": None}) == (5, 1, None)
    assert tokens({"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {}}) == (5, 1, None)


def test_cached_tokens_under_deepseeks_name():
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    hits = {"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}
    assert tokens({**usage, **hits}) == (100, 20, 64)
    assert tokens({**usage, **hits, "prompt_tokens_details": {"cached_tokens": 64}}) == (100, 20, 64)
    assert tokens({**usage, "prompt_cache_hit_tokens": 0}) == (100, 20, 0)


def test_dollars_by_the_price_card():
    card = PriceCard(input=2.0, cached_input=0.5, output=10.0)
    expected = (40 * 2.0 + 60 * 0.5 + 20 * 10.0) / 1_000_000
    assert completed(answer(), prices=card)[0].usage.usd == pytest.approx(expected)
    assert completed(answer(usage=None), prices=card)[0].usage.usd is None
    assert completed(answer())[0].usage.usd is None


def test_text_may_come_in_parts_and_reasoning_is_not_part_of_it():
    parts = [{"type": "text", "text": "fi"}, {"type": "text", "text": "ne"}]
    assert completed(answer(parts, reasoning_content="let me think"))[0].text == "fine"


@pytest.mark.parametrize("nothing", ["", None, " \n"])
def test_an_empty_reply_is_asked_for_once_more(nothing):
    completion, asked = completed(answer(nothing), answer("now"))
    assert (completion.text, completion.retries, asked) == ("now", 1, 2)
    assert completion.waited > 0
    # Both replies were paid for.
    assert (completion.usage.prompt, completion.usage.completion, completion.usage.cached) == (200, 40, 120)


def test_two_empty_replies_are_a_fault_of_the_model():
    fault, asked = faulted(answer(""), answer(""), answer("too late"))
    assert (fault.owner, fault.kind, asked) == ("model", "empty_reply", 2)


def test_a_refusal_is_a_fault_and_not_asked_again():
    fault, asked = faulted(answer(None, refusal="I will not."))
    assert (fault.owner, fault.kind, asked) == ("model", "refusal", 1)
    assert "I will not." in fault.message


def test_an_answer_held_back_by_a_filter_is_a_fault():
    fault, asked = faulted(answer("", ended="content_filter"))
    assert (fault.owner, fault.kind, asked) == ("model", "content_filter", 1)


def test_a_plain_answer_cut_at_the_limit_is_passed_on():
    assert completed(answer("as far as it we", ended="length"))[0].text == "as far as it we"


def test_a_json_answer_cut_at_the_limit_is_passed_on_if_it_is_whole():
    whole = '{"a": "b"} and then some wor'
    assert completed(answer(whole, ended="length"), schema=SCHEMA)[0].text == whole
    fault, asked = faulted(answer('{"a": "b', ended="length"), schema=SCHEMA)
    assert (fault.owner, fault.kind, asked) == ("model", "length_truncated", 1)
    assert "max_tokens" in fault.message


def test_an_answer_of_hidden_reasoning_alone_is_length_truncated():
    fault, asked = faulted(answer("", ended="length", reasoning_content="hmm"))
    assert (fault.kind, asked) == ("length_truncated", 1)
    assert "after 20 tokens" in fault.message


@pytest.mark.parametrize(
    "body",
    [b"<html>busy</html>", b"", b'{"choices": [', b"\xff\xfe", {"choices": []}, {}, [1], b"[" * 100_000],
)
def test_a_body_that_is_no_chat_completion_is_tried_again(body):
    completion, asked = completed(Reply(body=body), answer("fine"))
    assert (completion.text, completion.retries, asked) == ("fine", 1, 2)
    fault, asked = faulted(Reply(body=body))
    assert (fault.owner, fault.kind, asked) == ("backbone", "unreadable_body", 4)


def test_an_error_inside_a_good_status_counts_as_that_error():
    fault, asked = faulted(Reply(body={"error": {"message": "upstream is gone"}}))
    assert (fault.kind, asked) == ("server_error", 4)
    fault, asked = faulted(Reply(body={"error": {"message": "no such field", "code": 400}}))
    assert (fault.kind, asked) == ("bad_request", 1)


def body(**changes):
    return json.dumps({**answer().body, **changes}).encode()


@pytest.mark.parametrize(
    "reply",
    [
        body(usage={"prompt_tokens": "100", "completion_tokens": "20"}),
        body(usage={"prompt_tokens": 100.0, "completion_tokens": 2e1}),
        body(model=5),
        body(model={"name": "tiny", "revision": 3}),
        body(system_fingerprint=float("nan"), created="today", simulated="no"),
        b"\xef\xbb\xbf" + answer().payload,
    ],
)
def test_strange_fields_beside_the_text_cost_no_reply(reply):
    completion, asked = completed(Reply(body=reply), answer("asked again"))
    assert (completion.text, completion.retries, asked) == ("fine", 0, 1)
    assert (completion.usage.prompt, completion.usage.completion) == (100, 20)


@pytest.mark.parametrize("half", [rb"\ud83d", b"\xed\xa0\xbd"], ids=["escaped", "bare"])
def test_half_an_emoji_is_replaced_and_the_reply_kept(half, tmp_path):
    reply = answer().payload.replace(b'"fine"', b'"fine ' + half + b'"').replace(b"tiny-1", b"tiny " + half)
    completion, asked = completed(Reply(body=reply), answer("asked again"))
    assert asked == 1
    assert completion.text.startswith("fine ")
    (tmp_path / "kept").write_text(completion.text + completion.model, encoding="utf-8")


def test_half_an_emoji_in_an_error_does_not_keep_it_from_being_written(tmp_path):
    fault, _ = faulted(Reply(status=400, body=rb'{"error": {"message": "no \ud83d here"}}'))
    (tmp_path / "kept").write_text(fault.message, encoding="utf-8")
    assert "no ? here" in fault.message


@pytest.mark.parametrize("count", [-5, 12.5, "many", True, [100], 1e300, float("inf")])
def test_counts_that_no_server_can_have_counted_are_unknown(count):
    assert tokens({"prompt_tokens": count, "completion_tokens": 20}) == (None, 20, None)


@pytest.mark.parametrize("usage", ["none", 7, ["prompt_tokens"]])
def test_a_usage_that_is_no_object_is_unknown(usage):
    assert tokens(usage) == (None, None, None)


def test_more_cached_tokens_than_the_prompt_has_are_unknown():
    assert tokens({"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 6}}) == (
        5, 1, None,
    )  # fmt: skip
