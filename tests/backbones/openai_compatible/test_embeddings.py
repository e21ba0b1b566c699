"""Embeddings over HTTP: what arrives, what it costs, and that nothing is paid for twice."""

from __future__ import annotations

import json
from contextlib import ExitStack

import numpy as np
import openai
import pytest

from ace_bench.api import open_embedder
from ace_bench.cli.main import main
from ace_bench.contexts.playbook.embeddings import HashingEmbedder
from ace_bench.core.errors import BackboneUnavailable, ConfigError
from ace_rehearsal.server.faults import Faults
from ace_rehearsal.server.serve import ReaderServer
from tests.backbones.serving import running

TEXTS = ["a bond pays a coupon", "lease payments", ""]


@pytest.fixture
def serve():
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(running(ReaderServer(host="127.0.0.1", port=0, **settings)))


def test_vectors_come_in_the_order_of_the_texts_and_are_paid_for_once(serve, tmp_path):
    server = serve()
    with open_embedder(server.address, "embedded", folder=tmp_path, usd_per_million=2.0) as first:
        found = first.embed(TEXTS)
        assert np.allclose(found[:2], HashingEmbedder().embed(TEXTS[:2]), atol=1e-6)
        assert (first.embed(TEXTS[::-1]) == found[::-1]).all()
    used = first.ledger.total
    assert (used.calls, used.usage.completion) == (1, 0)
    assert used.usage.usd == pytest.approx(used.usage.prompt * 2 / 1e6)
    with open_embedder(server.address, "embedded", folder=tmp_path) as later:
        assert (later.embed([*TEXTS, "a new one"])[:3] == found).all()
    assert later.ledger.total.usage.usd is None  # the price is not known
    assert server.stats()["requests"] == 2


def test_many_texts_go_in_batches_and_faults_are_retried(serve, tmp_path):
    server = serve(faults=Faults(chances={"truncate": 0.3}, seed=2))
    with open_embedder(server.address, "embedded", folder=tmp_path) as one:
        assert one.embed([f"lesson {n}" for n in range(300)]).shape == (300, 512)
    assert one.ledger.total.calls == 3
    assert one.ledger.total.retries == server.stats()["requests"] - 3


def test_what_was_answered_before_a_failure_is_kept(serve, tmp_path):
    with open_embedder(serve().address, "embedded", folder=tmp_path) as good:
        good.embed(TEXTS[:1])
    with open_embedder(serve().address, "other", folder=tmp_path) as failing:
        assert failing.embed(TEXTS[:1]).shape == (1, 512)
        with pytest.raises(BackboneUnavailable, match="embedded"):
            failing.embed(TEXTS)


def test_a_missing_key_is_named_before_the_first_call(tmp_path):
    opened = open_embedder("http://localhost:1/v1", "m", folder=tmp_path, key_env="NO_SUCH_KEY_HERE")
    with pytest.raises(ConfigError, match="NO_SUCH_KEY_HERE"), opened:
        pass


def test_the_openai_client_gets_embeddings(serve):
    client = openai.OpenAI(base_url=serve().address, api_key="none")
    answer = client.embeddings.create(model="embedded", input=["one", "two"], encoding_format="float")
    assert [row.index for row in answer.data] == [0, 1]
    with pytest.raises(openai.BadRequestError, match=r"at `\$.input\[0\]`"):
        client.embeddings.create(model="embedded", input=[""], encoding_format="float")


def test_the_measurement_takes_an_endpoint_and_says_what_it_paid(serve, tmp_path, capsys):
    playbook, labels = tmp_path / "playbook.txt", tmp_path / "labels.jsonl"
    playbook.write_text("## OTHERS\n[oth-00001] red apples\n[oth-00002] green pears\n")
    labels.write_text(json.dumps({"query": "apples", "relevant": ["oth-00001"]}) + "\n")
    arguments = [
        *("retrieval", "--playbook", str(playbook), "--labels", str(labels), "--embedder", "embedded"),
        *("--embeddings-url", serve().address, "--embeddings-cache", str(tmp_path / "vectors")),
    ]
    assert main(arguments) == 0
    assert " requests, " in capsys.readouterr().out
    assert main(arguments) == 0
    assert "Embeddings: 0 requests" in capsys.readouterr().out
    assert main([*arguments[:-4], "--embeddings-url", "nowhere"]) == 2
