"""DDXPlus: one diagnosis of 49 for a patient profile, as StreamBench streams it (paper, appendix A.2 and table 10).

The official reading (stream-bench/stream-bench) looks in the lower-cased reply for digits followed by a full stop;
the first such number is the diagnosis. A reply without one, or with a number other than 0 to 48, is wrong. ``accuracy``
follows this rule, with its quirks:

* A reply that only names the diagnosis is wrong, and so is ``7) Anaphylaxis``.
* The first number decides, whatever it is: ``0.9 sure: 7. Anaphylaxis`` reads as option 0.
* The name is ignored: ``7. Anemia`` is option 7, Anaphylaxis.

A number of more than 4,300 digits, which makes the official code fail, is wrong here.

``accuracy_lenient`` also accepts a reply that names the right condition and no other, or that is the right number and
nothing else. It is never lower than ``accuracy`` and not comparable with published figures.

The question is the profile alone; instruction and options are ``background``, the same for all samples. StreamBench
puts the profile between the two; here it comes last, so that a prefix cache can hold the rest.

Splits are drawn in the paper's sizes; StreamBench shuffles the test split.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from ace_bench.core.errors import DataError
from ace_bench.core.settings import Count, Seed
from ace_bench.core.types import Grade
from ace_bench.tasks.answers import AnswerTask, Grader, percent
from ace_bench.tasks.data import DataSettings, HubDataset, Row, shuffle

PROFILE, DIAGNOSIS = "PATIENT_PROFILE", "PATHOLOGY"
"""Fields of a row, named as on the hub."""

SPLITS = {"train": "train", "validate": "val", "test": "test"}
"""Splits of the hub and of the task."""

CONDITIONS = (
    "Acute COPD exacerbation / infection",
    "Acute dystonic reactions",
    "Acute laryngitis",
    "Acute otitis media",
    "Acute pulmonary edema",
    "Acute rhinosinusitis",
    "Allergic sinusitis",
    "Anaphylaxis",
    "Anemia",
    "Atrial fibrillation",
    "Boerhaave",
    "Bronchiectasis",
    "Bronchiolitis",
    "Bronchitis",
    "Bronchospasm / acute asthma exacerbation",
    "Chagas",
    "Chronic rhinosinusitis",
    "Cluster headache",
    "Croup",
    "Ebola",
    "Epiglottitis",
    "GERD",
    "Guillain-Barré syndrome",
    "HIV (initial infection)",
    "Influenza",
    "Inguinal hernia",
    "Larygospasm",
    "Localized edema",
    "Myasthenia gravis",
    "Myocarditis",
    "PSVT",
    "Pancreatic neoplasm",
    "Panic attack",
    "Pericarditis",
    "Pneumonia",
    "Possible NSTEMI / STEMI",
    "Pulmonary embolism",
    "Pulmonary neoplasm",
    "SLE",
    "Sarcoidosis",
    "Scombroid food poisoning",
    "Spontaneous pneumothorax",
    "Spontaneous rib fracture",
    "Stable angina",
    "Tuberculosis",
    "URTI",
    "Unstable angina",
    "Viral pharyngitis",
    "Whooping cough",
)

NUMBERS = {name.lower(): number for number, name in enumerate(CONDITIONS)}
"""Number of a condition by its name in lower case."""


def answer_of(number: int) -> str:
    """Return the answer that names a condition: ``<number>. <diagnosis>``."""
    return f"{number}. {CONDITIONS[number]}"


INSTRUCTION = "\n".join(
    (
        f"You are a physician. Find the most likely diagnosis of the patient below among these {len(CONDITIONS)}, "
        "one a line:",
        *map(answer_of, range(len(CONDITIONS))),
        "",
        "Answer with the line of the diagnosis as it stands above, its number and its name, and nothing else.",
        "",
        "Patient profile:",
        "",
    )
)

_NUMBER = re.compile(r"(?<!\d)(\d++)\.")
_BARE = re.compile(r"\W*(\d{1,3})\W*")
_NAME = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(NUMBERS, key=len, reverse=True)))})(?!\w)")
_MOST_DIGITS = 4_300


class Ddxplus(AnswerTask):
    """The DDXPlus task; the module docstring describes its metrics.

    The splits of the sample set are used unchanged. Of real data, ``train_size`` rows for training and at most
    ``val_size`` of the rest for validation are drawn with ``draw_seed`` from both files together (paper, A.2: 1,000 and
    372 of 1,372). ``test_seed`` shuffles the test split as StreamBench does. ``None`` leaves a split as it is in its
    file. ``AnswerTask`` describes the other settings and the errors; too few rows are a ``DataError``, too.
    """

    name: str = "ddxplus"
    fields: tuple[str, ...] = (PROFILE, DIAGNOSIS)
    sections: tuple[str, ...] = (
        "diagnostic_patterns",
        "distinguishing_features",
        "history_and_risk_factors",
        "common_mistakes_to_avoid",
        "others",
    )
    hub: HubDataset = HubDataset(config="ddxplus", splits=SPLITS, fields=(PROFILE, DIAGNOSIS))

    def __init__(
        self,
        *,
        train_size: Count | None,
        val_size: Count,
        draw_seed: Seed,
        test_seed: Seed | None,
        **data: Annotated[Any, DataSettings],
    ) -> None:
        super().__init__(**data)
        read = self._read_rows

        def draw(split: str) -> Sequence[Row]:
            if split == "test":
                return read(split) if test_seed is None else shuffle(read(split), test_seed)
            if train_size is None:
                return read(split)
            train = read("train")
            patients = {tuple(row.fields.values()) for row in train}
            pool = [replace(row, key=f"train{row.key}") for row in train]
            pool += [
                replace(row, key=f"val{row.key}") for row in read("val") if tuple(row.fields.values()) not in patients
            ]
            if len(pool) <= train_size:
                raise DataError(
                    f"train.jsonl and val.jsonl hold {len(pool)} different rows and task.train_size={train_size} "
                    f"leaves none for validation; lower it, or use task.train_size=null for the files as they are"
                )
            pool = shuffle(pool, draw_seed)
            return pool[:train_size] if split == "train" else pool[train_size : train_size + val_size]

        if self.source == "real":
            self.use_rows(draw)

    def build(self, row: Row) -> tuple[Mapping[str, str], Grader]:
        """Ask for the diagnosis of a profile; the target must be one of the conditions."""
        condition = row.fields[DIAGNOSIS].strip().lower()
        if condition not in NUMBERS:
            raise DataError(
                f"{row.where}: field {DIAGNOSIS} is not one of the {len(CONDITIONS)} conditions: {condition!r}"
            )
        inputs = {"background": INSTRUCTION, "question": row.fields[PROFILE].strip()}
        return inputs, partial(grade_diagnosis, NUMBERS[condition])

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return right diagnoses in percent, by the official rule and the lenient one; without grades, no metrics."""
        if not grades:
            return {}
        return {
            "accuracy": percent(sum(grade.correct for grade in grades), len(grades)),
            "accuracy_lenient": percent(sum(grade.detail["lenient"] for grade in grades), len(grades)),
        }


def grade_diagnosis(number: int, answer: str | None) -> Grade:
    """Grade an answer against the number of the right condition, by the official rule and by the lenient one."""
    reply = (answer or "").lower()
    official = _read_officially(reply) == number
    return Grade(
        score=float(official),
        correct=official,
        observed="",
        gold=answer_of(number),
        detail={"lenient": float(official or _read_leniently(reply) == number)},
    )


def _read_officially(reply: str) -> int | None:
    match = _NUMBER.search(reply)
    return int(match[1]) if match and len(match[1]) <= _MOST_DIGITS else None


def _read_leniently(reply: str) -> int | None:
    """Return the only condition that a reply names; if it names none, the number that it consists of."""
    numbers = {NUMBERS[name] for name in _NAME.findall(reply)}
    if numbers:
        return numbers.pop() if len(numbers) == 1 else None
    bare = _BARE.fullmatch(reply)
    return int(bare[1]) if bare else None
