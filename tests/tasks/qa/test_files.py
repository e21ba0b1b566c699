"""Files of every format, and files that cannot be used: each error names the line and the fix."""

import json
import sys

import pytest

from ace_bench.core.errors import AceBenchError
from ace_bench.tasks.qa.columns import Columns, read_questions, text_of
from ace_bench.tasks.qa.files import TextForm, read_file
from tests.outcomes import outcomes
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
    expected = [('Say "a,\nb"?', "ä"), ("Two?", "2")]
    for ending in ("jsonl", "json", "csv", "tsv"):
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


# A file's name and content: how it is refused.
FILES = [
    ("a.jsonl", b""),
    ("a.csv", b"question,answer\n"),
    ("a.json", b" "),
    ("a.jsonl", b'{"question": "a", "answer": "b"}\n\n{"question"'),
    ("a.jsonl", b"[1]"),
    ("a.json", b"{}"),
    ("a.json", b"[1]"),
    ("a.csv", b"question,answer\nx,y\nwo,K\xfcche\n"),
    ("a.jsonl", b'{"question": "\xe4", "answer": 1}'),
    ("a.csv", b"question,anwser,answers\nx,y,z\n"),
    ("a.csv", b"x;y\n1;2\n"),
    ("a.csv", b"question,answer\nx,y\na,b,c\n"),
    ("a.csv", b'question,answer\n"a\nb",y\nx,"y\n'),
    ("a.csv", b"answer,question, answer\nx,y,z\n"),
    ("a.csv", b"question,answer\nx,\nx,\nx,\nx,\nx,\n"),
    ("a.csv", b"question,answer\nx, \nx, \nx, \nx, \nx, \nx, \nx,y"),
    ("a.jsonl", b'{"question": 1, "answer": null}\n{"question": 1, "answer": NaN}\n{"question": 1, "answer": 1}'),
    ("a.jsonl", b'{"question": " ", "answer": 1}'),
    ("a.xlsx", b"x"),
    ("a.jsonl", b'{"question": "\\ud83d", "answer": 1}'),
]


def test_files_that_cannot_be_used_are_refused_as_recorded(snapshot, tmp_path):
    def refuse(case):
        name, content = case
        (tmp_path / name).write_bytes(content)
        return read(tmp_path / name)

    assert outcomes(refuse, FILES, {str(tmp_path): "FOLDER"}) == snapshot


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


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(AceBenchError, match=r"task\.data=hub://owner/name needs the datasets library: run `pip"):
        made("hub://owner/name")


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
