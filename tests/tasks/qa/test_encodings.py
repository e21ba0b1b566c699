"""Encodings and delimiters of users' files: read right, or refused with the setting that reads them right."""

import json

import pytest

from ace_bench.core.errors import DataError
from tests.tasks.qa.test_files import pairs

ASKED, ANSWER = "It’s 5 € – “why”… 中?", "Küche"
UTF = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
ROWS = [{"question": ASKED, "answer": ANSWER}]
FORMS = {
    "csv": f"question,answer\r\n{ASKED},{ANSWER}\r\n",
    "tsv": f"question\tanswer\n{ASKED}\t{ANSWER}\n",
    "jsonl": json.dumps(ROWS[0], ensure_ascii=False),
    "json": json.dumps(ROWS, ensure_ascii=False),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("encoding", UTF)
def test_every_utf_is_recognised_with_and_without_a_mark(encoding, form, tmp_path):
    path = tmp_path / f"a.{form}"
    path.write_bytes(FORMS[form].encode(encoding))
    assert pairs(path) == [(ASKED, ANSWER)]


def test_the_ends_of_utf_16_are_told_apart_in_texts_without_letters(tmp_path):
    path = tmp_path / "a.csv"
    for encoding in ("utf-16-le", "utf-16-be"):
        path.write_bytes("question,answer\n一一一一一一一一一一一一一一,一\n".encode(encoding))
        assert pairs(path) == [("一" * 14, "一")]


WRITTEN = {"cp1252": "It’s €5 – “ok”…", "koi8_r": "Привет как дела", "shift_jis": "日本の首都は？東京です"}


@pytest.mark.parametrize("encoding", WRITTEN)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_what_is_no_utf_is_never_guessed_and_read_where_it_is_named(encoding, form, tmp_path):
    text = WRITTEN[encoding]
    path = tmp_path / f"a.{form}"
    row = json.dumps({"question": text, "answer": "x"}, ensure_ascii=False)
    path.write_bytes((row if form == "jsonl" else f'question,answer\nx,y\n"{text}",x\n').encode(encoding))
    with pytest.raises(DataError) as refused:
        pairs(path)
    said = str(refused.value)
    assert f"line {1 if form == 'jsonl' else 3} is not utf-8; set task.encoding to" in said
    assert "such as cp1252 (Windows)" in said
    assert pairs(path, encoding=encoding)[-1] == (text, "x")


@pytest.mark.parametrize(
    ("content", "encoding", "said"),
    [
        (
            "It’s".encode("cp1252"),
            "latin-1",
            "line 2 is not latin-1; set task.encoding to the file's own, such as cp1252",
        ),
        ("wait…".encode("cp1252"), "latin-1", "line 2 is not latin-1; set task.encoding to"),
        ("café".encode(), "latin-1", "is UTF-8, not latin-1; leave task.encoding=latin-1 out"),
        ("“a”".encode(), "cp1252", "is UTF-8, not cp1252; leave task.encoding=cp1252 out"),
        ("中国".encode(), "gb18030", "is UTF-8, not gb18030; leave task.encoding=gb18030 out"),
        ("It\x92s".encode(), "utf-8", "line 2: 'It\\x92s,y' holds the control character U+0092"),
        (b"a\xff\x81\x8d", "cp1252", "line 2 is not cp1252; "),
        (b"Wh\0y", "utf-8", "line 2: 'Wh\\x00y,y' holds the control character U+0000, which no text has; write"),
        ("Wh\0y é".encode(), "utf-8", "line 2: 'Wh\\x00y é,y' holds the control character U+0000"),
    ],
)
def test_a_setting_that_corrupts_is_refused(content, encoding, said, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"question,answer\n" + content + b",y\n")
    with pytest.raises(DataError) as refused:
        pairs(path, encoding=encoding)
    assert said in str(refused.value)


def test_control_characters_in_escapes_of_json_are_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"question": "It\\u0092s", "answer": 1}')
    with pytest.raises(DataError, match=r"line 1: .* holds the control character U\+0092"):
        pairs(path)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "shift_jis", "utf-16-le"])
def test_an_encoding_that_is_named_is_read(encoding, tmp_path):
    path = tmp_path / "a.csv"
    answer = {"shift_jis": "東京"}.get(encoding, "Küche")
    path.write_bytes(f"question,answer\nx,{answer}\n".encode(encoding))
    assert pairs(path, encoding=encoding) == [("x", answer)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_delimiters_are_recognised_by_the_header(delimiter, suffix, end, tmp_path):
    path = tmp_path / f"a.{suffix}"
    cells = [["id", "question", "answer"], ["1", '"a, b; c\t|""d"', "5"]]
    path.write_bytes(end.join([*map(delimiter.join, cells), ""]).encode())
    assert pairs(path) == [('a, b; c\t|"d', "5")]


def test_the_first_line_that_excel_writes_names_the_delimiter(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("sep=;\nquestion, long;question;answer\nx;a, b;c\n")
    assert pairs(path) == [("a, b", "c")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("question (a, b);question;answer\n1, x;y;z\n", "the columns are question (a, b);question;answer; set what"),
        ("question (a, b);question;answer\n1;y;z\n", "line 2: 1 cells under 2 columns"),
    ],
)
def test_a_delimiter_that_cannot_be_told_is_advised(content, said, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(DataError) as refused:
        pairs(path)
    assert said in str(refused.value)
    assert str(refused.value).endswith("""such as 'task.delimiter=";"'""")
