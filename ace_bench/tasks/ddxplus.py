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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from ace_bench.core.errors import DataError
from ace_bench.core.settings import Count, Seed, Text
from ace_bench.core.types import Grade
from ace_bench.tasks.answers import AnswerTask, Grader, percent
from ace_bench.tasks.data import HubDataset, Row, Source
from ace_bench.tasks.ddxplus_release import DIAGNOSIS, PROFILE, release_rows

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


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Rows to draw for training and validation, and the seeds; ``None`` leaves the splits as in their files."""

    train: int | None
    val: int
    draw_seed: int
    test_seed: int | None


def shuffled(items: Sequence[T], seed: int) -> list[T]:
    """Return the items in the order that ``datasets.Dataset.shuffle(seed=...)`` gives them, which StreamBench uses."""
    return [items[place] for place in np.random.default_rng(seed).permutation(len(items))]


def drawn(split: str, *, read: Callable[[str], Sequence[Row]], sizes: Sizes) -> Sequence[Row]:
    """Return the rows of a split; ``read`` reads those of a file. Raises ``DataError`` where there are too few."""
    if split == "test":
        return read(split) if sizes.test_seed is None else shuffled(read(split), sizes.test_seed)
    if sizes.train is None:
        return read(split)
    pool = shuffled(_pool_rows(read), sizes.draw_seed)
    if len(pool) <= sizes.train:
        raise DataError(
            f"train.jsonl and val.jsonl hold {len(pool)} different rows and task.train_size={sizes.train} leaves none "
            f"for validation; lower it, or use task.train_size=null for the files as they are"
        )
    return pool[: sizes.train] if split == "train" else pool[sizes.train : sizes.train + sizes.val]


def _pool_rows(read: Callable[[str], Sequence[Row]]) -> list[Row]:
    """Return the rows of both files, each key prefixed by its file; a row of val that is in train is left out."""
    train = read("train")
    seen = {tuple(row.fields.values()) for row in train}
    val = (row for row in read("val") if tuple(row.fields.values()) not in seen)
    return [replace(row, key=f"{name}{row.key}") for name, rows in (("train", train), ("val", val)) for row in rows]


INSTRUCTION = "\n".join(
    (
        f"You are a physician. Find the most likely diagnosis of the patient below among these {len(CONDITIONS)}, "
        "one a line, as <number>. <diagnosis>:",
        *map(answer_of, range(len(CONDITIONS))),
        "",
        "Answer with the number and the diagnosis and nothing else, in the form <number>. <diagnosis>",
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

    ``data_dir`` names a folder with ``train.jsonl``, ``val.jsonl`` and ``test.jsonl`` (fields ``PATIENT_PROFILE`` and
    ``PATHOLOGY``); ``source`` is ``auto``, ``real`` or ``sample``; ``sample_allowed`` lets ``auto`` fall back on the
    sample set ``sample_data``, whose splits are used unchanged. Of real data, ``train_size`` rows for training and at
    most ``val_size`` of the rest for validation are drawn with ``draw_seed`` from both files together (paper, A.2:
    1,000 and 372 of 1,372). ``test_seed`` shuffles the test split as StreamBench does. ``null`` leaves a split as it is
    in its file.

    Raises ``ConfigError`` or ``DataError`` at construction for wrong settings and missing files, ``DataError`` for bad
    lines and too few rows when a split is first read.
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
    hub: HubDataset = HubDataset(
        path="appier-ai-research/StreamBench",
        config="ddxplus",
        # The last commit of the data set's page that we know of; its files could not be fetched to be checked.
        revision="be2e58c9fefdd33cb0d931a87eef4eac006eb78f",
        splits={"train": "train", "validate": "val", "test": "test"},
        fields=(PROFILE, DIAGNOSIS),
    )
    release_rows = staticmethod(release_rows)

    def __init__(  # noqa: PLR0913 - settings, all keyword-only
        self,
        *,
        data_dir: Text | None,
        source: Source,
        sample_data: Text | None,
        train_size: Count | None,
        val_size: Count,
        draw_seed: Seed,
        test_seed: Seed | None,
        sample_allowed: bool,
    ) -> None:
        super().__init__(data_dir=data_dir, source=source, sample_data=sample_data, sample_allowed=sample_allowed)
        if self.source == "real":
            sizes = Sizes(train=train_size, val=val_size, draw_seed=draw_seed, test_seed=test_seed)
            self.use_rows(partial(drawn, read=self._read_rows, sizes=sizes))

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
    found = _NUMBER.search(reply)
    return int(found[1]) if found and len(found[1]) <= _MOST_DIGITS else None


def _read_leniently(reply: str) -> int | None:
    """Return the only condition that a reply names; if it names none, the number that it consists of."""
    named = {NUMBERS[name] for name in _NAME.findall(reply)}
    if named:
        return named.pop() if len(named) == 1 else None
    bare = _BARE.fullmatch(reply)
    return int(bare[1]) if bare else None
