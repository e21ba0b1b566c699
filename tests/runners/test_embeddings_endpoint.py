"""Runs whose embeddings come from an endpoint: counted, within the budget, and paid for once."""

from collections import Counter
from contextlib import ExitStack, suppress
from functools import partial

import pytest

from ace_bench.backbones.embedded.server.serve import ReaderServer
from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import Fault
from ace_bench.store.calls import read_calls
from ace_bench.store.vectors import FILE
from tests.backbones.serving import running
from tests.doubles import Crash, Recording, crash_after
from tests.launching import launch

SMALL = (
    *("task=formula", "task.source=sample", "limit={train: 6, val: 1, test: 4}", "mode.epochs=1", "concurrency=2"),
    *("method.retrieval.mode=embeddings", "method.retrieval.top_k=2"),
)


@pytest.fixture
def serve():
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(running(ReaderServer(host="127.0.0.1", port=0, **settings)))


def of(address, **more):
    given = {"url": address, "model": "embedded", "simulated": "true", **more}
    return "embedder={" + ", ".join(f"{name}: {value}" for name, value in given.items()) + "}"


def embedded(ran):
    return [call for call in read_calls(ran.folder) if call.role == "embedder"]


def texts(calls):
    return Counter(message.content for call in calls for message in call.request.messages)


def test_calls_of_the_embedder_are_counted_by_stage_with_tokens_and_dollars(serve, tmp_path):
    server = serve()
    ran = launch(tmp_path, *SMALL, of(server.address, usd_per_million=2.0))
    calls, metrics = embedded(ran), ran.metrics
    assert server.stats()["requests"] == len(calls) + 1  # the probe
    assert metrics["roles"]["embedder"] == "embedded"
    for stage in ("adapt", "evaluate"):
        assert metrics["calls"][stage]["embedder"] == sum(call.stage == stage for call in calls) > 0
    tokens = sum(call.completion.usage.prompt for call in calls)
    assert metrics["usd"]["total"] == pytest.approx(tokens * 2 / 1e6)
    assert max(texts(calls).values()) == 1, "refinement and retrieval share what was paid for"
    assert "embedder" in (ran.folder / "summary.txt").read_text()
    unpriced = launch(tmp_path / "unpriced", *SMALL, of(server.address))
    assert unpriced.metrics["usd"]["total"] is None
    assert unpriced.metrics["digest"] == metrics["digest"], "a price changes no vector"


def test_a_text_that_the_vector_store_has_is_recorded_and_not_sent(serve, tmp_path):
    server, store = serve(), f"vector_store={tmp_path / 'store'}"
    whole = launch(tmp_path / "whole", *SMALL, of(server.address))
    first = launch(tmp_path / "first", *SMALL, of(server.address), store)
    before = server.stats()["requests"]
    again = launch(tmp_path / "again", *SMALL, of(server.address), store)
    assert server.stats()["requests"] == before + 1, "the probe"
    assert again.metrics["replayed"]["adapt"] == again.metrics["calls"]["adapt"]["embedder"] > 0
    assert [texts(embedded(ran)) for ran in (first, again)] == [texts(embedded(whole))] * 2
    assert [ran.metrics["headline"] for ran in (first, again)] == [whole.metrics["headline"]] * 2
    longer = launch(tmp_path / "longer", *SMALL, of(server.address), store, "limit={train: 8, val: 1, test: 4}")
    new = sum((texts(embedded(longer)) - texts(embedded(again))).values())
    sent = sum(call.completion.usage.prompt for call in embedded(longer))
    assert 0 < new < sum(texts(embedded(longer)).values())
    assert 0 < sent < sum(call.completion.usage.prompt for call in embedded(whole))
    (tmp_path / "store" / FILE).unlink()
    assert launch(tmp_path / "again", *SMALL, of(server.address), store).lasting() == again.lasting()


@pytest.mark.slow
@pytest.mark.parametrize("method", [(), ("method=dc_rs", "mode=online", "~mode.epochs", "+mode.epochs=1")])
def test_cut_at_every_embedding_and_continued(method, serve, tmp_path):
    overrides = (*(SMALL if not method else SMALL[:5]), *method, of(serve().address))
    whole = launch(tmp_path / "whole", *overrides)
    for _ in embedded(whole):  # each process gets one new call done, then dies before the next one
        with suppress(Crash):
            launch(tmp_path / "cut", *overrides, backbone=partial(Recording, before=crash_after(1, "embedder")))
            break
    ran = launch(tmp_path / "cut", *overrides)
    assert ran.lasting() == whole.lasting()
    assert texts(embedded(ran)) == texts(embedded(whole))
    assert max(texts(embedded(ran)).values()) == 1


def test_budgets_count_embeddings_and_more_budget_continues(serve, tmp_path):
    address = serve().address
    more = "limit={train: 16, val: 2, test: 8}"  # the first call reserves more than a smaller run costs
    overrides = (*SMALL, of(address, usd_per_million=2.0), more)
    whole = launch(tmp_path / "whole", *overrides)
    stopped = launch(tmp_path / "cut", *overrides, f"budget.usd={0.6 * whole.metrics['usd']['total']}")

    assert stopped.status == 3
    assert 0 < len(embedded(stopped)) < len(embedded(whole))
    assert launch(tmp_path / "cut", *overrides).lasting() == whole.lasting()


def test_an_outage_stops_the_run_whatever_is_accepted(serve, tmp_path, capsys):
    server = serve()
    whole = launch(tmp_path / "whole", *SMALL, of(server.address))

    def fail(role):
        if role == "embedder":
            raise RolloutFault(Fault(owner="backbone", kind="http_500", message="oops"))

    accepting = ("accept_faults=true", "stop_after_faults=2")
    for _ in range(2):
        failing = partial(Recording, before=fail)
        down = launch(tmp_path / "cut", *SMALL, of(server.address), *accepting, backbone=failing)
        assert down.status == 3
        assert "left 2 calls in a row unanswered" in capsys.readouterr().out
    assert launch(tmp_path / "cut", *SMALL, of(server.address)).lasting() == whole.lasting()


def test_a_rehearsal_asks_for_no_embeddings(serve, tmp_path):
    server = serve()
    assert launch(tmp_path, *SMALL, of(server.address), "dry_run=true").status == 0
    assert server.stats()["requests"] == 1, "the probe"


def test_a_limit_in_dollars_needs_a_price(serve, tmp_path, capsys):
    assert launch(tmp_path, *SMALL, of(serve().address), "budget.usd=1").status == 2
    assert "set embedder.usd_per_million" in capsys.readouterr().err
