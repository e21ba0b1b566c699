"""Launching: readiness, failures with the log's words, and no process left behind however the harness ends."""

import json
import re
import subprocess
import sys
from dataclasses import asdict

import pytest

from ace_bench.backbones.vllm.command import free_port
from ace_bench.backbones.vllm.load import read_counters
from ace_bench.backbones.vllm.logs import LLAMA_CPP_FIXES, VLLM_FIXES, VLLM_PHASES, likely_fix, phase
from ace_bench.backbones.vllm.server import Server
from ace_bench.core.errors import BackboneUnavailable, ConfigError
from tests.launching import ROOT
from tests.outcomes import as_texts, outcomes


def quiet(line):
    pass


@pytest.fixture
def launch(fake):
    started = []

    def make(behaviour="", says="", report_every=0.2, port=None, **settings):
        serve = fake.serve(behaviour, says, **settings)
        started.append(Server(serve, model="some/model", port=port or free_port(), report_every=report_every))
        return started[-1]

    yield make
    for server in started:
        server.stop()


def test_an_interruption_while_waiting_leaves_nothing(fake, launch):
    server = launch("slow")

    def interrupt(line):
        if (fake.folder / "pids.json").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        server.start(interrupt)
    assert fake.all_gone(within=1)


LLAMA_CPP_LOGS = [
    "E gguf_init_from_reader: invalid magic characters: 'impo', expected 'GGUF'",
    "E gguf_init_from_reader: failed to read tensor data",
    "llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'new'",
    "llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache",
    "W get_repo_files: failed to resolve commit for no/such-GGUF",
    "llama_server.py: error: unsupported option: -hf; this server reads GGUF files only, so give --model",
    "E srv         start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8105",
    "error: invalid argument: --colour",
    "llama_server.py: error: unrecognized arguments: --colour",
]
LOGS = [
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "ValueError: No available memory for the cache blocks. Try increasing gpu_memory_utilization",
    "ValueError: Available memory on node 0 (12.4/16 GiB) is less than desired CPU memory utilization (0.92)",
    "OSError: no/such is not a local folder and is not a valid model identifier listed on",
    "huggingface_hub.errors.GatedRepoError: 401 Client Error.",
    'vllm: error: unrecognized arguments: --structured-outputs-config {"backend": "xgrammar"}',
    "vllm: error: unrecognized arguments: --colour red",
    "ValueError: Model path does not exist: .smollm2/SmolLM2.gguf",
    "OSError: [Errno 98] error while attempting to bind: address already in use",
    "RuntimeError: Failed to infer device type",
]


def test_what_a_log_says_is_recognised(snapshot, tmp_path):
    for logs, fixes in ((LOGS, VLLM_FIXES), (LLAMA_CPP_LOGS, LLAMA_CPP_FIXES)):
        advised = outcomes(lambda says: likely_fix(f"INFO starting\n{says}\nERROR ended\n", fixes), logs)  # noqa: B023
        assert advised == snapshot
    phases = []
    for begun in (
        "",
        "INFO Starting to load model tiny\nINFO cpus=[1]\n",
        "INFO Warming up model for\nINFO\n",
    ):
        with (tmp_path / "log").open("a") as log:
            log.write(begun)
        phases.append(phase(tmp_path / "log", VLLM_PHASES))
    assert phases == ["starting its program", "loading the weights", "compiling and measuring memory"]


def test_a_failure_shows_the_end_of_the_log_and_names_its_fix_where_it_is_known(launch):
    says, advice = LOGS[0], "not enough memory"
    server = launch("die", says)
    with pytest.raises(
        ConfigError, match=rf"status 1.*{advice}(?s:.*){re.escape(str(server.log))}(?s:.*){re.escape(says)}"
    ):
        server.start(quiet)
    says = "\n".join(f"line {number}" for number in range(100))
    with pytest.raises(BackboneUnavailable) as failure:
        launch("die", says).start(quiet)
    assert "line 99" in failure.value.reason
    assert "line 10\n" not in failure.value.reason


def test_patience_ends(launch):
    server = launch("slow", start_timeout=0.1)
    with pytest.raises(BackboneUnavailable, match="not ready within"):
        server.start(quiet)
    assert not server.running


def test_a_port_in_use_is_refused(launch):
    first = launch()
    first.start(quiet)
    with pytest.raises(ConfigError, match=r"server\.port=\d+ is in use.*or set url"):
        launch(port=int(first.root.rpartition(":")[2])).start(quiet)


HARNESS = """
import json, sys
from ace_bench.backbones.vllm.command import Serve
from ace_bench.backbones.vllm.server import Server
server = Server(Serve(**json.loads(sys.argv[1])), model="m", port=int(sys.argv[2]))
server.start(lambda line: print(line, flush=True))
print("up", flush=True)
sys.stdin.read()
"""


def harness(fake, behaviour=""):
    """Start a server from a process of its own, as a run does."""
    settings = json.dumps(asdict(fake.serve(behaviour)))
    process = subprocess.Popen(
        [sys.executable, "-c", HARNESS, settings, str(free_port())],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert any(line == "up\n" for line in process.stdout)
    return process


@pytest.mark.parametrize("behaviour", ["", "deaf"])
def test_kill_9_of_the_harness_leaves_no_orphan(fake, behaviour):
    with harness(fake, behaviour) as process:
        process.kill()
    assert fake.all_gone()


def page(queries, hits, prefix="vllm:prefix_cache", end="_total", labels='{engine="0",model_name="m"}'):
    return f"{prefix}_queries{end}{labels} {queries}\n{prefix}_hits{end}{labels} {hits}\n"


TODAY = f"""\
# HELP vllm:prefix_cache_queries_total Prefix cache queries, in terms of number of queried tokens.
# TYPE vllm:prefix_cache_queries_total counter
{page(4236.0, 2560.0)}\
# TYPE vllm:prefix_cache_queries_created gauge
{page(1.7953007001461573e09, 1.795300700146192e09, end="_created")}\
{page(77.0, 7.0, prefix="vllm:external_prefix_cache")}"""
OLD = "vllm:gpu_prefix_cache"
PAGES = {
    "today": TODAY,
    "several engines": page(100.0, 30.0) + page(50.0, 0.0, labels='{engine="1"}'),
    "older, of the GPU, no suffix, no labels": page(8.0, 2.0, OLD, "", ""),
    "both names for the same tokens": page(10.0, 5.0, OLD) + page(10.0, 5.0),
    "a name with brackets": page(9.0, 3.0, labels='{model_name="a}b{c \\"d\\""}'),
    "a time stamp": page("9.0 1795300700000", 3.0),
    "nothing asked yet": page(0.0, 0.0, labels=""),
    "no page of metrics": "<html><body>vllm:prefix_cache_queries_total</body></html>",
    "a rate only": 'vllm:gpu_prefix_cache_hit_rate{model_name="m"} 0.5\n',
    "the times of creation only": page(1.0, 1.0, end="_created", labels=""),
    "no numbers": page("NaN", "+Inf", labels=""),
    "llama.cpp": "llamacpp:prompt_tokens_total 90\nllamacpp:prompt_tokens_cached_total 60\n",
    "llama.cpp before it counted what it reuses": "llamacpp:prompt_tokens_total 90\n",
}


def test_counters_are_read_and_summed_and_what_is_not_reported_is_unknown(snapshot):
    found = [(version, read_counters(text)) for version, text in PAGES.items()]
    assert as_texts(found) == snapshot
