"""Every method's embedder is checked before the first call: a mistake there costs nothing."""

import pytest

from ace_bench.backbones.embedded.server.serve import ReaderServer
from tests.backbones.serving import over_http, running
from tests.launching import launch, options, preset, quick


def embeds(method):
    """Whether the settings of a method name an embedder."""
    return "embed" in str(preset("method", method).method)


METHODS = [method for method in options("method") if embeds(method) and method != "frozen"]
"""``frozen`` embeds only for the contexts of some of these."""
MISTAKES = {
    "no such model": ("embedder=nope", "sentence"),
    "no such folder": ("embedder=static:/nowhere/model", "/nowhere/model"),
    "a dead endpoint": ("embedder={url: http://127.0.0.1:9/v1, model: any}", "embedder.url"),
}


@pytest.fixture(scope="module")
def server():
    with running(ReaderServer(host="127.0.0.1", port=0)) as one:
        yield one


def test_there_are_methods_with_embedders():
    assert {"ace", "dc_rs", "reasoning_bank", "self_stream_icl"} <= {*METHODS}


@pytest.mark.parametrize(
    ("method", "mistake"),
    [
        # Quick tests give each method one mistake, and each mistake a method.
        pytest.param(method, mistake, marks=() if place % len(MISTAKES) == nth else pytest.mark.slow)
        for place, method in enumerate(METHODS)
        for nth, mistake in enumerate(MISTAKES)
    ],
)
def test_a_mistake_of_the_embedder_ends_the_run_before_its_first_call(method, mistake, server, tmp_path, capsys):
    setting, said = MISTAKES[mistake]
    before = server.stats()["completions"]
    small = ("task=formula", "task.source=sample", "limit=3", f"method={method}", "mode=online", *quick(method))
    ran = launch(tmp_path, *small, setting, *over_http(server.address))
    words = capsys.readouterr()
    assert ran.status == 2, words
    assert said in words.out + words.err
    assert not list(tmp_path.rglob("calls.jsonl"))
    assert server.stats()["completions"] - before <= 3, "the probe alone"
