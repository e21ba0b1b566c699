"""What a reply says in the many forms that servers send: parts, thoughts, refusals, and fields that are malformed."""

import json

import pytest

from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import Usage
from tests.backbones.openai_compatible.scripted import PROMPT, Reply, answer, client, complete, serving

THINKING = "The sum is easy."
FINE = "42"


def parts(*content):
    return {"content": list(content)}


def text(words, kind="text"):
    return {"type": kind, "text": words}


MESSAGES = {
    "one text": {"content": FINE},
    "parts of a text": parts(text("4"), text("2")),
    "output_text, as in OpenAI's responses": parts(text(FINE, "output_text")),
    "input_text": parts(text(FINE, "input_text")),
    "texts among the parts": parts("4", "2"),
    "a part without a type": parts({"text": FINE}),
    "a text with annotations": parts({"type": "text", "text": {"value": FINE, "annotations": []}}),
    "one part alone": {"content": text(FINE)},
    "a number": {"content": 42},
    "null fields beside it": {"content": FINE, "refusal": None, "tool_calls": None, "reasoning_content": None},
    "an image beside it": parts({"type": "image_url", "image_url": {"url": "x"}}, text(FINE)),
    "a false refusal": {"content": FINE, "refusal": False},
    "odd tool calls": {"content": FINE, "tool_calls": {"id": 1}},
}
THOUGHTS = {
    "vLLM, DeepSeek, llama.cpp": {"content": FINE, "reasoning_content": THINKING},
    "OpenRouter, Groq, newer vLLM": {"content": FINE, "reasoning": THINKING},
    "OpenRouter's details": {"content": FINE, "reasoning_details": [{"type": "reasoning.text", "text": THINKING}]},
    "both of them, counted once": {
        "content": FINE,
        "reasoning": THINKING,
        "reasoning_details": [{"type": "reasoning.summary", "summary": THINKING}],
    },
    "Ollama": {"content": FINE, "thinking": THINKING},
    "LiteLLM": {"content": FINE, "thinking_blocks": [{"type": "thinking", "thinking": THINKING, "signature": "s"}]},
    "Mistral": parts({"type": "thinking", "thinking": [text(THINKING)]}, text(FINE)),
    "a part of type reasoning": parts({"type": "reasoning", "reasoning": THINKING}, text(FINE)),
    "a part of type reasoning_text": parts(text(THINKING, "reasoning_text"), text(FINE)),
}


def reply_to(message, **choice):
    body = answer().body
    return Reply(body={**body, "choices": [{**body["choices"][0], "message": message, **choice}]})


def completed(reply):
    with serving(reply) as server:
        return complete(server.url), len(server.asked())


@pytest.mark.parametrize("name", MESSAGES)
def test_a_text_is_read_in_every_form(name):
    completion, asked = completed(reply_to({"role": "assistant", **MESSAGES[name]}))
    assert (completion.text, completion.thoughts, asked) == (FINE, "", 1)


@pytest.mark.parametrize("name", THOUGHTS)
def test_thoughts_beside_the_text_are_kept_apart(name):
    completion, asked = completed(reply_to(THOUGHTS[name]))
    assert (completion.text, completion.thoughts, asked) == (FINE, THINKING, 1)


REFUSALS = ({"content": None, "refusal": "No."}, parts({"type": "refusal", "refusal": "No."}))


@pytest.mark.parametrize("message", REFUSALS)
def test_a_refusal_is_one_wherever_it_stands(message):
    with pytest.raises(RolloutFault, match=r"refused: No\."):
        completed(reply_to(message))


def test_a_reply_without_text_says_what_it_holds():
    image = parts({"type": "image_url", "image_url": {"url": "x"}}, {"type": "audio"})
    with pytest.raises(RolloutFault, match="only parts of type image_url, audio, which are not read"):
        completed(reply_to(image))
    with pytest.raises(RolloutFault, match=r"reports all of it as reasoning\. Start .* without --reasoning-parser"):
        completed(reply_to({"content": None, "reasoning_content": FINE}))


BODY = answer(FINE).body
CHOICE = BODY["choices"][0]
NEIGHBOURS = {
    "a malformed second choice": {"choices": [CHOICE, {"message": 5}]},
    "a second choice of null": {"choices": [CHOICE, None]},
    "no finish reason": {"choices": [{"message": CHOICE["message"]}]},
    "a finish reason of another type": {"choices": [{**CHOICE, "finish_reason": {"type": "stop", "matched": 7}}]},
    "log probabilities of another form": {"choices": [{**CHOICE, "logprobs": ["odd", {"x": 1}]}]},
    "the older form of completions": {"choices": [{"text": FINE, "index": "0"}]},
    "a creation time in words": {"created": "today", "id": 7, "object": None, "system_fingerprint": {}},
    "usage of another type": {"usage": [1]},
    "an empty error": {"error": None, "warnings": ["x"]},
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_what_is_malformed_beside_the_first_text_costs_no_reply(name):
    completion, asked = completed(Reply(body={**BODY, **NEIGHBOURS[name]}))
    assert (completion.text, asked) == (FINE, 1)


@pytest.mark.parametrize("ended", ["max_tokens", "MAX_TOKENS", "model_length", {"type": "length", "length": 9}])
def test_the_limit_of_the_length_is_known_by_its_other_names(ended):
    assert completed(reply_to({"content": FINE}, finish_reason=ended))[0].cut


@pytest.mark.parametrize("choice", [{"finish_reason": "abort"}, {"finish_reason": "error", "error": {"code": 503}}])
def test_a_reply_that_the_server_broke_off_is_asked_for_again(choice):
    with serving(reply_to({"content": "4"}, **choice), answer(FINE)) as server:
        completion = complete(server.url)
    assert (completion.text, completion.retries) == (FINE, 1)


COUNTED = {"prompt_tokens": 100, "completion_tokens": 20}
USAGES = [
    ({**COUNTED, "prompt_tokens_details": {"cached_tokens": 60}}, {}, (100, 60)),
    ({**COUNTED, "prompt_tokens_details": {"cached_tokens": 0}}, {}, (100, 0)),
    ({**COUNTED, "prompt_tokens_details": {"cached_tokens": None}, "cached_tokens": 60}, {}, (100, 60)),
    ({**COUNTED, "cached_tokens": 60}, {}, (100, 60)),
    ({**COUNTED, "cached_tokens": 0}, {}, (100, 0)),
    ({**COUNTED, "prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40}, {}, (100, 60)),
    ({**COUNTED, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10}, {}, (100, 60)),
    ({**COUNTED, "num_cached_tokens": 60}, {}, (100, 60)),
    (
        {"input_tokens": 30, "output_tokens": 20, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10},
        {},
        (100, 60),
    ),
    (
        {
            "prompt_tokens": 30,
            "completion_tokens": 20,
            "cache_read_input_tokens": 60,
            "cache_creation_input_tokens": 10,
        },
        {},
        (100, 60),
    ),
    ({"input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 60}}, {}, (100, 60)),
    (COUNTED, {"timings": {"cache_n": 60, "prompt_n": 40}}, (100, 60)),
    (COUNTED, {"timings": {"cache_n": 0}}, (100, 0)),
    (COUNTED, {"tokens_cached": 60}, (100, 60)),
    (COUNTED, {"timings": [], "tokens_cached": "x"}, (100, None)),
    (COUNTED, {}, (100, None)),
]


@pytest.mark.parametrize(("usage", "beside", "expected"), USAGES)
def test_cached_tokens_are_read_where_servers_put_them(usage, beside, expected):
    completion, _ = completed(Reply(body={**BODY, "usage": usage, **beside}))
    assert completion.usage == Usage(prompt=expected[0], completion=20, cached=expected[1])


def test_usage_within_the_choice_is_read():
    completion, _ = completed(Reply(body={**BODY, "usage": None, "choices": [{**CHOICE, "usage": COUNTED}]}))
    assert (completion.usage.prompt, completion.usage.completion) == (100, 20)


SILENT = answer(None, reasoning_content=json.dumps({"answer": FINE}))


def test_replies_that_stay_empty_are_asked_for_again_three_times_and_not_more():
    with serving(SILENT) as server:
        faults = _faults(server, calls=10)
        asked = len(server.asked())
    assert (faults, asked) == (["no_content"] * 10, 10 + 3)


def test_a_text_in_between_makes_asking_again_worth_it():
    with serving(*[SILENT] * 6, SILENT, answer(FINE), SILENT, answer(FINE)) as server:
        faults = _faults(server, calls=6)
        asked = len(server.asked())
    assert faults == ["no_content"] * 4 + ["", ""]
    assert asked == 3 * 2 + 1 + 1 + 2


def _faults(server, *, calls):
    backbone, found = client(server.url), []
    for _ in range(calls):
        try:
            backbone.complete(PROMPT, role="generator", session="s")
            found.append("")
        except RolloutFault as error:
            found.append(error.fault.kind)
    return found
