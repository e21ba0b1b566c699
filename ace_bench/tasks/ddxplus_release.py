"""Turns patients of the original DDXPlus release (mila-iqia/ddxplus) into readable profiles.

The release uses codes: ``E_54_@_V_161`` is value ``V_161`` of evidence ``E_54``. The evidences file has the question of
each evidence and the meaning of its values; a profile quotes both. History ("antecedents") is listed apart from
symptoms. A value equal to its evidence's default is left out, because the release assumes it where a code is missing.

StreamBench's profiles have other wordings, so scores on the two are not comparable.
"""

from __future__ import annotations

import ast
import csv
import heapq
import io
import random
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Literal, TypeVar

import msgspec

from ace_bench.core.encoding import decoder_of
from ace_bench.core.errors import DataError

T = TypeVar("T")

PROFILE, DIAGNOSIS = "PATIENT_PROFILE", "PATHOLOGY"
"""Fields of a row, named as on the hub."""

SPLITS = {"train": "train", "validate": "val", "test": "test"}
"""Splits of the release and of the task."""

DRAW_SEED = 42

_COLUMNS = ("AGE", "SEX", "PATHOLOGY", "EVIDENCES", "INITIAL_EVIDENCE")
_SEXES = {"M": "male", "F": "female"}
_PLAIN = {"Y": "Yes", "N": "No"}


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of ``release_evidences.json``: binary (B), categorical (C) or multi-choice (M)."""

    name: str
    question_en: str
    is_antecedent: bool
    default_value: int | str
    value_meaning: dict[str, dict[str, str]]
    possible_values: list[int | str] = msgspec.field(name="possible-values")
    data_type: Literal["B", "C", "M"]


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of ``release_conditions.json``; symptoms and antecedents are names of evidences."""

    english: str = msgspec.field(name="cond-name-eng")
    french: str = msgspec.field(name="cond-name-fr")
    symptoms: dict[str, object]
    antecedents: dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Release:
    """The two dictionaries of the release."""

    evidences: Mapping[str, Evidence]
    conditions: Mapping[str, Condition]

    @cached_property
    def names(self) -> Mapping[str, str]:
        """English name of a condition by either of its names, lower-cased."""
        found = {condition.english.lower(): condition.english for condition in self.conditions.values()}
        return found | {condition.french.lower(): condition.english for condition in self.conditions.values()}


def profile_text(age: str, sex: str, complaint: str, symptoms: Sequence[str], history: Sequence[str]) -> str:
    """Format a profile: one finding per line; empty parts are left out."""
    parts = [f"Age: {age}\nSex: {sex}\nChief complaint: {complaint}"]
    for heading, lines in (("Symptoms", symptoms), ("History", history)):
        if lines:
            parts.append("\n".join([f"{heading}:", *(f"- {line}" for line in lines)]))
    return "\n\n".join(parts)


def read_release(folder: Path) -> Release:
    """Read the two dictionaries; raises ``DataError`` that names the file."""
    return Release(
        evidences=_read(folder / "release_evidences.json", Evidence),
        conditions=_read(folder / "release_conditions.json", Condition),
    )


def _read(path: Path, kind: type[T]) -> dict[str, T]:
    try:
        found: dict[str, T] = decoder_of(dict[str, kind]).decode(path.read_bytes())  # type: ignore[valid-type]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; it is part of the DDXPlus release") from error
    except msgspec.MsgspecError as error:
        raise DataError(f"{path} does not have the form of the DDXPlus release: {error}") from error
    return found


def render(release: Release, patient: Mapping[str, str]) -> dict[str, str]:
    """Turn a line of a patients file into a row of the task; raises ``DataError``, which does not name the line."""
    pathology = release.names.get(patient["PATHOLOGY"].strip().lower())
    if pathology is None:
        raise DataError(f"PATHOLOGY {patient['PATHOLOGY']!r} is not in release_conditions.json")
    given: dict[str, list[str]] = defaultdict(list)
    for code in _codes(patient["EVIDENCES"]):
        name, _, value = code.partition("_@_")
        given[name].append(value)
    initial = patient["INITIAL_EVIDENCE"].strip()
    findings = {name: _finding(_evidence(release, name), values) for name, values in given.items()}
    shown = {name: text for name, text in findings.items() if text and name != initial}
    history = {name for name in shown if release.evidences[name].is_antecedent}
    profile = profile_text(
        patient["AGE"].strip(),
        _SEXES.get(patient["SEX"].strip(), patient["SEX"].strip()),
        _finding(_evidence(release, initial), [""]),
        [text for name, text in shown.items() if name not in history],
        [text for name, text in shown.items() if name in history],
    )
    return {PROFILE: profile, DIAGNOSIS: pathology}


def _codes(text: str) -> list[str]:
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        codes = ast.literal_eval(text)
        if isinstance(codes, list) and all(isinstance(code, str) for code in codes):
            return codes
    raise DataError("EVIDENCES is not a list of codes")


def _evidence(release: Release, name: str) -> Evidence:
    if name not in release.evidences:
        raise DataError(f"evidence {name!r} is not in release_evidences.json")
    return release.evidences[name]


def _finding(evidence: Evidence, values: Sequence[str]) -> str:
    """Return the question and its answer; "" if the answer is the default."""
    question = " ".join(evidence.question_en.split())
    if evidence.data_type == "B":
        return f"{question} Yes"
    meanings = [_meaning(evidence, value) for value in values if value and value != str(evidence.default_value)]
    return f"{question} {', '.join(meanings)}" if meanings else ""


def _meaning(evidence: Evidence, value: str) -> str:
    if value not in map(str, evidence.possible_values):
        raise DataError(f"evidence {evidence.name} has no value {value!r} in release_evidences.json")
    if value in evidence.value_meaning:
        meaning = evidence.value_meaning[value]["en"]
        return _PLAIN.get(meaning, meaning)
    return f"{value} of {evidence.possible_values[-1]}"


def release_rows(folder: Path, at_most: int) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield each file's name with at most ``at_most`` rows, drawn with seed 42 and in the release's order.

    ``folder`` holds the two dictionaries and the patients: ``release_train_patients``, plain, as ``.csv`` or as
    ``.zip``, likewise ``validate`` and ``test``. A row's ``id`` is its number in that file, from 1. Raises
    ``DataError`` that names file and patient.
    """
    release = read_release(folder)
    for source, split in SPLITS.items():
        path = _patients_file(folder, source)
        draw = random.Random(DRAW_SEED)
        with _open_patients(path) as file:
            reader = csv.DictReader(file)
            absent = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
            if absent:
                raise DataError(f"{path} has no column {', '.join(absent)}; it is not a patients file of the release")
            chosen = dict(heapq.nsmallest(at_most, enumerate(reader, start=1), key=lambda _: draw.random()))
        rows = [_row(release, path, number, chosen[number]) for number in sorted(chosen)]
        yield f"{split}.jsonl", rows


def _row(release: Release, path: Path, number: int, patient: Mapping[str, str | None]) -> dict[str, str]:
    try:
        return {"id": str(number), **render(release, {name: patient[name] or "" for name in _COLUMNS})}
    except DataError as error:
        raise DataError(f"{path}, patient {number}: {error}") from error


def _patients_file(folder: Path, split: str) -> Path:
    stem = f"release_{split}_patients"
    paths = [path for ending in ("", ".csv", ".zip") if (path := folder / f"{stem}{ending}").is_file()]
    if not paths:
        raise DataError(f"{folder} has no {stem} (plain, .csv or .zip); it is part of the DDXPlus release")
    return paths[0]


@contextmanager
def _open_patients(path: Path) -> Iterator[IO[str]]:
    try:
        if path.suffix != ".zip":
            with path.open(encoding="utf-8", newline="") as file:
                yield file
            return
        with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as member:
            yield io.TextIOWrapper(member, encoding="utf-8", newline="")
    except (OSError, UnicodeDecodeError, zipfile.BadZipFile, IndexError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as a patients file: {error}") from error
