"""Every command that a page prints is run as it is printed, in a copy of the project: `world.py` says how.

What cannot be run here is listed with the reason. Of the pages in `QUICK`, `make test-slow` runs the scripts and make
targets, and of the commands of run.py and reproduce.py the first of each kind; `make test-thorough` does so for the
other pages. On all pages `make test` checks the settings of run.py's and reproduce.py's commands. `make test-printed`
runs every command to its end, which takes long.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from itertools import chain, product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hydra.errors import HydraException

from ace_bench.runners.checking import RunChecks
from tests.launching import PARSER, ROOT, composed
from tests.packages.report.conftest import one_composer, reproduce  # noqa: F401 - fixtures
from tests.pages.reading import PAGES, PLAYS_ENVIRONMENT, commands, settings, unmarked
from tests.pages.world import World

QUICK = ("README.md", "docs/running.md", "docs/reproducing.md", "docs/reports.md")
PACKAGES = "installs packages from an index"
HUB = "downloads data"
SUITE = "runs tests or linters, this one too"
CLUSTER = "needs several machines"
ACCOUNT = "needs an account"
DOCKER = "needs Docker"
NAME = "names a program; it is not to be typed"
SERVES = "serves until it is stopped; tests/packages/report/view does what it is for"

NOT_RUN = {
    "make setup": PACKAGES,
    "python run.py task=finer method=base backbone=gpt_5_1 batch=openai": "tests/packages/batch does it",
    "python run.py task=qa method=base backbone=smollm2 batch=vllm": "tests/packages/batch does it",
    ".venv/bin/pip install -e '.[embeddings]'": PACKAGES,
    "pip install -e '.[optimisers]'": PACKAGES,
    "pip install -e '.[sweeps]'": PACKAGES,
    "pip install -e '.[data]'": PACKAGES,
    "pip install -e '.[langchain]'": PACKAGES,
    "pip install -e '.[inspect,verifiers]'": PACKAGES,
    **dict.fromkeys(
        filter(PLAYS_ENVIRONMENT.match, commands("docs/own-data.md")),
        "tests/packages/environments/test_page.py runs it",
    ),
    **dict.fromkeys(commands("docs/real-model.md"), "needs make llama-cpp"),
    "pip install -e '.[tracking]'": PACKAGES,
    "pip install -e '.[vllm]'": PACKAGES,
    "wandb login": ACCOUNT,
    "make data": HUB,
    "python scripts/download_data.py finer": HUB,
    "python scripts/download_data.py bird_sql": HUB,
    "python scripts/download_data.py ddxplus": HUB,
    "python scripts/download_data.py ddxplus --revision main": HUB,
    "python scripts/setup_appworld.py --data": HUB,
    "pip wheel . --no-deps": "tests/integration/test_wheel.py does it",
    "make test": SUITE,
    "python -m pytest tests/methods/test_ace_rules.py": SUITE,
    "make test-slow": SUITE,
    "make test-thorough": SUITE,
    "make test-slurm": SUITE,
    "make test-printed": SUITE,
    "make test-official OFFICIAL=DIR": SUITE,
    "make test-official": SUITE,
    "make statistics": "tests/simulation runs it in small",
    "ace-bench playbook lint results/main/finer-ace-embedded-offline/.../seed0 --max-tokens 8000": (
        "finds leaks after the few samples here, which is its status 1"
    ),
    "make test-environments": SUITE,
    "make test-vllm": SUITE,
    "make real-model": PACKAGES,
    "make test-real": SUITE,
    "make real-model-llama": PACKAGES,
    "python run.py experiment=first_contact backbone=smollm2_llama_cpp limit=3": "needs make real-model-llama",
    'make test ARGS="tests/tasks -k finer"': SUITE,
    "make lint": SUITE,
    "make docs": "continuous integration runs it",
    "make coverage": SUITE,
    "make format": SUITE,
    ".venv/bin/pre-commit install": SUITE,
    "ray start --head": CLUSTER,
    "ray start --address=HOST:6379": CLUSTER,
    "ray start --head --port=6379": CLUSTER,
    "ray start --address=HEAD:6379": CLUSTER,
    "python run.py task=finer method=ace tracker=wandb": ACCOUNT,
    "wandb sync results/main/*/*/*/wandb/offline-run-*": ACCOUNT,
    "docker build -t ace-bench .": DOCKER,
    "docker build --file Containerfile --tag ace-bench .": DOCKER,
    "docker run --rm ace-bench": DOCKER,
    "docker run --rm --pids-limit 2000 --memory 16g --cap-drop ALL --cap-add SETUID --cap-add SETGID --cap-add CHOWN "
    "--cap-add DAC_OVERRIDE --cap-add KILL --cap-add FOWNER "
    '-v "$PWD/results:/ace-bench/results" -v "$PWD/data:/ace-bench/data" '
    "-e OPENAI_API_KEY ace-bench task=appworld method=ace": DOCKER,
    "appworld download data": NAME,
    "appworld evaluate": NAME,
    "appworld pack": NAME,
    "ace-bench view results": SERVES,
    "python -m http.server -d site": SERVES,
    "vllm serve": NAME,
    "vllm serve --help": NAME,
}
"""Commands that are not run, with the reason."""

TABLE_16 = (
    "python scripts/reproduce.py table=16 backbone=vllm backbone.url=http://localhost:8000 backbone.model=NAME "
    "gpt_oss_120b:backbone@roles.reflector=vllm gpt_oss_120b:roles.reflector.url=http://localhost:8000 "
    "gpt_oss_120b:roles.reflector.model=NAME gpt_5_1:backbone@roles.reflector=vllm "
    "gpt_5_1:roles.reflector.url=http://localhost:8000 gpt_5_1:roles.reflector.model=NAME"
)

COMBEE = (
    "python scripts/reproduce.py experiment=combee seed=0,1,2 --jobs 1 concurrency=64 backbone=openai_compatible "
    "backbone.base_url=http://localhost:8000/v1 backbone.model=embedded backbone.api_key_env=null "
    "backbone.simulated=true backbone.bound_replies=false task.source=sample embedder=hashing"
)

PREPARED = {
    "python run.py task=finer method=ace backbone=gpt_5_1 limit=20 dry_run=true",
    "python run.py task=finer method=ace backbone=gpt_5_1 limit=20 budget.usd=5",
    "python run.py backbone=openai_compatible backbone.base_url=http://host:8000/v1 backbone.model=NAME "
    "backbone.api_key_env=null",
    "python run.py task=finer method=ace backbone=vllm backbone.url=http://localhost:8000 backbone.model=NAME",
    "python run.py task=finer method=ace backbone=vllm backbone.launch=true "
    "backbone.model=meta-llama/Llama-3.3-70B-Instruct backbone.server.tensor_parallel=4",
    "python run.py task=finer method=ace backbone=gpt_5_1",
    "python run.py task=finer method=ace backbone=openai_compatible backbone.base_url=http://localhost:8000/v1 "
    "backbone.model=Qwen/Qwen3-8B backbone.api_key_env=null",
    "python scripts/reproduce.py table=1 backbone=vllm backbone.url=http://localhost:8000 "
    "backbone.model=deepseek-ai/DeepSeek-V3.1 '+backbone.extra_body.chat_template_kwargs={thinking: false}'",
    "python scripts/reproduce.py table=2 seed=0,1,2",
    "python scripts/reproduce.py table=2 backbone=vllm backbone.url=http://localhost:8000 backbone.model=NAME",
    TABLE_16,
    "python run.py -m task=finer,formula seed=0,1,2 backbone=vllm backbone.url=http://HOST:8000 backbone.model=MODEL "
    "launcher=joblib max_calls_in_flight=64",
    "python scripts/reproduce.py table=2 seed=0,1,2 backbone=vllm backbone.url=http://HOST:8000 backbone.model=MODEL "
    "max_calls_in_flight=64",
    "python run.py task=appworld method=ace backbone=deepseek_v3_1",
    "python run.py task=bird_sql method=ace backbone=deepseek_v3_1 task.metric=judge",
    "python run.py task=ddxplus method=base backbone=gpt_4o_mini",
    "python run.py task=finer method=ace backbone=vllm backbone.url=http://localhost:8000 backbone.model=Qwen/Qwen3-8B",
    "python run.py task=finer method=ace backbone=vllm backbone.launch=true backbone.model=Qwen/Qwen3-8B",
    "python run.py task=finer method=ace backbone=vllm backbone.launch=true "
    "backbone.model=meta-llama/Llama-3.3-70B-Instruct backbone.server.tensor_parallel=8 concurrency=64",
    "python run.py task=finer method=ace backbone=vllm backbone.launch=true backbone.model=deepseek-ai/DeepSeek-V3.1 "
    "backbone.server.tensor_parallel=8 backbone.server.pipeline_parallel=2 "
    "backbone.server.distributed_executor_backend=ray",
}
"""Commands whose page says that they need real data and a sentence model. All others run on a fresh checkout."""

LONG = {
    "python run.py task=appworld method=ace": "--cfg job",
    "python run.py task=appworld method=ace backbone=deepseek_v3_1": "--cfg job",
    "python run.py task=appworld task.test_split=test_challenge mode=evaluate mode.context=FILE": "--cfg job",
    "python scripts/pack_leaderboard.py results/main/appworld-ace-deepseek_v3_1-offline/.../seed0 "
    "--name ace_myrun --method ACE --llm DeepSeek-V3.1": "--help",
    "python scripts/reproduce.py table=2 seed=0,1,2": "--dry-run",
    "python scripts/reproduce.py table=2 backbone=embedded limit=10": "--dry-run",
    "python scripts/reproduce.py table=1 backbone=vllm backbone.url=http://localhost:8000 "
    "backbone.model=deepseek-ai/DeepSeek-V3.1 '+backbone.extra_body.chat_template_kwargs={thinking: false}'": (
        "--dry-run"
    ),
    "python scripts/reproduce.py table=2 backbone=vllm backbone.url=http://localhost:8000 backbone.model=NAME": (
        "--dry-run"
    ),
    "python scripts/reproduce.py table=2 seed=0,1,2 backbone=vllm backbone.url=http://HOST:8000 backbone.model=MODEL "
    "max_calls_in_flight=64": "--dry-run",
    "python scripts/benchmark.py fleet --results results --slots 1 8 64": "--help",
    "python scripts/benchmark.py fleet --results results --call-seconds 3": "--help",
    "python scripts/benchmark.py fleet --results fleet --slots 64 --call-seconds 0.2 --make table=2 seed=0,1,2": (
        "--help"
    ),
    "python scripts/reproduce.py table=2 results=results/smoke --jobs 2 backbone=vllm "
    "backbone.url=http://localhost:8000 backbone.model=NAME backbone.sampling.max_tokens=128 task.source=sample "
    "embedder=hashing limit=1 gepa:method.max_metric_calls=3 mipro:method.auto=light "
    "ace:method.max_reflection_rounds=1 ace:mode.epochs=1": "--dry-run",
    TABLE_16: "--dry-run",
    COMBEE: "--dry-run",
    "make rehearsal": "ARGS=--dry-run",
    "python scripts/benchmark.py methods --data DIR --results DIR2 --out FILE.md": "--help",
    "python scripts/benchmark.py sql": "--help",
    "python scripts/benchmark.py growth": "--help",
    "python scripts/benchmark.py results --runs 10000": "--help",
    "make bench": "ARGS=--help",
    "make figures": "ARGS=--help",
    "python scripts/make_figures.py": "--help",
    # the same ways as on README.md
    "python run.py task=finer method=ace backbone=gpt_5_1": "--cfg job",
    "python run.py task=finer method=ace backbone=openai_compatible backbone.base_url=http://localhost:8000/v1 "
    "backbone.model=Qwen/Qwen3-8B backbone.api_key_env=null": "--cfg job",
    "python run.py task=finer method=ace backbone=vllm backbone.url=http://localhost:8000 "
    "backbone.model=Qwen/Qwen3-8B": "--cfg job",
    "python run.py task=finer method=ace backbone=vllm backbone.launch=true backbone.model=Qwen/Qwen3-8B": "--cfg job",
    "python run.py task=finer method=ace backbone=vllm backbone.launch=true backbone.model=deepseek-ai/DeepSeek-V3.1 "
    "backbone.server.tensor_parallel=8 backbone.server.pipeline_parallel=2 "
    "backbone.server.distributed_executor_backend=ray": "--cfg job",
    "python run.py task=finer method=ace backbone=vllm backbone.launch=true "
    "backbone.model=meta-llama/Llama-3.3-70B-Instruct backbone.server.tensor_parallel=8 concurrency=64": "--cfg job",
    "python run.py -m task=finer,formula seed=0,1,2 backbone=vllm backbone.url=http://HOST:8000 backbone.model=MODEL "
    "launcher=joblib max_calls_in_flight=64": "task=finer seed=0 dry_run=true",
    "python run.py -m task=finer,formula method=base,icl,ace seed=0,1,2": "method=base,icl seed=0",
    # where they are run, the sweeps before them are not
    **dict.fromkeys(
        (
            "ace-bench tables results/ --rows method,threshold --columns task --over seed --base base",
            "ace-bench figures results/ --x threshold",
            "ace-bench figures results/ task=finer --x epochs --y tokens.total.in --lines method,labels --out figures",
        ),
        "--help",
    ),
}
"""Commands that take long, with the words that have them checked or shortened."""


SHORTENED = {
    "python run.py task=appworld method=ace": "limit=1 mode.epochs=1",
    "python run.py task=appworld method=ace backbone=deepseek_v3_1": "'limit={train: 1, val: 1}' mode.epochs=1",
    "python run.py task=appworld task.test_split=test_challenge mode=evaluate mode.context=FILE": "limit=1",
    "python scripts/benchmark.py fleet --results fleet --slots 64 --call-seconds 0.2 --make table=2 seed=0,1,2": (
        "limit=1 seed=0 ace:mode.epochs=1 gepa:method.max_metric_calls=3 mipro:method.auto=light"
    ),
}
"""Commands of minutes, with the words that shorten them where they are run. The leaderboard wants the whole split."""


@pytest.fixture(scope="module")
def world():
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # AppWorld's servers are users of their own, who cannot enter a private folder
        made = World(Path(folder) / "ace-bench")
        yield made
        made.close()


def runs(text):
    """Whether a command is one of run.py with settings."""
    return re.match(r"python run\.py (?!--help)", text)


def reproduces(text):
    """Whether a command is one of reproduce.py that runs or plans runs."""
    return re.match(r"python scripts/reproduce\.py (?!--list)", text)


def kind(text):
    """What a command shows that others do not: of run.py and reproduce.py how they run, of others all of it."""
    if runs(text):
        return tuple(sorted({*re.findall(r" (-m|backbone=\w+|backbone\.launch=true)", text)}))
    return ("--estimate" in text, LONG.get(text)) if reproduces(text) else text


def first_of_kind(page):
    """The commands of a page that are run by `make test`: no earlier command is of their kind."""
    firsts = {}
    for other in PAGES:
        for text in commands(other):
            if text not in NOT_RUN and LONG.get(text) != "--cfg job":
                firsts.setdefault(kind(text), (other, text))
    return [text for where, text in firsts.values() if where == page]


def problems(world, page, texts, more):
    """Run commands of a page, each with the words that ``more`` adds to it, and return what went wrong."""
    world.open(page)
    for text in texts:
        if problem := world.run(text, more.get(text, ""), prepared=text in PREPARED):
            yield problem
    yield from world.faults()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page in QUICK else pytest.mark.thorough)
        for page in PAGES
        if first_of_kind(page)
    ],
)
def test_commands_run_as_they_are_printed(page, world):
    found = list(problems(world, page, first_of_kind(page), LONG))
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("page", [page for page in PAGES if any(map(runs, commands(page)))])
def test_settings_that_are_printed_exist(page):
    for text in filter(runs, commands(page)):
        words = [word for word in shlex.split(text)[2:] if word != "-m"]
        sweep = [
            [f"{one.get_key_element()}={value}" for value in one.sweep_string_iterator()]
            if one.is_sweep_override()
            else [word]
            for word, one in zip(words, PARSER.parse_overrides(words), strict=True)
        ]
        for overrides in product(*sweep):
            composed(*overrides)


@pytest.mark.parametrize("page", [page for page in PAGES if settings(page)])
def test_settings_in_sentences_can_be_typed_into_a_shell(page):
    for text in settings(page):
        typed = subprocess.run(
            ["sh", "-c", f"set -f; printf '%s\\n' {text}"], capture_output=True, text=True, check=False
        )
        assert typed.returncode == 0, f"{text}: {typed.stderr}"
        for word in typed.stdout.splitlines():
            try:
                PARSER.parse_override(word)
            except HydraException as error:
                pytest.fail(f"{text} reaches the program as {word}: {error}")


@pytest.mark.parametrize("text", dict.fromkeys(filter(reproduces, chain.from_iterable(map(commands, PAGES)))))
def test_settings_of_reproductions_that_are_printed_exist(text, reproduce, monkeypatch):  # noqa: F811
    monkeypatch.setattr(RunChecks, "check", lambda *_, **__: ())  # here are neither their data nor their servers
    status, said = reproduce(*shlex.split(text)[2:], "--dry-run")
    assert status == 0, said


@pytest.mark.printed
@pytest.mark.parametrize("page", [page for page in PAGES if set(commands(page)) - NOT_RUN.keys()])
def test_all_commands_run_as_they_are_printed(page, world):
    found = list(problems(world, page, [text for text in commands(page) if text not in NOT_RUN], SHORTENED))
    assert not found, "\n\n".join(found)


def test_commands_that_are_treated_specially_are_printed_somewhere():
    printed = {text for page in PAGES for text in commands(page)}
    assert sorted({*NOT_RUN, *PREPARED, *LONG, *SHORTENED} - printed) == []


@pytest.mark.parametrize("page", [page for page in PAGES if PREPARED & set(commands(page))])
def test_pages_say_what_a_run_with_a_real_model_needs(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "embedder=hashing" in text or "backbones.md" in text


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_whether_it_holds_commands(page):
    assert unmarked(page) == []
