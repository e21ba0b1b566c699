"""Which names mean the same model, as servers change them, and which mean another one."""

import pytest

from ace_bench.core.model_names import is_same_model

SAME = [
    ("gpt-4o-mini", "gpt-4o-mini-2024-07-18"),
    ("gpt-4o-2024-08-06", "gpt-4o"),
    ("gpt-4", "gpt-4-0613"),
    ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
    ("claude-3-5-sonnet-20240620", "claude-3-5-sonnet-2024-06-20"),
    ("gpt-3.5-turbo", "gpt-35-turbo"),
    ("claude-3.5-sonnet", "claude-3-5-sonnet@20240620"),
    ("anthropic/claude-3.7-sonnet:thinking", "anthropic/claude-3.7-sonnet"),
    ("us.anthropic.claude-sonnet-4-20250514-v1:0", "anthropic.claude-sonnet-4-20250514-v1:0"),
    ("gemini-1.5-pro", "gemini-1.5-pro-002"),
    ("gemini-2.5-pro-preview", "models/gemini-2.5-pro-preview-05-06"),
    ("command-r-plus", "command-r-plus-08-2024"),
    ("mistral-large-latest", "mistral-large-2411"),
    ("openai/gpt-4o-mini", "gpt-4o-mini"),
    ("deepseek/deepseek-chat-v3.1:free", "deepseek/deepseek-chat-v3.1"),
    ("meta-llama/Llama-3.3-70B-Instruct", "Llama-3.3-70B-Instruct"),
    ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b-instruct"),
    ("Qwen2.5-7B-Instruct", "/models/Qwen2.5-7B-Instruct-Q4_K_M.gguf"),
    ("Qwen2.5-72B-Instruct", "C:\\models\\qwen2.5-72b-instruct-q8_0-00001-of-00004.gguf"),
    ("gpt-oss-20b", "/srv/gpt-oss-20b-mxfp4.gguf"),
    ("qwen3-32b", "Qwen3-32B-UD-Q4_K_XL.gguf"),
    ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B-FP8"),
    ("Qwen/Qwen3-8B", "/srv/models/hub/models--Qwen--Qwen3-8B/snapshots/0a1b2c/"),
    ("accounts/fireworks/models/llama-v3p1-8b-instruct", "llama-v3p1-8b-instruct"),
    ("llama3", "llama3:latest"),
    ("my-adapter", "my-adapter"),
    ("tgi", "meta-llama/Llama-3.1-8B-Instruct"),
    ("default", "Qwen/Qwen3-8B"),
    ("tiny", ""),
    ("/models/tiny/", "tiny"),
]
OTHER = [
    ("Llama-3.3-70B-Instruct", "Llama-3.3-7B-Instruct"),
    ("meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
    ("gpt-4o", "gpt-4o-mini"),
    ("gpt-4o", "gpt-4o-mini-2024-07-18"),
    ("gpt-4o-mini", "gpt-4o"),
    ("gpt-4", "gpt-4-turbo"),
    ("gpt-5.1", "gpt-5"),
    ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06"),
    ("claude-3-opus", "claude-3-haiku"),
    ("deepseek-v3.1", "deepseek-v3"),
    ("deepseek-chat", "deepseek-reasoner"),
    ("Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-7B-Instruct"),
    ("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-Coder-7B-Instruct"),
    ("qwen3-30b-a3b", "qwen3-3b"),
    ("qwen2.5:7b", "qwen2.5:72b"),
    ("llama3:8b", "llama3:70b"),
    ("Qwen3-8B-FP8", "Qwen3-8B-AWQ"),
    ("openrouter/auto", "openai/gpt-4o-mini"),
    ("Qwen2.5-7B-Instruct", "/models/llama-3-8b.gguf"),
    ("tiny", "another-model-7b"),
    ("o1", "o1-preview"),
    ("my-adapter", "Qwen/Qwen3-8B"),
]


@pytest.mark.parametrize(("asked", "answered"), SAME)
def test_another_form_of_the_name_is_the_same_model(asked, answered):
    assert is_same_model(asked, answered)


@pytest.mark.parametrize(("asked", "answered"), OTHER)
def test_another_size_kind_version_or_release_is_another_model(asked, answered):
    assert not is_same_model(asked, answered)
