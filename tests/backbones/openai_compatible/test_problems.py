"""Error replies as servers really word them, and the hints that users see."""

import pytest

from ace_bench.backbones.openai_compatible.problems import Disposition, from_status
from ace_bench.core.errors import BackboneUnavailable, RolloutFault
from tests.backbones.openai_compatible.scripted import Reply, complete, error, serving

pytestmark = pytest.mark.usefixtures("each_client")

TOO_LONG = [
    # OpenAI
    (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 128000 tokens. However, your messages resulted in "
                "131007 tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
    ),
    (400, {"error": {"message": "Your input is over the limit.", "code": "context_length_exceeded"}}),
    # vLLM: flat in older versions, nested in newer ones
    (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 32768 tokens. However, you requested 41648 tokens "
            "(37552 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 131072 tokens. However, you requested 102400 output "
                "tokens and your prompt contains at least 28673 input tokens, for a total of at least 131073 tokens.",
                "type": "BadRequestError",
                "param": "input_tokens",
                "code": 400,
            }
        },
    ),
    (400, {"error": {"message": "The decoder prompt (length 9000) is longer than the maximum model length of 8192."}}),
    # DeepSeek
    (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 131072 tokens. However, you requested 136000 tokens "
                "(131904 in the messages, 4096 in the completion).",
                "type": "invalid_request_error",
                "param": None,
                "code": "invalid_request_error",
            }
        },
    ),
    # Together, and text-generation servers behind it
    (
        422,
        {
            "error": {
                "message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9001 "
                "`inputs` tokens and 4096 `max_new_tokens`",
                "type": "invalid_request_error",
            }
        },
    ),
    (413, {"detail": "prompt is too long: 210000 tokens > 200000 maximum"}),
]


@pytest.mark.parametrize(("status", "body"), TOO_LONG)
def test_a_prompt_over_the_context_length_is_known_by_its_words(status, body):
    with serving(Reply(status=status, body=body)) as server:
        with pytest.raises(RolloutFault) as caught:
            complete(server.url)
        assert len(server.asked()) == 1
    assert (caught.value.fault.owner, caught.value.fault.kind) == ("model", "context_length")
    assert "sampling.max_tokens" in caught.value.fault.message


STOPS = [
    (401, {"message": "Incorrect API key provided.", "code": "invalid_api_key"}, "authentication"),
    (403, {"message": "Country, region, or territory not supported"}, "authentication"),
    (402, {"message": "Insufficient Balance", "code": "invalid_request_error"}, "quota_exhausted"),
    (
        429,
        {"message": "You exceeded your current quota, please check your plan.", "code": "insufficient_quota"},
        "quota_exhausted",
    ),
    (404, {"message": "The model `gpt-5.1-turbo` does not exist or you do not have access."}, "unknown_model"),
    (404, {"message": "Not Found"}, "unknown_model"),
    (400, {"message": "Model Not Exist", "type": "invalid_request_error"}, "unknown_model"),
    (400, {"message": "acme/model is not a valid model ID"}, "unknown_model"),
]


@pytest.mark.parametrize(("status", "said", "kind"), STOPS)
def test_what_every_call_would_meet_stops_the_run_at_once(status, said, kind):
    problem = from_status(status, {"error": said})
    assert (problem.kind, problem.disposition) == (kind, Disposition.STOP)
    with serving(Reply(status=status, body={"error": said})) as server:
        with pytest.raises(BackboneUnavailable, match=f"HTTP {status}"):
            complete(server.url)
        assert len(server.asked()) == 1


@pytest.mark.parametrize(
    ("status", "body", "owner", "kind"),
    [
        (400, {"error": {"message": "messages must not be empty"}}, "backbone", "bad_request"),
        (422, {"detail": [{"loc": ["body", "n"], "msg": "field required"}]}, "backbone", "bad_request"),
        (418, "short and stout", "backbone", "bad_request"),
        (
            400,
            {"error": {"message": "No.", "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
            "model",
            "content_filter",
        ),
        (403, {"error": {"message": "Your input was flagged", "code": 403}}, "model", "content_filter"),
    ],
)
def test_a_request_that_is_refused_is_a_fault_with_the_servers_words(status, body, owner, kind):
    with serving(Reply(status=status, body=body)) as server:
        with pytest.raises(RolloutFault) as caught:
            complete(server.url)
        assert len(server.asked()) == 1
    assert (caught.value.fault.owner, caught.value.fault.kind) == (owner, kind)
    assert f"HTTP {status}" in caught.value.fault.message


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens_field"),
        ("Unsupported value: 'temperature' does not support 0.0 with this model.", "sampling.temperature=null"),
        ("response_format json_schema is not supported", "structured=auto"),
        ("Invalid schema for response_format 'Reply'", "structured=auto"),
        ("Unrecognized request argument supplied: cache_salt", "cache.salt=null"),
    ],
)
def test_a_refused_setting_names_its_fix(said, hint):
    assert hint in from_status(400, {"error": {"message": said}}).message


def test_a_rejected_key_names_its_variable(monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-value-1")
    with serving(error(401, "no such key")) as server:
        with pytest.raises(BackboneUnavailable, match="MY_KEY") as caught:
            complete(server.url, api_key_env="MY_KEY")
        assert "secret-value-1" not in caught.value.reason
        with pytest.raises(BackboneUnavailable, match="api_key_env=NAME"):
            complete(server.url)


def test_an_unknown_model_is_told_which_there_are():
    models = ["Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B", "meta/llama"]
    with serving(error(404, "The model `Qwen3-0.6B` does not exist."), models=models) as server:
        with pytest.raises(BackboneUnavailable, match=r"Qwen/Qwen3-0\.6B"):
            complete(server.url, model="Qwen3-0.6B")
        with pytest.raises(BackboneUnavailable, match="Qwen/Qwen3-8B, meta/llama"):
            complete(server.url, model="zzz")
    with serving(error(404, "Not Found"), models=[]) as server, pytest.raises(BackboneUnavailable, match="in /v1"):
        complete(server.url)


def test_a_redirect_is_not_followed_because_the_key_would_go_along():
    with serving() as elsewhere, serving(Reply(status=307, headers={"Location": elsewhere.url})) as server:
        with pytest.raises(BackboneUnavailable, match=r"correct backbone\.base_url"):
            complete(server.url)
        assert not elsewhere.seen


def test_long_words_of_a_server_are_cut():
    assert len(from_status(400, {"error": {"message": "x" * 10_000}}).message) < 1_000
