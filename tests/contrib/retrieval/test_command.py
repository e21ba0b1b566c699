"""The retrieval measurement: its figures, its files, models in its stages, and what it refuses to believe."""

import json
import re
from collections import Counter
from importlib.util import find_spec

import numpy as np
import pytest

from ace_bench.cli.main import main
from ace_bench.contrib.retrieval.by_model import Model
from ace_bench.contrib.retrieval.features import CrossEncoderReranker
from ace_bench.contrib.retrieval.labels import SHIPPED, by_wording, read_labels, read_playbook, relevance_by_model
from ace_bench.contrib.retrieval.measuring import Trial, model_variants, retriever_variants
from ace_bench.contrib.retrieval.typos import TypoCorrector
from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import Completion, Fault, Usage
from ace_bench.playbook.embeddings import HashingEmbedder

ASKED = {"red apples": ["oth-00001"], "green pears or yellow": ["oth-00002", "oth-00003"], "apples": ["oth-00003"]}


@pytest.fixture
def files(tmp_path):
    """Two bullets of three are easy to find, for the third the words mislead."""
    playbook, labels = tmp_path / "playbook.txt", tmp_path / "labels.jsonl"
    playbook.write_text("## OTHERS\n[oth-00001] red apples\n[oth-00002] green pears\n[oth-00003] yellow bananas\n")
    labels.write_text("".join(json.dumps({"query": q, "relevant": r}) + "\n" for q, r in ASKED.items()))
    return ["--playbook", str(playbook), "--labels", str(labels)]


def test_figures_follow_the_labels_and_each_wording_has_a_table(snapshot, files, tmp_path, capsys):
    page, data, labels = tmp_path / "ab.md", tmp_path / "ab.json", tmp_path / "labels.jsonl"
    with labels.open("a") as more:
        more.write(json.dumps({"query": "cherries", "relevant": ["oth-00001"], "wording": "distant"}) + "\n")
    assert main(["retrieval", *files, "--out", str(page), "--json", str(data)]) == 0
    assert re.sub(r"( [\d.]+ \|){2}\n", "\n", page.read_text()) == snapshot  # without milliseconds
    rows = {(one["wording"], one["variant"]): one["precision_3"] for one in json.loads(data.read_text())}
    assert rows["natural", "bm25"] == pytest.approx((1 + 2 + 0) / 9)
    assert main(["retrieval", *files, "--bullets", "300"]) == 0
    assert "3 natural queries, 300 bullets" in capsys.readouterr().out


def test_the_set_that_ships_has_halves_that_share_no_bullet_but_as_a_second_answer():
    playbook = read_playbook(SHIPPED.playbook)
    tuning, report = (read_labels(SHIPPED.labels, playbook, half=half) for half in ("tuning", "report"))
    for half, distant in ((tuning, 125), (report, 124)):
        asked = by_wording(half)
        assert {wording: len(queries) for wording, queries in asked.items()} == {"natural": 120, "distant": distant}
    assert not {label.relevant[0] for label in tuning} & {label.relevant[0] for label in report}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"query": "q"}', "line 1: no bullet is relevant"),
        ('{"query": "q", "relevant": ["oth-00009"]}', "line 1: no bullet has the id oth-00009"),
        ('{"query": "q", "relevant": ["oth-00001"]}\n' * 2, "line 2: the query 'q' has a line already"),
        ('{"query": "q", "relevant": []}', "line 1: no bullet is relevant"),
        ("", "no query to measure with"),
    ],
)
def test_a_broken_label_is_told_by_its_line(*, line, message, files, tmp_path, capsys):
    (tmp_path / "labels.jsonl").write_text(line)
    assert main(["retrieval", *files]) == 2
    assert message in capsys.readouterr().err


def test_each_query_and_bullet_is_embedded_once_for_all_ways(tmp_path):
    counted = Counter()

    class Counting(HashingEmbedder):
        def embed(self, texts):
            counted.update(texts)
            return super().embed(texts)

    queries = {"near": ["is tea hot", "tea"]}
    trial = Trial(playbook=book(tmp_path, "tea is hot"), queries=queries, relevant=lambda *_: True, embedder=Counting())
    (found,) = trial.measure_all(retriever_variants(cross_encoder=False)).values()
    assert {"is tea hot", "tea", "tea is hot"} <= counted.keys()
    assert set(counted.values()) == {1}
    assert all(one.recall_1 == 1 and one.p50_ms >= 0 for one in found)


def test_a_judge_takes_the_place_of_labels(files, tmp_path):
    """Queries need no labels then, and the judge is asked once for a pair."""
    (tmp_path / "labels.jsonl").write_text('{"query": "pears"}\n{"query": "apples"}\n')
    pages, asked = read_playbook(tmp_path / "playbook.txt"), Counter()

    class ByLetters:
        def scores(self, query, texts):
            asked.update((query, text) for text in texts)
            return np.array([-5.0 - 10 * (query not in text) for text in texts], dtype=np.float32)

    queries = by_wording(read_labels(tmp_path / "labels.jsonl", pages, half="report", judged=True))
    judged = relevance_by_model(ByLetters(), -10.0)
    trial = Trial(playbook=pages, queries=queries, relevant=judged, embedder=HashingEmbedder())
    measured = trial.measure_all(retriever_variants(cross_encoder=False))["natural"]
    assert all((one.recall_5, one.precision_3) == (1.0, pytest.approx(1 / 3)) for one in measured)
    assert set(asked.values()) == {1}


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs the extra embeddings")
def test_a_cross_encoder_judges_and_reranks(files, tmp_path):
    """The library's own, with random weights: what it scores highest is first, and relevant above its threshold."""
    model, data = tiny_cross_encoder(tmp_path / "model"), tmp_path / "ab.json"
    texts = [bullet.content for bullet in read_playbook(tmp_path / "playbook.txt").bullets]
    scores = np.array([CrossEncoderReranker(model).scores(query, texts) for query in ASKED])
    for above, recall in ((scores.min() - 1, 1.0), (np.sort(scores.max(axis=1))[0], 2 / 3), (scores.max() + 1, 0.0)):
        options = ["--cross-encoder", model, "--judge", model, "--judge-above", str(above)]
        assert main(["retrieval", *files, *options, "--json", str(data)]) == 0
        rows = {row["variant"]: row["recall_1"] for row in json.loads(data.read_text())}
        assert rows["cross-encoder"] == pytest.approx(recall)


def tiny_cross_encoder(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, set_seed

    set_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *["red", "apples", "green", "pears", "yellow", "bananas", "or"]]
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=len(words), num_labels=1, initializer_range=1.0, **sizes)
    BertForSequenceClassification(config).save_pretrained(folder)
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    return str(folder)


@pytest.mark.skipif(find_spec("sentence_transformers") is not None, reason="the extra is installed")
def test_a_judge_without_its_extra_is_refused(files, capsys):
    assert main(["retrieval", *files, "--judge", "any"]) == 2
    assert "ace-bench[embeddings]" in capsys.readouterr().err


def book(folder, *texts):
    file = folder / "book.txt"
    lines = [f"[oth-{number:05d}] {text}\n" for number, text in enumerate(texts, 1)]
    file.write_text("".join(["## OTHERS\n", *lines]))
    return read_playbook(file)


class Saying:
    """A backbone that says one text for each role, and keeps the roles that were asked."""

    def __init__(self, **replies):
        self.asked, self._replies = [], replies

    def complete(self, messages, *, role, session, schema=None):
        self.asked.append(role)
        if isinstance(said := self._replies[role], Fault):
            raise RolloutFault(said)
        return Completion(text=said, usage=Usage(), seconds=0.0)


def test_a_model_expands_queries_orders_bullets_and_vetoes_corrections(tmp_path):
    said = Saying(expander="bus, leaves; early", validator="The 2nd: 2", typos="No.")
    trial = Trial(
        playbook=book(tmp_path, "tea is hot", "the bus leaves early", "inventory is counted"),
        queries={"gist": ["departure tea"]},
        relevant=lambda _, bullet: bullet.id == "oth-00002",
        embedder=HashingEmbedder(),
        model=Model(said),
    )
    expansion, both = (one for one in model_variants() if one.row in ("C", "D"))
    assert [one.recall_1 for one in trial.measure(expansion)] == [1.0]
    assert [one.recall_1 for one in trial.measure(both)] == [0.0]  # it puts the second candidate first
    assert said.asked == ["expander", "validator"]
    for answer, validated in (("No.", "inventroy"), ("yes", "inventory")):
        typos = TypoCorrector(max_learned=5)
        typos.validate = Model(Saying(typos=answer)).is_typo
        typos.update(["inventory"])
        assert typos.corrected("inventroy") == validated


def test_a_reply_that_a_model_owes_changes_nothing_and_other_faults_stop():
    silent = Saying(expander=Fault(owner="model", kind="empty_reply", message="empty"))
    assert Model(silent).expanded("tea") == "tea"
    with pytest.raises(RolloutFault):
        Model(Saying(validator=Fault(owner="backbone", kind="timeout", message="slow"))).scores("tea", ["tea is hot"])
    assert Model(Saying(validator="6, the 2nd, 9, 0, 5")).scores("tea", [*"abcdef"]).tolist() == [0, 1, 0, 0, 1, 0]


def test_a_models_calls_are_limited_and_kept(tmp_path, capsys):
    options = ["retrieval", "--model", "embedded", "--calls", str(tmp_path), "--limit", "2"]
    assert main([*options, "--set", "budget.calls=3"]) != 0
    assert "budget.calls=3 is used up" in capsys.readouterr().err
    kept = (tmp_path / "calls.jsonl").read_text()
    assert len(kept.splitlines()) == 3
    assert main(options) == 0
    assert "expansion by the model" in capsys.readouterr().out
    assert (tmp_path / "calls.jsonl").read_text().startswith(kept)
