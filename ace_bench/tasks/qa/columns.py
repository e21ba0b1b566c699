"""Turns a row of a file into a question: the named columns as text, checked."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cached_property, reduce
from string import ascii_uppercase

from ace_bench.core.encoding import digest_of_text
from ace_bench.core.errors import DataError, SettingError
from ace_bench.core.settings import Text
from ace_bench.core.words import visible
from ace_bench.tasks.qa.files import Records, suggest_delimiter

_MOST_PLACES = 5


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of columns. ``choices`` are one column with all options, or one for each; ``inputs`` are shown, too.

    Raises ``SettingError`` if one column has two of the parts question, inputs, choices and answer.
    """

    question: Text | None
    answer: Text | None
    id: Text | None = None
    choices: Text | Sequence[Text] | None = None
    inputs: Text | Sequence[Text] | None = None
    group: Text | None = None
    split: Text | None = None

    def __post_init__(self) -> None:
        taken = dict[str, str]()
        for setting in ("answer", "question", "inputs", "choices"):
            for name in self.named[setting]:
                override = f"{setting}={name}"
                earlier = taken.setdefault(_spelling(name), override)
                if earlier is not override:
                    raise SettingError(
                        f"{override} names the column of task.{earlier}: question, inputs, choices and answer must be "
                        "different columns, since the model sees all of them but the answer"
                    )

    @cached_property
    def named(self) -> Mapping[str, Sequence[str]]:
        """The columns that every row must have, by their setting."""
        names_of = {field.name: getattr(self, field.name) or () for field in fields(self)}
        return {setting: (names,) if isinstance(names, str) else tuple(names) for setting, names in names_of.items()}

    def check_named(self) -> None:
        """Raise ``SettingError`` if question or answer is not named."""
        for setting in ("question", "answer"):
            if not self.named[setting]:
                raise SettingError(f"{setting}=null must name a column of task.data; write task.{setting}=COLUMN")


@dataclass(frozen=True, kw_only=True)
class Question:
    """A row, read from ``where``: what the model is shown as text, the answer as in the file, and where it belongs.

    ``group`` and ``split`` are "" without a column.
    """

    key: str
    where: str
    text: str
    answer: object
    choices: tuple[str, ...]
    group: str
    split: str

    @cached_property
    def digest(self) -> str:
        """Digest of what the model is shown; equal for questions that are repeated."""
        return digest_of_text(self.text)


def read_questions(records: Records, columns: Columns) -> list[Question]:
    """Read all rows; a row without an id gets its number, from 1. Raises ``DataError`` that names the line."""
    (answer,) = columns.named["answer"]
    questions, keys, unanswered = list[Question](), dict[str, str](), list[str]()
    copies = [*columns.named["question"], *columns.named["inputs"]]
    for number, (where, record) in enumerate(records, start=1):
        _check_columns(record, columns, where)
        if _is_missing(record[answer]):
            unanswered.append(where)
            continue
        key = f"{number:04d}" if columns.id is None else _required_text(record, columns.id, where, "id")
        if key in keys:
            raise DataError(f"{where}: id {key} was already used ({keys[key]}); ids must differ")
        keys[key] = where
        choices = _choices(record, columns.named["choices"], where)
        gold = text_of(record[answer], where, answer) if copies else ""
        copies = [name for name in copies if text_of(record[name], where, name) == gold]
        questions.append(
            Question(
                key=key,
                where=where,
                text=_show_question(record, columns, choices, where),
                answer=record[answer],
                choices=choices,
                group="" if columns.group is None else text_of(record[columns.group], where, columns.group),
                split="" if columns.split is None else _required_text(record, columns.split, where, "split"),
            )
        )
    if unanswered:
        raise DataError(_without_answers(unanswered, len(questions) + len(unanswered), answer))
    if copies and questions:
        raise DataError(
            f"column {copies[0]} equals column {answer} (task.answer) in all {len(questions)} rows up to "
            f"{questions[-1].where}, so the model would be shown the answer; name another column"
        )
    return questions


def _spelling(name: str) -> str:
    """Return what two spellings of one name have in common: letters and digits, whatever their case."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(filter(str.isalnum, plain)) or plain


def _check_columns(record: Mapping[str, object], columns: Columns, where: str) -> None:
    for setting, names in columns.named.items():
        for name in names:
            if name not in record:
                close = get_close_matches(name, map(str, record), n=1)
                hint = "".join(f"; did you mean {suggestion}?" for suggestion in close)
                raise DataError(
                    f"{where}: there is no column {name} (task.{setting}); "
                    f"the columns are {', '.join(map(str, record))}{_suggest_delimiter(record) or hint}"
                )


def _suggest_delimiter(record: Mapping[str, object]) -> str:
    advice = suggest_delimiter([str(name) for name in record])
    return f"; set what parts them{advice}" if advice else ""


def accepted_values(question: Question) -> list[object]:
    """Return the accepted answers: the items of a list, or the one value. Raises ``DataError`` for an empty list."""
    values = question.answer if isinstance(question.answer, list) else [question.answer]
    accepted = [value for value in values if not _is_missing(value)]
    if not accepted:
        raise DataError(f"{question.where}: the list of accepted answers is empty")
    return accepted


def _is_missing(value: object) -> bool:
    if isinstance(value, str):
        return not visible(value).strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def _without_answers(places: Sequence[str], total: int, column: str) -> str:
    listed = "; ".join(places[:_MOST_PLACES]) + ("; ..." if len(places) > _MOST_PLACES else "")
    count = "none" if len(places) == total else f"{total - len(places)}"
    summary = f"{count} of {total} rows have an answer in column {column} (task.answer)"
    return f"{summary}; fill in or delete the others: {listed}"


def text_of(value: object, where: str, column: str) -> str:
    """Return a value as text: numbers without an idle .0, lists and objects as JSON; "" for a missing value."""
    if _is_missing(value):
        return ""
    if isinstance(value, bytes):
        raise DataError(f"{where}: column {column} holds bytes, which are no text; choose another column")
    if isinstance(value, bool | list | dict):
        text = json.dumps(value, ensure_ascii=False, default=str)
    elif isinstance(value, float):
        text = str(value).removesuffix(".0")
    else:
        text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{where}: column {column} holds half a surrogate pair, which is no text") from error
    return text.strip()


def _required_text(record: Mapping[str, object], column: str, where: str, setting: str) -> str:
    text = text_of(record[column], where, column)
    if not text:
        raise DataError(f"{where}: column {column} (task.{setting}) is empty")
    return text


def _choices(record: Mapping[str, object], columns: Sequence[str], where: str) -> tuple[str, ...]:
    if not columns:
        return ()
    options = [record[name] for name in columns] if len(columns) > 1 else _list_options(record[columns[0]])
    choices = tuple(filter(None, (text_of(option, where, columns[0]) for option in options)))
    if len(choices) < 2:
        raise DataError(
            f"{where}: {len(choices)} choices in {', '.join(columns)} (task.choices); write a list, or a|b|c"
        )
    return choices


def _list_options(value: object) -> Iterable[object]:
    """Return the options of one cell: a list, the ``text`` of an object, JSON text of either, or texts parted by |."""
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return str(value).split("|")
    if isinstance(value, Mapping):
        value = value.get("text")
    if isinstance(value, str):
        return value.split("|")
    return value if isinstance(value, list) else []


def letter(index: int) -> str:
    """Return the letter of a choice, as spreadsheets name columns: A, B, ..., Z, AA, AB and so on."""
    before, digit = divmod(index, len(ascii_uppercase))
    return (letter(before - 1) if before else "") + ascii_uppercase[digit]


def place_of_letter(name: str) -> int | None:
    """Return the place of the choice with a letter, in any case; ``None`` for what is no such letter."""
    places = [ascii_uppercase.find(char) for char in visible(name).strip().upper()]
    if not places or -1 in places:
        return None
    return reduce(lambda total, place: (total + 1) * len(ascii_uppercase) + place, places, -1)


def _show_question(record: Mapping[str, object], columns: Columns, choices: Sequence[str], where: str) -> str:
    """Return the question as the model sees it: further inputs by name, the question, the choices by letter."""
    parts = []
    for name in columns.named["inputs"]:
        text = text_of(record[name], where, name)
        if text:
            parts.append(f"{name}:{chr(10) if chr(10) in text else ' '}{text}")
    (question,) = columns.named["question"]
    parts.append(_required_text(record, question, where, "question"))
    if choices:
        parts.append("\n".join(f"{letter(index)}. {choice}" for index, choice in enumerate(choices)))
    return "\n\n".join(parts)
