"""Formula: apply a financial formula to the numbers of a word problem (paper, section 4.1).

The official grader (ace-agent/ace at ba78d34) removes the commas from the answer and the reference, reads both with
``float`` and compares them for equality; an answer that ``float`` cannot read is wrong. ``accuracy`` is exactly that
rule, with its quirks: ``$5``, ``15%`` and ``the answer is 5`` are wrong, and so is ``0.6667`` where the reference is
0.67, while every spelling that ``float`` knows (``1_000``, ``1e3``, digits of other scripts) is a number.

``accuracy_corrected`` is a lenient rule. An answer is right if it holds exactly one number that rounds to the reference
at two decimals. The number may have words around it, a currency sign before it, and after it a percent sign (dropped:
15% is 15.0, not 0.15) or a scale word (applied: 5 million is 5000000.0). This metric is never lower than ``accuracy``
and not comparable with published figures. NaN and infinity are wrong by both rules. The data gives some ratios in
percent (15.0) and others as fractions (0.15); this is left as it is, a method has to learn it.

The question holds what the official release asks: the problem text without the name and wording of the formula (the
paper's base accuracy of 67.5 is that setting). The instruction on the number format is not the authors': it is in words
of our own and the same for all samples; it goes into ``background``, which a prefix cache can hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from ace_bench.core.errors import DataError
from ace_bench.core.types import Grade
from ace_bench.tasks.answers import AnswerTask, Grader, percent
from ace_bench.tasks.data import DataSettings, RemoteFile, Row
from ace_bench.tasks.finance import OFFICIAL, SECTIONS

INSTRUCTION = (
    "Solve the financial problem below. Answer with one plain number and nothing else: at most two decimals "
    "(round where needed), no units, no currency or percent sign, no text. Write large amounts out in full: "
    "2.5 million is 2500000.0.\n"
)

_QUESTION, _END = "Question: ", ". Answer:"
_MAX_ANSWER = 1_000
"""The lenient rule reads so many characters of an answer: a number with a few words is shorter."""

_NUMBER = re.compile(r"[-+−]?\s*+(?:[$€£¥]\s*+)?[-+−]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_SCALES = (("thousand", "k"), ("million", "mn", "m"), ("billion", "bn", "b"), ("trillion", "tn"))
_THOUSANDS = {word: power for power, words in enumerate(_SCALES, start=1) for word in words}
"""Scale words with the power of a thousand that each means."""
_SCALE = re.compile(rf"\s*({'|'.join(_THOUSANDS)})s?\b", re.IGNORECASE)


class Formula(AnswerTask):
    """The Formula task; the module docstring describes its metrics and how a question is asked.

    ``hint`` asks each question with the formula and explanation in the file; ``AnswerTask`` describes the other
    settings and the errors.
    """

    name: str = "formula"
    sections: tuple[str, ...] = SECTIONS
    downloads: tuple[RemoteFile, ...] = (
        RemoteFile(
            name="train.jsonl",
            url=f"{OFFICIAL}/formula_train_subset_500.jsonl",
            sha256="aea676feb2354462ba22d3c2c73a18b780e1193b05597beaeb0250ae9021b482",
        ),
        RemoteFile(
            name="val.jsonl",
            url=f"{OFFICIAL}/formula_val_subset_300.jsonl",
            sha256="09948f7f24af5f2331f69a047ef086649873756cbf8626d19d23029346e98933",
        ),
        RemoteFile(
            name="test.jsonl",
            url=f"{OFFICIAL}/formula_test.jsonl",
            sha256="079919e9631e50ba0489d2be1221ecf59952a9230ff91c5325c27b37ed99e342",
        ),
    )

    def __init__(self, *, hint: bool, **data: Annotated[Any, DataSettings]) -> None:
        super().__init__(**data)
        self._hint = hint

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return right answers in percent, by the official rule and by the lenient one; without grades, no metrics."""
        if not grades:
            return {}
        return {
            "accuracy": percent(sum(grade.correct for grade in grades), len(grades)),
            "accuracy_corrected": percent(sum(grade.detail["corrected"] for grade in grades), len(grades)),
        }

    def build(self, row: Row) -> tuple[Mapping[str, str], Grader]:
        """Ask the problem, with the formula where ``hint`` is set; the target must be a number."""
        context, target = row.fields["context"], row.fields["target"].strip()
        question = question_of(context, row.where)
        if _float(target) is None:
            raise DataError(f"{row.where}: field target is not a number: {target!r}")
        text = context if self._hint else question
        return {"background": INSTRUCTION, "question": text}, partial(grade_number, target)


def question_of(context: str, where: str) -> str:
    """Return the problem text of a raw context by the official rule.

    It is the text between the first ``Question: `` and the next ``. Answer:``, trimmed and without enclosing quotation
    marks.
    """
    _, marker, after = context.partition(_QUESTION)
    question, ended, _ = after.partition(_END)
    question = question.strip()
    if not marker or not ended or not question:
        raise DataError(f"{where}: field context has no text between {_QUESTION.strip()!r} and {_END!r}")
    if len(question) > 1 and question.startswith('"') and question.endswith('"'):
        return question[1:-1]
    return question


def grade_number(target: str, answer: str | None) -> Grade:
    """Grade an answer against the reference number, by the official rule and by the lenient one."""
    wanted = _float(target)
    official = wanted is not None and answer is not None and _float(answer) == wanted
    corrected = official or (wanted is not None and answer is not None and _rounds_to(_reading(answer), wanted))
    return Grade(
        score=float(official),
        correct=official,
        observed="",
        gold=target,
        detail={"hits": float(official), "labels": 1.0, "corrected": float(corrected)},
    )


def _float(text: str) -> float | None:
    """Read a number as the official grader does; ``None`` for a text that is not a finite number."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _reading(answer: str) -> float | None:
    """Return the only number of an answer, multiplied by its scale word; ``None`` for no number or several."""
    text = answer[:_MAX_ANSWER].replace(",", "")
    numbers = list(_NUMBER.finditer(text))
    if len(numbers) != 1:
        return None
    digits = re.sub(r"[\s$€£¥]", "", numbers[0].group()).replace("−", "-")
    value = _float(digits)
    scale = _SCALE.match(text, numbers[0].end())
    return value if value is None or scale is None else value * 1000.0 ** _THOUSANDS[scale.group(1).lower()]


def _rounds_to(value: float | None, wanted: float) -> bool:
    """Whether a value rounds to the wanted one at two decimals, by any rule for halves."""
    return value is not None and abs(value - wanted) <= 0.005 + 1e-9 * max(1.0, abs(wanted))
