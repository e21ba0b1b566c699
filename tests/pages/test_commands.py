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
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hydra.errors import HydraException

from ace_bench.runners.checking import RunChecks
from tests.launching import PARSER, ROOT
from tests.pages.reading import PAGES, PLAYS_ENVIRONMENT, commands, settings, unmarked
from tests.pages.world import World
from tests.report.paper.conftest import compose, one_composer, reproduce  # noqa: F401 - fixtures

QUICK = ("README.md", "docs/running.md", "docs/reproducing.md", "docs/reports.md")

NOT_RUN = {
    r"(\S*pip install .*|make (setup|real-model))": "installs packages from an index",
    r"(make data|(python scripts/download_data\.py|ace-bench appworld) .*)": "downloads data",
    r"(make (test\S*|lint|format|coverage)( .*)?|python -m pytest .*|\S*pre-commit install)": "runs tests or linters",
    r"ray start .*": "needs several machines",
    r"wandb .*|python run\.py task=.* tracker=wandb": "needs an account",
    r"docker .*": "needs Docker",
    r"(appworld (download data|evaluate|pack)|vllm serve( --help)?)": "names a program; it is not to be typed",
    r"(ace-bench view results|python -m http\.server .*)": "serves until stopped; tests/report/page tests it",
    PLAYS_ENVIRONMENT.pattern + ".*": "tests/tasks/environments does it",
    r"python run\.py .* backbone=(smollm2|\w*llama_cpp)( .*)?": "needs llama-server and a model",
    r"pip wheel .*": "tests/integration/test_wheel.py does it",
    r"python -m benchmarks growth": "needs 16 samples; tests/benchmarks runs it",
    r"python -m benchmarks throughput --results RUN .*": "needs a run on a server; tests/benchmarks runs it",
    r"make statistics": "tests/simulation runs it in small",
    r"make docs": "continuous integration runs it",
}
"""Commands that are not run, with the reason; docs/real-model.md needs llama.cpp's server."""

REPRODUCTION = "ace-bench reproduce table=2 seed=0,1,2"
"""The models of the paper answer it."""

SHORT = {
    r"python run\.py task=appworld (method=ace|method=ace backbone=deepseek_v3_1|.* mode\.context=FILE)": "--cfg job",
    r"ace-bench leaderboard .*": "--help",
    r"ace-bench reproduce (table=\d+|experiment=combee) (?!.*--(dry-run|estimate)).*": "--dry-run",
    r"(python -m benchmarks (sql|growth|results) ?.*|ace-bench figures)": "--help",
    r"make (bench|figures)": "ARGS=--help",
    r"make rehearsal": "ARGS=--dry-run",
    # the same ways as on README.md
    r"python run\.py task=finer method=ace backbone=gpt_5_1": "--cfg job",
    r"python run\.py task=finer method=ace .*backbone\.model=(Qwen/Qwen3-8B|deepseek-ai/\S+).*": "--cfg job",
    r"python run\.py .*backbone\.server\.tensor_parallel=8 concurrency=64": "--cfg job",
    r"python run\.py -m task=finer,formula seed=0,1,2 backbone=vllm .*": "task=finer seed=0 dry_run=true",
    r"python run\.py -m task=finer,formula method=base,icl,ace seed=0,1,2": "method=base,icl seed=0",
    # where they are run, the sweeps before them are not
    r"ace-bench (tables|figures) results/ .*(--rows method,threshold|--x).*|ace-bench plan results/.*": "--help",
}
"""Commands that take long, with the words that have them checked or shortened."""

SHORTENED = {
    r"python run\.py task=appworld method=ace": "limit=1 mode.epochs=1",
    r"python run\.py task=appworld method=ace backbone=deepseek_v3_1": "'limit={train: 1, val: 1}' mode.epochs=1",
    r"python run\.py task=appworld .* mode\.context=FILE": "limit=1",
    r"ace-bench leaderboard .*": "--help",  # it wants runs on AppWorld's data
}
"""Commands of minutes, with the words that shorten them where they are run."""


def of_first(patterns, text):
    """What the first pattern that a command matches stands for, or None."""
    return next((said for pattern, said in patterns.items() if re.fullmatch(pattern, text)), None)


def typed(page):
    """The commands of a page that can be run here."""
    return [] if page == "docs/real-model.md" else [text for text in commands(page) if not of_first(NOT_RUN, text)]


def is_prepared(text):
    """Whether a command needs real data and a sentence model, as its page says; others run on a fresh checkout."""
    other = r"^(?!.*(--help|task\.source=sample)).* backbone=(?!embedded|smollm2)"
    return bool(re.search(other, text)) or text == REPRODUCTION


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
    """Whether a command is one of `reproduce` that runs or plans runs."""
    return re.match(r"ace-bench reproduce (?!--list)", text)


def kind(text):
    """What a command shows that others do not: of run.py and `reproduce` how they run, of others all of it."""
    if runs(text):
        return tuple(sorted({*re.findall(r" (-m|backbone=\w+|backbone\.launch=true)", text)}))
    return ("--estimate" in text, of_first(SHORT, text)) if reproduces(text) else text


def first_of_kind(page):
    """The commands of a page that are run by `make test`: no earlier command is of their kind."""
    firsts = {}
    for other in PAGES:
        for text in typed(other):
            if of_first(SHORT, text) != "--cfg job":
                firsts.setdefault(kind(text), (other, text))
    return [text for where, text in firsts.values() if where == page]


def problems(world, page, texts, more):
    """Run commands of a page, each with the words that ``more`` adds to it, and return what went wrong."""
    world.open(page)
    for text in texts:
        if problem := world.run(text, of_first(more, text) or "", prepared=is_prepared(text)):
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
    found = list(problems(world, page, first_of_kind(page), SHORT))
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("page", [page for page in PAGES if any(map(runs, commands(page)))])
def test_settings_that_are_printed_exist(page):
    for text in filter(runs, commands(page)):
        words = [word for word in shlex.split(text)[2:] if word != "-m"]
        for overrides in compose.sweep(words, searches=False):
            compose(overrides)


@pytest.mark.parametrize("page", [page for page in PAGES if settings(page)])
def test_settings_in_sentences_can_be_typed_into_a_shell(page):
    for text in settings(page):
        shell = subprocess.run(
            ["sh", "-c", f"set -f; printf '%s\\n' {text}"], capture_output=True, text=True, check=False
        )
        assert shell.returncode == 0, f"{text}: {shell.stderr}"
        for word in shell.stdout.splitlines():
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
@pytest.mark.parametrize("page", [page for page in PAGES if typed(page)])
def test_all_commands_run_as_they_are_printed(page, world):
    found = list(problems(world, page, typed(page), SHORTENED))
    assert not found, "\n\n".join(found)


def test_commands_that_are_treated_specially_are_printed_somewhere():
    printed = {text for page in PAGES for text in commands(page)}
    assert REPRODUCTION in printed
    for pattern in (*NOT_RUN, *SHORT, *SHORTENED):
        assert any(re.fullmatch(pattern, text) for text in printed), pattern


@pytest.mark.parametrize("page", [page for page in PAGES if any(map(is_prepared, typed(page)))])
def test_pages_say_what_a_run_with_a_real_model_needs(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "embedder=hashing" in text or "backbones.md" in text


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_whether_it_holds_commands(page):
    assert unmarked(page) == []
