"""Reads the questions of a data folder, writes them as texts, and reads the query in an answer.

docs/tasks/bird_sql.md describes the three forms of a folder. Where a form has no splits, questions are drawn: sorted by
a hash of seed and text, so that a draw depends neither on the file's order nor on a library. A question that occurs
twice is never in two splits. The test split of StreamBench is put in its order (its shuffle, by the same seed).

The judge is a model that says whether a query means what the gold query means (paper, section 4.1). The paper names the
model, GPT-4o-mini, and not the prompt; ``prompts/<set>/bird_sql/judge.j2`` is ours. The judge sees question, schema and
both queries, but no results. It is not asked where the answer is the gold query letter for letter (correct) or holds no
query (incorrect).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ace_bench.core.errors import DataError, SettingError
from ace_bench.core.program import command_line
from ace_bench.core.settings import Count, Seed
from ace_bench.tasks.data import SPLITS, Row, object_of, read_records, shuffle, text_of

MINI_DEV = "mini_dev_sqlite.json"
LEVELS = ("simple", "moderate", "challenging")

_NEEDED = ("question", "SQL", "db_id")


@dataclass(frozen=True, kw_only=True)
class Draw:
    """How many questions are drawn for ``train`` and ``val``, and by which ``seed``."""

    train: Count
    val: Count
    seed: Seed


class Questions(NamedTuple):
    """The names of the files that were read, and the questions by split."""

    files: tuple[str, ...]
    splits: Mapping[str, Sequence[Row]]


def read_folder(folder: Path, *, stream_bench: Draw, mini_dev: Draw) -> Questions:
    """Read a data folder in any of the three forms.

    A row has the fields ``question``, ``SQL``, ``db_id`` and, "" where not known, ``evidence`` and ``difficulty``.
    Raises ``ConfigError`` for a draw of too many questions, ``DataError`` for missing files and bad rows.
    """
    if (folder / MINI_DEV).is_file() and not (folder / "test.jsonl").is_file():
        return Questions((MINI_DEV,), _draw_splits(_read_mini_dev(folder / MINI_DEV), "mini_dev", mini_dev))
    names = tuple(f"{split}.jsonl" for split in SPLITS if split != "val" or (folder / "val.jsonl").is_file())
    read = {name.removesuffix(".jsonl"): _read_split(folder / name) for name in names}
    if "val" not in read:
        parts = _draw_splits(read["train"], "stream_bench", stream_bench)
        read = {**parts, "test": tuple(shuffle(read["test"], stream_bench.seed))}
    return Questions(names, read)


def _read_split(path: Path) -> tuple[Row, ...]:
    if not path.is_file():
        raise DataError(
            f"{path.parent} lacks {path.name}; run `{command_line('data')} bird_sql` or point task.data_dir "
            f"at a folder that holds train.jsonl and test.jsonl, or {MINI_DEV}"
        )
    return tuple(_row(record, key, where) for key, where, record in read_records(path))


def _read_mini_dev(path: Path) -> tuple[Row, ...]:
    """Read mini-dev; keys are the positions in the file (1-based, four digits): its question ids repeat."""
    try:
        records = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is not a JSON file: {error}; fetch it again") from error
    if not isinstance(records, list) or not records:
        raise DataError(f"{path}: a list of questions was expected; fetch it again")
    return tuple(
        _row(record, f"{number:04d}", f"{path}, question {number}") for number, record in enumerate(records, start=1)
    )


def _row(value: object, key: str, where: str) -> Row:
    record = object_of(value, where)
    fields = {name: text_of(record, name, where) for name in _NEEDED}
    for name in ("evidence", "difficulty"):
        fields[name] = text_of(record, name, where).strip() if record.get(name) else ""
    if fields["difficulty"] not in ("", *LEVELS):
        raise DataError(f"{where}: difficulty {fields['difficulty']!r} is not one of {', '.join(LEVELS)}")
    if not fields["db_id"].replace("_", "").replace("-", "").isalnum():
        raise DataError(f"{where}: db_id {fields['db_id']!r} is not a database name")
    return Row(key=key, where=where, fields=fields)


def _draw_splits(rows: Sequence[Row], name: str, draw: Draw) -> Mapping[str, tuple[Row, ...]]:
    """Draw train and val; the remaining rows are test. Each split keeps the order of the file."""
    texts = sorted({_identity(row) for row in rows}, key=lambda text: _hash(draw.seed, text))
    ends = (0, draw.train, draw.train + draw.val, len(texts))
    if ends[2] >= ends[3]:
        raise SettingError(f"{name} draws {ends[2]} of {ends[3]} questions for train and val: draw fewer")
    places = {text: index for index, text in enumerate(texts)}
    return {
        split: tuple(row for row in rows if start <= places[_identity(row)] < end)
        for split, (start, end) in zip(SPLITS, pairwise(ends), strict=True)
    }


def _identity(row: Row) -> str:
    return f"{row.fields['db_id']}\n{row.fields['question']}"


def _hash(seed: int, text: str) -> bytes:
    return hashlib.sha256(f"{seed}\n{text}".encode()).digest()


INSTRUCTION = (
    "Write one SQLite query that answers the user's question about a database. Name tables and columns exactly as the "
    "schema does, and return exactly what is asked for, without further columns. The answer is the query alone: no "
    "explanation, no comments, one statement.\n\n"
)

_SCHEMA, _KNOWLEDGE, _QUESTION = "Database schema:\n", "\n\nExternal knowledge: ", "\n\nUser question: "
_FENCE = re.compile(r"```([a-z0-9]*)[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_OPENING = "```sql\n"
_STREAM_BENCH_BLOCK = re.compile(r"```sql\n(.*?)\n```", re.DOTALL)
_COMMENT = r"--[^\n]*|/\*.*?(?:\*/|\Z)"
_TOKEN = re.compile(rf"""{_COMMENT}|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|\w+|[()]""", re.DOTALL)
"""One token: a comment, a string, a quoted name, a word or a bracket."""


def format_question(schema: str, evidence: str, question: str) -> str:
    """Join the parts of a question; without evidence its paragraph is left out."""
    knowledge = f"{_KNOWLEDGE}{evidence}" if evidence else ""
    return f"{_SCHEMA}{schema}{knowledge}{_QUESTION}{question}"


def parts_of(text: str) -> tuple[str, str]:
    """Return the schema and the rest (knowledge and question) of what ``format_question`` made."""
    about, _, question = text.removeprefix(_SCHEMA).partition(_QUESTION)
    schema, _, knowledge = about.partition(_KNOWLEDGE)
    return schema, f"{question}\n\n(External knowledge: {knowledge})" if knowledge else question


def sql_of(answer: str | None) -> str:
    """Return the query in an answer: the first ``sql`` block, else the first fenced block, else the whole text."""
    text = (answer or "").strip()
    blocks = _FENCE.findall(text) if "```" in text else []
    marked = [block for language, block in blocks if language.lower() in ("sql", "sqlite")]
    sql: str = (marked or [block for _, block in blocks] or [text])[0]
    return sql.strip()


def sql_by_stream_bench(answer: str) -> str:
    """Return the query that StreamBench runs for a reply: what its rule leaves of fences, with SELECT in front."""
    sql = answer
    if sql.startswith(_OPENING) and sql.endswith("```"):
        sql = sql[len(_OPENING) : -3]
    elif "```" in sql:
        block = _STREAM_BENCH_BLOCK.search(sql)
        opened = sql.replace(_OPENING, "```").replace(_OPENING.replace("sql", "SQL"), "```")
        sql = block[1] if block else opened.partition("```")[2].replace("```", "")
    sql = sql.strip()
    return sql if sql.startswith("SELECT") else f"SELECT {sql}"


def orders(sql: str) -> bool:
    """Whether a query fixes the order of its rows: it has an ORDER BY outside all brackets, strings and comments."""
    depth, keywords = 0, []
    for token in _TOKEN.findall(sql):
        if token.startswith(("--", "/*")):
            continue
        depth += (token == "(") - (token == ")")
        if depth == 0:
            keywords.append(token.lower())
    return ("order", "by") in pairwise(keywords)
