"""A measurement of retrieval embeds each text once, however many ways are compared."""

from collections import Counter

from ace_bench.contexts.playbook.embed import HashingEmbedder
from ace_retrieval.labels import read_playbook
from ace_retrieval.measuring import Trial, retriever_variants


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
