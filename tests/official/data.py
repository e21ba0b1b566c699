"""FiNER and Formula questions in the official file format, with the answers that the script knows."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TAGS = (
    "Revenues", "LongTermDebt", "GoodwillImpairmentLoss", "OperatingLeaseCost", "ShareBasedCompensation",
    "DebtInstrumentFaceAmount", "LineOfCredit", "AmortizationOfIntangibleAssets", "LeaseAndRentalExpense",
)  # fmt: skip
SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Finance:
    """One task: rows by split, and the right answer and its kind by case."""

    task: str
    rows: Mapping[str, list[dict[str, str]]]

    @property
    def targets(self) -> dict[str, str]:
        """The right answer by the name of the case, which each question mentions once."""
        return {f"{split}-{n}": row["target"] for split in SPLITS for n, row in enumerate(self.rows[split])}

    def write(self, folder: Path) -> Path:
        """Write ``train.jsonl``, ``val.jsonl``, ``test.jsonl`` and the authors' list of them; return the folder."""
        data = folder / "finance" / "data"
        data.mkdir(parents=True)
        for split in SPLITS:
            (data / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in self.rows[split]))
        names = {f"{split}_data": f"./finance/data/{split}.jsonl" for split in SPLITS}
        (data / "sample_config.json").write_text(json.dumps({self.task: names}))
        return data


def finance(task: str, **sizes: int) -> Finance:
    """Make as many questions of ``finer`` or ``formula`` for each split as ``sizes`` says."""
    make = {"finer": _finer, "formula": _formula}[task]
    rng = random.Random(task)
    return Finance(task, {split: [make(rng, f"{split}-{n}") for n in range(sizes[split])] for split in SPLITS})


def _finer(rng: random.Random, case: str) -> dict[str, str]:
    labels = rng.choices(TAGS, k=4)
    amounts = [f"{rng.randint(1, 999)}.{rng.randint(0, 9)}" for _ in labels]
    asked = [
        f'{n}. What is best tag for entity "{amount}" in sentence: "A firm reported {amount} {{here}} , 50 % more .?"'
        for n, amount in enumerate(amounts, 1)
    ]
    head = f"In case {case} these tags may be used: ,{','.join(TAGS)}. Give 4 tags, separated by commas.\n"
    return {"context": "\n".join([head + asked[0], *asked[1:], "Output US GAAP tags:"]), "target": ",".join(labels)}


def _formula(rng: random.Random, case: str) -> dict[str, str]:
    price, shares = rng.randint(2, 90), rng.randint(100, 9_000)
    asked = f"In case {case} a firm has {shares:,} shares at ${price} each. What is its market capitalization?"
    head = "Use formula Market Capitalization to answer the question. Formula: Market Cap = Shares x Price."
    return {"context": f'{head} Question: "{asked}". Answer:', "target": str(float(price * shares))}
