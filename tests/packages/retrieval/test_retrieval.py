"""The retrieval measurement: its figures, its files, and what it refuses to believe."""

import json

import pytest

from ace_bench.cli.main import main
from ace_retrieval.labels import SHIPPED, by_wording, read_labels, read_playbook


@pytest.fixture
def files(tmp_path):
    """Two bullets of three are easy to find, for the third the words mislead."""
    playbook, labels = tmp_path / "playbook.txt", tmp_path / "labels.jsonl"
    playbook.write_text("## OTHERS\n[oth-00001] red apples\n[oth-00002] green pears\n[oth-00003] yellow bananas\n")
    asked = {"red apples": ["oth-00001"], "green pears or yellow": ["oth-00002", "oth-00003"], "apples": ["oth-00003"]}
    labels.write_text("".join(json.dumps({"query": q, "relevant": r}) + "\n" for q, r in asked.items()))
    return ["--playbook", str(playbook), "--labels", str(labels)]


def measured(*arguments):
    return main(["retrieval", *arguments])


def test_figures_follow_the_labels_and_are_written_as_markdown_and_json(files, tmp_path, capsys):
    page, data = tmp_path / "ab.md", tmp_path / "ab.json"
    assert measured(*files, "--out", str(page), "--json", str(data)) == 0
    rows = {one["variant"]: one for one in json.loads(data.read_text())}
    bm25 = rows["bm25"]
    assert (bm25["recall_1"], bm25["recall_5"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert bm25["precision_3"] == pytest.approx((1 + 2 + 0) / 9)
    assert [one["row"] for one in rows.values() if one["row"]] == ["A", "B", "C", "D"]
    assert "| A | fused (baseline) |" in page.read_text()
    assert "fused (baseline)" in capsys.readouterr().out


def test_the_set_that_ships_has_halves_that_share_no_bullet_but_as_a_second_answer():
    playbook = read_playbook(SHIPPED.playbook)
    tuning, report = (read_labels(SHIPPED.labels, playbook, half=half) for half in ("tuning", "report"))
    for half, distant in ((tuning, 125), (report, 124)):
        asked = by_wording(half)
        assert {wording: len(queries) for wording, queries in asked.items()} == {"natural": 120, "distant": distant}
    assert not {label.relevant[0] for label in tuning} & {label.relevant[0] for label in report}


def test_each_wording_has_a_table_of_its_own(files, tmp_path):
    page, data, labels = tmp_path / "ab.md", tmp_path / "ab.json", tmp_path / "labels.jsonl"
    with labels.open("a") as more:
        more.write(json.dumps({"query": "cherries", "relevant": ["oth-00001"], "wording": "distant"}) + "\n")
    assert measured(*files, "--out", str(page), "--json", str(data)) == 0
    natural, distant = page.read_text().split("Distant queries:\n")
    assert natural.startswith("Natural queries:\n")
    assert "| bm25 | 66.7 | 66.7 |" in natural
    assert "| bm25 | 0.0 | 0.0 |" in distant
    assert {one["wording"] for one in json.loads(data.read_text())} == {"natural", "distant"}


def test_a_playbook_can_be_filled_up_to_measure_latency(files, capsys):
    assert measured(*files, "--bullets", "300") == 0
    assert "3 natural queries, 300 bullets" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("judge", "message"),
    [(name, "by its own cosine") for name in ("cosine", "hashing", "e")] + [("c", "also orders the reranked way")],
)
def test_no_retriever_judges_itself(judge, message, tmp_path, capsys):
    queries = tmp_path / "queries.txt"
    queries.write_text("apples\n")
    assert measured("--judge", judge, "--queries", str(queries), "--embedder", "e", "--cross-encoder", "c") == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"query": "q"}', "line 1: Object missing required field"),
        ('{"query": "q", "relevant": ["oth-00009"]}', "line 1: no bullet has the id oth-00009"),
        ('{"query": "q", "relevant": ["oth-00001"]}\n' * 2, "line 2: the query 'q' has a line already"),
        ('{"query": "q", "relevant": []}', "line 1: no bullet is relevant"),
        ("not json", "line 1"),
        ("", "no query to measure with"),
    ],
)
def test_a_broken_label_is_told_by_its_line(*, line, message, files, tmp_path, capsys):
    (tmp_path / "labels.jsonl").write_text(line)
    assert measured(*files) == 2
    assert message in capsys.readouterr().err
