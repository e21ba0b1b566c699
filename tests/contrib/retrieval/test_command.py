"""The retrieval measurement: its figures, its files, models in its stages, and what it refuses to believe."""

import json
import re
from collections import Counter

import pytest

from ace_bench.cli.main import main
from ace_bench.contrib.retrieval.by_model import Model
from ace_bench.contrib.retrieval.labels import SHIPPED, by_wording, read_labels, read_playbook
from ace_bench.contrib.retrieval.measuring import Trial, model_variants, retriever_variants
from ace_bench.contrib.retrieval.typos import TypoCorrector
from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import Completion, Fault, Usage
from ace_bench.playbook.embeddings import HashingEmbedder


@pytest.fixture
def files(tmp_path):
    """Two bullets of three are easy to find, for the third the words mislead."""
    playbook, labels = tmp_path / "playbook.txt", tmp_path / "labels.jsonl"
    playbook.write_text("## OTHERS\n[oth-00001] red apples\n[oth-00002] green pears\n[oth-00003] yellow bananas\n")
    asked = {"red apples": ["oth-00001"], "green pears or yellow": ["oth-00002", "oth-00003"], "apples": ["oth-00003"]}
    labels.write_text("".join(json.dumps({"query": q, "relevant": r}) + "\n" for q, r in asked.items()))
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
        ('{"query": "q"}', "line 1: Object missing required field"),
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
