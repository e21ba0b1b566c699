"""Patients made up from the DDXPlus release's dictionaries, in the form of its patients files.

A condition shows each of its symptoms in six of ten patients and each of its antecedents in three; where an evidence
has values, a condition has two favourites, the same in all splits. That is no epidemiology, only enough to be learnt.
"""

from __future__ import annotations

import csv
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from ace_bench.tasks.ddxplus_release import Condition, Evidence, Release, read_release


def write_release(dictionaries: Path, folder: Path, counts: dict[str, int], seed: int = 0) -> None:
    """Write a release into ``folder``: the two dictionaries and ``counts`` patients by its own split names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("release_evidences.json", "release_conditions.json"):
        shutil.copy(dictionaries / name, folder / name)
    release = read_release(folder)
    for split, count in counts.items():
        with (folder / f"release_{split}_patients.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["AGE", "DIFFERENTIAL_DIAGNOSIS", "SEX", "PATHOLOGY", "EVIDENCES", "INITIAL_EVIDENCE"])
            writer.writerows(_patients(release, count, random.Random(f"{split}-{seed}")))


def _patients(release: Release, count: int, draw: random.Random) -> Iterator[list[str]]:
    names = sorted(release.conditions)
    for _ in range(count):
        name = draw.choice(names)
        condition = release.conditions[name]
        shown = [*_drawn(release, condition, condition.symptoms, 0.6, draw)]
        shown += _drawn(release, condition, condition.antecedents, 0.3, draw)
        initial = next((code for code in shown if "_@_" not in code), "E_53")
        shown = shown if initial in shown else [initial, *shown]
        yield [str(draw.randint(5, 90)), f"[['{name}', 1.0]]", draw.choice("MF"), name, repr(shown), initial]


def _drawn(
    release: Release, condition: Condition, names: dict[str, object], chance: float, draw: random.Random
) -> Iterator[str]:
    for name in names:
        evidence = release.evidences[name]
        if draw.random() < chance:
            yield name if evidence.data_type == "B" else f"{name}_@_{_value(condition, evidence, draw)}"


def _value(condition: Condition, evidence: Evidence, draw: random.Random) -> str:
    favourites = random.Random(f"{condition.english} {evidence.name}").sample(evidence.possible_values, 2)
    return str(draw.choice(favourites))
