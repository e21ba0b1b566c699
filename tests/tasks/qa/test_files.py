"""Files of every format, and files that cannot be used: each error names the line and the fix."""

import json
import sys

import pytest

from ace_bench.core.errors import AceBenchError
from ace_bench.tasks.qa.columns import Columns, read_questions, text_of
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
    rows = [(1, 2.0), (True, False), (-3.0, 2.5), (["é", None], ["one", None, "two"]), (1e20, "2.0"), ({"a": 1}, 1)]
    path = write(tmp_path / "a.jsonl", ({"question": q, "answer": a} for q, a in rows))
    texts = ["1", "true", "-3", '["é", null]', "1e+20", '{"a": 1}']
    assert pairs(path) == list(zip(texts, (answer for _, answer in rows), strict=True))
    with pytest.raises(AceBenchError, match="here: column a holds bytes, which are no text; choose another column"):
        text_of(b"x", "here", "a")


HALF = "; fill in or delete the others: FILE, line 1; FILE, line 2"
NAN = b'{"question": 1, "answer": null}\n{"question": 1, "answer": NaN}\n{"question": 1, "answer": 1}'
SIX = "; ".join(f"FILE, line {number}" for number in (2, 3, 4, 5, 6))
SUFFIXES = ".jsonl, .ndjson, .json, .csv, .tsv, .parquet"
WRONG = [
    ("a.jsonl", b"", "FILE holds no rows"),
    ("a.csv", b"question,answer\n", "FILE holds no rows"),
    ("a.json", b" ", "FILE holds no rows"),
    (
        "a.jsonl",
        b'{"question": "a", "answer": "b"}\n\n{"question"',
        "FILE, line 3: broken JSON: Expecting ':' delimiter",
    ),
    ("a.jsonl", b"[1]", "FILE, line 1: a JSON object was expected, found list"),
    ("a.json", b"{}", "FILE must hold a JSON list of objects; name a file of one object a line .jsonl"),
    ("a.json", b"[1]", "FILE, row 1: a JSON object was expected, found int"),
    (
        "a.csv",
        "question,answer\nx,y\nwo,Küche\n".encode("latin-1"),
        "FILE, line 3: character 4 is not utf-8; set task.encoding, such as latin-1",
    ),
    ("a.jsonl", b'{"question": "\xe4", "answer": 1}', "FILE, line 1: character 15 is not utf-8; set task.encoding"),
    (
        "a.csv",
        b"question,anwser,answers\nx,y,z\n",
        "FILE, line 2: there is no column answer (task.answer); "
        "the columns are question, anwser, answers; did you mean answers?",
    ),
    ("a.csv", b"x;y\n1;2\n", "FILE, line 2: there is no column question (task.question); the columns are x;y"),
    (
        "a.csv",
        b"question,answer\nx,y\na,b,c\n",
        "FILE, line 3: 3 cells under 2 columns; quote cells that hold ',' or a line break, or set task.delimiter",
    ),
    (
        "a.csv",
        b'question,answer\n"a\nb",y\nx,"y\n',
        "FILE, line 4: broken CSV: unexpected end of data; a quote may be missing",
    ),
    ("a.csv", b"answer,question, answer\nx,y,z\n", "FILE: more than one column is named 'answer'; rename them"),
    (
        "a.csv",
        b"question,answer\n" + b"x,\n" * 5,
        f"none of 5 rows have an answer in column answer (task.answer); fill in or delete the others: {SIX}",
    ),
    (
        "a.csv",
        b"question,answer\n" + b"x, \n" * 6 + b"x,y",
        f"1 of 7 rows have an answer in column answer (task.answer); fill in or delete the others: {SIX}; ...",
    ),
    ("a.jsonl", NAN, f"1 of 3 rows have an answer in column answer (task.answer){HALF}"),
    ("a.jsonl", b'{"question": " ", "answer": 1}', "FILE, line 1: column question (task.question) is empty"),
    ("a.xlsx", b"x", f"task.data: FILE must end in one of {SUFFIXES}, which names its format"),
    ("a.parquet", b"question", "FILE cannot be read as Parquet: Parquet magic bytes not found in footer."),
    (
        "a.jsonl",
        b'{"question": "\\ud83d", "answer": 1}',
        "FILE, line 1: column question holds half a surrogate pair, which is no text",
    ),
]


@pytest.mark.parametrize(("name", "content", "said"), WRONG, ids=[said for _, _, said in WRONG])
def test_a_file_that_cannot_be_used(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AceBenchError) as caught:
        read(tmp_path / name)
    message = str(caught.value).replace(str(tmp_path / name), "FILE")
    assert message == said or (message.startswith(said) and said.endswith(("delimiter", "footer.", "encoding")))


def test_ids_must_differ_and_may_not_be_empty(tmp_path):
    path = tmp_path / "a.csv"
    columns = Columns(question="question", answer="answer", id="id")
    for ids, said in {
        "aa": rf"{path}, line 3: id a was already used \({path}, line 2\); ids must differ",
        "a ": rf"{path}, line 3: column id \(task.id\) is empty",
    }.items():
        path.write_text("id,question,answer\n" + "".join(f"{one},x,y\n" for one in ids))
        with pytest.raises(AceBenchError, match=f"^{said}$"):
            read(path, columns)
    path.write_text("question,answer\nx,y\nx,y\n")
    assert [one.key for one in read(path)] == ["0001", "0002"]


def test_choices_and_inputs_are_shown(tmp_path):
    path = tmp_path / "a.jsonl"
    row = {"question": "Which?", "answer": "red", "passage": "Two\nlines", "year": 1999, "note": None}
    shown = {"question": "question", "answer": "answer", "inputs": ("passage", "year", "note")}
    for options, texts in (
        (["red", "blue", None], "A. red\nB. blue"),
        ("red|blue", "A. red\nB. blue"),
        (' ["red", "blue"]', "A. red\nB. blue"),
        ('{"text": ["red", "blue"], "label": ["A", "B"]}', "A. red\nB. blue"),
        ("[red]|{blue", "A. [red]\nB. {blue"),
    ):
        path.write_text(json.dumps({**row, "options": options}))
        (question,) = read(path, Columns(**shown, choices="options"))
        assert question.text == f"passage:\nTwo\nlines\n\nyear: 1999\n\nWhich?\n\n{texts}"
    (question,) = read(path, Columns(**{**shown, "inputs": None}, choices=("year", "passage")))
    assert question.text == "Which?\n\nA. 1999\nB. Two\nlines"
    for options in ("red", 5, {"label": ["A"]}):
        path.write_text(json.dumps({**row, "options": options}))
        with pytest.raises(AceBenchError, match=r"line 1: [01] choices in options \(task.choices\); write a list, or"):
            read(path, Columns(**shown, choices="options"))


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
