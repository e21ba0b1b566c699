"""A measurement of retrieval embeds each text once, however many ways are compared."""

from collections import Counter

import pytest

from ace_bench.cli.main import start
from ace_bench.contexts.playbook.embed import HashingEmbedder
from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import Completion, Fault, Usage
from ace_retrieval.by_model import Model
from ace_retrieval.labels import read_playbook
from ace_retrieval.measuring import Trial, model_variants, retriever_variants
from ace_retrieval.typos import TypoCorrector


class Counting:
    """Counts how often each text is embedded."""

    def __init__(self):
        self.texts = Counter()

    def embed(self, texts):
        self.texts.update(texts)
        return HashingEmbedder().embed(texts)


def test_each_query_and_bullet_is_embedded_once_for_all_ways(tmp_path):
    embedder, file = Counting(), tmp_path / "playbook.txt"
    file.write_text("## OTHERS\n[oth-00001] tea is hot\n")
    playbook = read_playbook(file)
    trial = Trial(
        playbook=playbook,
        queries={"near": ["is tea hot", "hot drinks"]},
        relevant=lambda *_: True,
        embedder=embedder,
    )
    found = [one for variant in retriever_variants(cross_encoder=False) for one in trial.measure(variant)]
    assert {"is tea hot", "hot drinks", "tea is hot"} <= embedder.texts.keys()
    assert set(embedder.texts.values()) == {1}
    assert all(one.recall_1 == 1 and one.p50_ms >= 0 for one in found)


class Saying:
    """A backbone that says one text for each role, and keeps what it was asked."""

    def __init__(self, **replies):
        self.asked, self._replies = [], replies

    def complete(self, messages, *, role, session, schema=None):
        self.asked.append((role, messages[0].content))
        said = self._replies[role]
        if isinstance(said, Fault):
            raise RolloutFault(said)
        return Completion(text=said, usage=Usage(), seconds=0.0)


def trial(tmp_path, backbone, **queries):
    file = tmp_path / "playbook.txt"
    file.write_text(
        "## OTHERS\n[oth-00001] tea is hot\n[oth-00002] the bus leaves early\n[oth-00003] inventory is counted\n"
    )
    queries = {wording: [query] for wording, query in queries.items()}
    relevant = {"gist": "oth-00002", "typo": "oth-00003"}
    return Trial(
        playbook=read_playbook(file),
        queries=queries,
        relevant=lambda query, bullet: any(queries[one] == [query] and relevant[one] == bullet.id for one in queries),
        embedder=HashingEmbedder(),
        model=Model(backbone),
    )


def found_first(trial, wanted):
    (variant,) = [one for one in model_variants() if wanted in one.name]
    return [one.recall_1 for one in trial.measure(variant)]


def test_a_model_expands_queries_orders_bullets_and_vetoes_corrections(tmp_path):
    said = Saying(expander="bus, leaves; early", validator="The 2nd: 2", typos="No.")
    asked = trial(tmp_path, said, gist="departure tea")
    assert found_first(asked, "expansion by the model") == [1.0]
    assert found_first(asked, "both by the model") == [0.0]  # it puts the second candidate first
    assert [role for role, _ in said.asked] == ["expander", "validator"]
    for answer, validated in (("No.", "inventroy"), ("yes", "inventory")):
        typos = TypoCorrector(max_learned=5)
        typos.validate = Model(Saying(typos=answer)).is_typo
        typos.update(["inventory"])
        assert typos.corrected("inventroy") == validated


def test_a_reply_that_a_model_owes_changes_nothing_and_other_faults_stop(tmp_path):
    silent = Saying(expander=Fault(owner="model", kind="empty_reply", message="empty"))
    assert Model(silent).expanded("tea") == "tea"
    down = Saying(validator=Fault(owner="backbone", kind="timeout", message="slow"))
    with pytest.raises(RolloutFault):
        Model(down).scores("tea", ["tea is hot"])
    assert Model(Saying(validator="9, 0")).scores("tea", ["a", "b"]).tolist() == [0, 0]


def test_a_models_calls_are_limited_and_kept(tmp_path, capsys):
    options = ["--model", "embedded", "--calls", str(tmp_path), "--limit", "2"]
    assert start("retrieval", [*options, "--set", "budget.calls=3"]) != 0
    assert "budget.calls=3 is used up" in capsys.readouterr().err
    kept = (tmp_path / "calls.jsonl").read_text()
    assert len(kept.splitlines()) == 3
    assert start("retrieval", options) == 0
    assert "expansion by the model" in capsys.readouterr().out
    assert (tmp_path / "calls.jsonl").read_text().startswith(kept)
