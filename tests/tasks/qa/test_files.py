"""Files of every format, and files that cannot be used: each error names the line and the fix."""

import json
import sys

import pytest

from ace_bench.core.errors import AceBenchError
from ace_bench.tasks.qa.columns import Columns, read_questions
from ace_bench.tasks.qa.files import TextForm, read_file
from tests.tasks.qa.making import made, write

QA = Columns(question="question", answer="answer")


def read(path, columns=QA, **form):
    return read_questions(read_file(path, TextForm(**{"encoding": "utf-8", "delimiter": ",", **form})), columns)


def pairs(path, **form):
    return [(one.text, one.answer) for one in read(path, **form)]


def test_all_formats_hold_the_same_questions(tmp_path):
    rows = [{"question": 'Say "a,\nb"?', "answer": "ä"}, {"question": "Two?", "answer": "2"}]
    table = 'question,answer\r\n"Say ""a,\nb""?",ä\r\n\r\nTwo?,2\r\n'
    tabs = table.replace("question,", "question\t").replace('",ä', '"\tä').replace("?,2", "?\t2")
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8-sig")
    (tmp_path / "a.json").write_text(json.dumps(rows), encoding="utf-8")
    (tmp_path / "a.csv").write_bytes(table.encode("utf-8-sig"))
    (tmp_path / "a.tsv").write_bytes(tabs.encode())
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    expected = [('Say "a,\nb"?', "ä"), ("Two?", "2")]
    for ending in ("jsonl", "json", "csv", "tsv", "parquet"):
        assert pairs(tmp_path / f"a.{ending}") == expected, ending
    (tmp_path / "a.csv").write_bytes(tabs.replace("\t", ";").encode("latin-1"))
    assert pairs(tmp_path / "a.csv", encoding="latin-1", delimiter=";") == expected


def test_values_of_several_types_become_text(tmp_path):
    rows = [(1, 2.0), (True, False), ("x", 2.5), ("y", ["one", None, "two"])]
    path = write(tmp_path / "a.jsonl", ({"question": q, "answer": a} for q, a in rows))
    assert pairs(path) == [("1", 2.0), ("true", False), ("x", 2.5), ("y", ["one", None, "two"])]


MISSING = "line 2: there is no column answer (task.answer); the columns are question, anwser; did you mean anwser?"
NO_ANSWERS = b'{"question": 1, "answer": null}\n{"question": 1, "answer": NaN}\n{"question": 1, "answer": 1}'
CODING = "line 3: character 4 is not utf-8; set task.encoding, such as latin-1"
WRONG = [
    ("a.jsonl", b"", "holds no rows"),
    ("a.csv", b"question,answer\n", "holds no rows"),
    ("a.jsonl", b'{"question": "a", "answer": "b"}\n{"question": "a', "line 2: broken JSON"),
    ("a.jsonl", b"[1]", "line 1: a JSON object was expected, found list"),
    ("a.json", b"{}", "must hold a JSON list of objects"),
    ("a.json", b"[1]", "row 1: a JSON object was expected, found int"),
    ("a.csv", "question,answer\nx,y\nwo,Küche\n".encode("latin-1"), CODING),
    ("a.jsonl", b'{"question": "\xe4", "answer": 1}', "line 1: character 15 is not utf-8"),
    ("a.csv", b"question,anwser\nx,y\n", MISSING),
    ("a.csv", b"question;answer\nx;y\n", "the columns are question;answer"),
    ("a.csv", b"question,answer\nx,y\na,b,c\n", "line 3: 3 cells under 2 columns"),
    ("a.csv", b'question,answer\n"a\nb",y\nx,"y\n', "line 4: broken CSV"),
    ("a.csv", b"answer,question,answer\nx,y,z\n", "more than one column is named 'answer'"),
    ("a.csv", b"question,answer\nx,\ny, \n", "none of 2 rows have an answer in column answer (task.answer)"),
    ("a.jsonl", NO_ANSWERS, "1 of 3 rows have an answer"),
    ("a.jsonl", b'{"question": " ", "answer": 1}', "line 1: column question (task.question) is empty"),
    ("a.xlsx", b"x", "must end in one of .jsonl, .ndjson, .json, .csv, .tsv, .parquet"),
    ("a.parquet", b"question", "cannot be read as Parquet"),
    ("a.jsonl", b'{"question": "\\ud83d", "answer": 1}', "holds half a surrogate pair"),
]


@pytest.mark.parametrize(("name", "content", "said"), WRONG, ids=[said for _, _, said in WRONG])
def test_a_file_that_cannot_be_used(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AceBenchError) as caught:
        read(tmp_path / name)
    assert said in str(caught.value)


def test_ids_must_differ_and_may_not_be_empty(tmp_path):
    path = tmp_path / "a.csv"
    columns = Columns(question="question", answer="answer", id="id")
    path.write_text("id,question,answer\na,x,y\na,x,y\n")
    with pytest.raises(AceBenchError, match=r"line 3: id a was already used \(.*line 2\); ids must differ"):
        read(path, columns)
    path.write_text("id,question,answer\n,x,y\n")
    with pytest.raises(AceBenchError, match=r"line 2: column id \(task.id\) is empty"):
        read(path, columns)


def test_choices_and_inputs_are_shown(tmp_path):
    path = tmp_path / "a.jsonl"
    row = {"question": "Which?", "answer": "red", "passage": "Two\nlines", "year": 1999, "note": None}
    columns = Columns(question="question", answer="answer", inputs=("passage", "year", "note"), choices="options")
    for options in (["red", "blue"], "red|blue", '["red", "blue"]', {"text": ["red", "blue"], "label": ["A", "B"]}):
        path.write_text(json.dumps({**row, "options": options}))
        (question,) = read(path, columns)
        assert question.text == "passage:\nTwo\nlines\n\nyear: 1999\n\nWhich?\n\nA. red\nB. blue"
    path.write_text(json.dumps({**row, "options": "red"}))
    with pytest.raises(AceBenchError, match="line 1: 1 choices in options"):
        read(path, columns)


@pytest.mark.parametrize(
    ("library", "data", "said"),
    [
        ("pyarrow", "a.parquet", "Parquet files need pyarrow: run `pip install 'ace-bench[data]'`"),
        ("datasets", "hub://owner/name", "task.data=hub://owner/name needs the datasets library: run `pip install"),
    ],
)
def test_a_missing_extra_is_named(library, data, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(AceBenchError) as caught:
        made(data)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"delimiter": '"'}, "delimiter='\"' must be one character"),
        ({"delimiter": "::"}, "delimiter='::' must be one character"),
        ({"encoding": "utf-99"}, "encoding=utf-99 is not an encoding that Python knows"),
        ({"data": "nowhere.csv"}, "nowhere.csv is not a file"),
    ],
)
def test_settings_of_files_that_cannot_work(settings, said, tmp_path):
    (tmp_path / "a.csv").write_text("question,answer\nx,y\n")
    with pytest.raises(AceBenchError) as caught:
        made(**{"data": tmp_path / "a.csv", **settings})
    assert said in str(caught.value)
