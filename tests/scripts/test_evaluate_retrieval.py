"""The retrieval measurement: its figures, and what it refuses to believe."""

import json

import pytest

from scripts import evaluate_retrieval


@pytest.fixture(scope="module")
def script():
    return evaluate_retrieval


@pytest.fixture
def files(tmp_path):
    """Two bullets of three are easy to find, for the third the words mislead."""
    playbook, labels = tmp_path / "playbook.txt", tmp_path / "labels.jsonl"
    playbook.write_text("## OTHERS\n[oth-00001] red apples\n[oth-00002] green pears\n[oth-00003] yellow bananas\n")
    asked = {"red apples": ["oth-00001"], "green pears or yellow": ["oth-00002", "oth-00003"], "apples": ["oth-00003"]}
    labels.write_text("".join(json.dumps({"query": q, "relevant": r}) + "\n" for q, r in asked.items()))
    return ["--playbook", str(playbook), "--labels", str(labels)]


def options(script, arguments):
    names = ("playbook", "labels", "judge", "queries")
    given = dict(zip((a.removeprefix("--") for a in arguments[::2]), arguments[1::2], strict=True))
    values = {**dict.fromkeys(names), **given, "embedder": "hashing", "cross_encoder": None, "threshold": 0.0}
    return script.argparse.Namespace(
        **{k: script.Path(v) if k in ("playbook", "labels", "queries") and v else v for k, v in values.items()}
    )


def test_figures_follow_the_labels(script, files):
    by_way = {one.way: one for one in script.evaluate(options(script, files))}
    assert set(by_way) == {"bm25", "embeddings", "fused"}
    bm25 = by_way["bm25"]
    assert (bm25.recall_1, bm25.recall_5) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert bm25.precision_3 == pytest.approx((1 + 2 + 0) / 9)


def test_the_set_that_ships_is_measured(script, capsys):
    assert script.main([]) == 0
    assert "fused" in capsys.readouterr().out


@pytest.mark.parametrize("judge", ["cosine", "hashing", "some/embedder"])
def test_a_retriever_is_not_judged_by_its_own_cosine(judge, script, tmp_path, capsys):
    queries = tmp_path / "queries.txt"
    queries.write_text("apples\n")
    arguments = ["--judge", judge, "--queries", str(queries), "--embedder", "some/embedder"]
    assert script.main(arguments) == 2
    assert "by its own cosine" in capsys.readouterr().err


def test_a_cross_encoder_does_not_judge_its_own_order(script, tmp_path, capsys):
    queries = tmp_path / "queries.txt"
    queries.write_text("apples\n")
    assert script.main(["--judge", "m", "--queries", str(queries), "--cross-encoder", "m"]) == 2
    assert "also orders the reranked way" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"query": "q"}', "line 1: Object missing required field"),
        ('{"query": "q", "relevant": ["oth-00009"]}', "line 1: no bullet has the id oth-00009"),
        ('{"query": "q", "relevant": []}', "line 1: no bullet is relevant"),
        ("not json", "line 1"),
        ("", "no query to measure with"),
    ],
)
def test_a_broken_label_is_told_by_its_line(*, line, message, script, files, tmp_path, capsys):
    (tmp_path / "labels.jsonl").write_text(line)
    assert script.main(files) == 2
    assert message in capsys.readouterr().err
