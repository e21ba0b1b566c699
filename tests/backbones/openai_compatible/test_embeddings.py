"""Embeddings over HTTP: what arrives, what it costs, and that nothing is paid for twice."""

import json
from contextlib import ExitStack

import numpy as np
import pytest

from ace_bench.api import open_embedder
from ace_bench.backbones.embedded.server.faults import Faults
from ace_bench.backbones.embedded.server.serve import ReaderServer
from ace_bench.backbones.embeddings import EmbeddingsBackbone, read_vectors
from ace_bench.backbones.openai_compatible.settings import Retry
from ace_bench.cli.main import main
from ace_bench.core.embedders import EmbedderSettings
from ace_bench.core.errors import ConfigError, RolloutFault
from ace_bench.core.types import Message, Probe, Usage
from ace_bench.playbook.embeddings import HashingEmbedder
from ace_bench.store.vectors import text_key
from tests.backbones.openai_compatible.scripted import Reply, error, serving
from tests.backbones.serving import running
from tests.outcomes import outcomes

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


def backbone(server, **settings):
    known = EmbedderSettings(**{"url": server.url, "model": "tiny", "simulated": True, **settings})
    return EmbeddingsBackbone(known, retry=Retry(times=0))


def vectors(*rows, **more):
    data = [{"index": index, "embedding": row} for index, row in rows]
    return Reply(body={"data": data, "model": "tiny-1", "usage": {"prompt_tokens": 4}, **more})


def test_a_probe_says_what_an_endpoint_returns_and_reports():
    with serving(vectors((0, [0, 3]), simulated=True), vectors((0, [1, 1, 1]), usage=None)) as server:
        one = backbone(server, usd_per_million=2.0)
        facts = {"endpoint": server.url, "embeddings": "2 dimensions", "tokens": "reported", "prices": "as set"}
        assert one.probe() == Probe(facts=facts, usage=Usage(prompt=4, completion=0, cached=0, usd=8e-6))
        unknown = {"tokens": "not reported: n/a in all tables", "prices": "dollars are n/a without tokens"}
        assert one.probe().facts == {**facts, "embeddings": "3 dimensions", **unknown}
        assert [body["input"] for _, _, body in server.seen] == [["ready"]] * 2
    with serving(vectors((0, [0, 3]), simulated=True)) as server, pytest.raises(ConfigError, match="simulated=false"):
        backbone(server, simulated=False).probe()
    with serving(error(404, "Not Found")) as server, pytest.raises(ConfigError) as caught:
        backbone(server).probe()
    assert str(caught.value) == (
        "the embeddings endpoint does not answer: HTTP 404: Not Found; "
        f"{server.url} does list tiny: it may not offer embeddings for it"
    )


VECTORS = [
    "[]",
    "[[0, [1.0]], [2, [1.0]]]",
    "[[0, 1], [1, 1]]",
    "[[0, [1.0]], [1, [1.0, 2.0]]]",
    "[[0, [1e39]], [1, [1.0]]]",
]


@pytest.mark.filterwarnings("ignore:overflow")
def test_vectors_that_cannot_be_used_are_a_fault_that_was_paid_for(snapshot):
    """A case is the list of vectors, with their places, that answers two texts."""

    def fault(case):
        messages = [Message(role="user", content=text) for text in ("one", "two")]
        with serving(vectors(*json.loads(case))) as server:
            with pytest.raises(RolloutFault) as caught:
                backbone(server).complete(messages, role="", session="")
            with pytest.raises(ConfigError, match=r"correct embedder\.url and embedder\.model"):
                backbone(server).probe()
        assert (caught.value.paid.text, caught.value.paid.usage.prompt) == ("", 4)
        fault = caught.value.fault
        return f"{fault.owner}, {fault.kind}: {fault.message}".partition("usable vectors")[0]

    assert outcomes(fault, VECTORS) == snapshot


def test_vectors_become_unit_vectors_in_the_order_of_the_texts_and_are_recorded_by_their_text():
    messages = [Message(role="user", content=text) for text in ("one", "")]
    with serving(vectors((1, [0, 0]), (0, [3, 4]))) as server:
        text = backbone(server).complete(messages, role="", session="").text
        assert server.seen[0][2]["input"] == ["one", " "], "servers refuse empty texts"
    found = {name: np.frombuffer(row, dtype="<f4").tolist() for name, row in read_vectors(text).items()}
    assert found == {
        "7692c3ad3540bb803c020b3aee66cd88": pytest.approx([0.6, 0.8]),
        "e3b0c44298fc1c149afbf4c8996fb924": [0.0, 0.0],
    }


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


def test_a_text_that_is_too_long_for_the_model_is_cut_and_the_others_are_not():
    too_long = error(400, "Input validation error: `inputs` must have less than 512 tokens. Given: 900")
    with serving(too_long, too_long, vectors((0, [3, 4]), (1, [0, 1]))) as server:
        backbone = EmbeddingsBackbone(EmbedderSettings(url=server.url, model="tiny"), retry=Retry(times=0))
        texts = ["long " * 200, "short"]
        reply = backbone.complete([Message(role="user", content=text) for text in texts], role="embedder", session="s")
        assert {*read_vectors(reply.text)} == {text_key(text) for text in texts}
        sent = [body["input"] for path, _, body in server.seen if path.endswith("embeddings")]
    assert [len(texts[0]) for texts in sent] == [1000, 500, 250]
    assert {texts[1] for texts in sent} == {"short"}
