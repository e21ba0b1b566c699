"""FiNER: choose the US-GAAP tag of a number in a filing, four questions a sample (paper, section 4.1).

The official grader (ace-agent/ace at ba78d34) splits the answer and the reference at commas, lower-cases and trims
every piece, cuts a longer answer to the reference's length, fills a shorter one with empty pieces, and counts the
positions that are equal; where the reference piece is a number it evaluates both pieces as Python (dollar signs
removed from the answer's) and compares the values. Its accuracy is the sum of hits over the sum of labels.

``accuracy`` follows it, with these differences, none of which can show on the official data:

* nothing is evaluated: two decimal numbers are compared as numbers, but ``2+3`` or ``abs(-5)`` is plain text;
* a missing piece never equals an empty reference label; a reference with an empty label is a ``DataError``;
* a sample whose rollout failed counts as wrong with all its labels (the official code leaves it out).

The official grader splits at commas only: an answer with one tag on each line, with numbering, quotes or a
``us-gaap:`` prefix is wrong even if its tags are right. ``accuracy_corrected`` accepts exactly these forms; it is never
lower than ``accuracy``, and it is not comparable with published figures.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from ace_bench.core.errors import DataError
from ace_bench.core.types import Grade
from ace_bench.tasks.answers import AnswerTask, Grader, parse_number, percent
from ace_bench.tasks.data import RemoteFile, Row
from ace_bench.tasks.finance import OFFICIAL, SECTIONS

_FIRST_QUESTION = re.compile(r"^1\. ", re.MULTILINE)
_NUMBERED = re.compile(r"^(\d{1,3})\. ", re.MULTILINE)
_NUMBERING = re.compile(r"^\(?\d{1,2}\s*[.):-]\s*(?=[A-Za-z\"'`*])")
_PREFIX = re.compile(r"^us-gaap[:_]", re.IGNORECASE)
_WRAPPING = " \t\r\n\"'`*“”‘’[](){}."


class Finer(AnswerTask):
    """The FiNER task; the module docstring describes its metrics, ``AnswerTask`` its settings and errors."""

    name: str = "finer"
    sections: tuple[str, ...] = SECTIONS
    downloads: tuple[RemoteFile, ...] = (
        RemoteFile(
            name="train.jsonl",
            url=f"{OFFICIAL}/finer_train_batched_1000_samples.jsonl",
            git_blob="d28a2daa45bdcd1336d3848083bde953ee55cc87",
        ),
        RemoteFile(
            name="val.jsonl",
            url=f"{OFFICIAL}/finer_val_batched_500_samples.jsonl",
            sha256="80ef2f057221f0ea963561957dd9ad36fb1a16419d88fc459495198d5e0c795e",
        ),
        RemoteFile(
            name="test.jsonl",
            url=f"{OFFICIAL}/finer_test_subset_006_seed42.jsonl",
            sha256="f6a13de6f55edf2c0cd850dea0d65f1834fa0c49ffcd97de48b2a709bf0bab85",
        ),
    )

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return three percentages: right labels (official), fully right samples, right labels read leniently.

        Without grades there are no metrics.
        """
        if not grades:
            return {}
        labels = sum(grade.detail["labels"] for grade in grades)
        return {
            "accuracy": percent(sum(grade.detail["hits"] for grade in grades), labels),
            "sample_accuracy": percent(sum(grade.correct for grade in grades), len(grades)),
            "accuracy_corrected": percent(sum(grade.detail["hits_corrected"] for grade in grades), labels),
        }

    def build(self, row: Row) -> tuple[Mapping[str, str], Grader]:
        """Split the context; all labels of the target are needed."""
        background, question = split_context(row.fields["context"], row.where)
        target = row.fields["target"].strip()
        if not all(label.strip() for label in target.split(",")):
            raise DataError(f"{row.where}: field target holds an empty label: {target!r}")
        count, answered = _questions(question), len(target.split(","))
        if count != answered:
            raise DataError(f"{row.where}: field target answers {answered} of {count} questions; correct the row")
        # All samples share one string: separate ones would take 6 kB each.
        return {"background": sys.intern(background), "question": question}, partial(grade_labels, target)


def split_context(context: str, where: str) -> tuple[str, str]:
    """Split a raw context before its first numbered question; joining the two parts gives the context back."""
    first = _FIRST_QUESTION.search(context)
    if first is None:
        raise DataError(f"{where}: field context has no numbered question (a line that starts with '1. ')")
    return context[: first.start()], context[first.start() :]


def _questions(text: str) -> int:
    """Count the questions: lines that begin with 1., 2., 3. and so on; a number out of turn belongs to a sentence."""
    count = 0
    for number in _NUMBERED.findall(text):
        count += int(number) == count + 1
    return count


def grade_labels(target: str, answer: str | None) -> Grade:
    """Grade a comma-separated answer against the reference labels, by the official rule and by the lenient one."""
    labels = [label.strip() for label in target.lower().split(",")]
    pieces = [piece.strip() for piece in (answer or "").lower().split(",")]
    lenient = [_strip_decoration(piece) for piece in _pieces(answer or "")]
    hits = sum(map(_is_equal, pieces, labels))
    corrected = sum(
        # What the official rule accepts, the lenient rule accepts, too.
        _is_equal(piece, label) or _is_equal(plain, _strip_decoration(label))
        for piece, plain, label in zip(_pad(pieces, labels), _pad(lenient, labels), labels, strict=True)
    )
    return Grade(
        score=hits / len(labels),
        correct=hits == len(labels),
        observed="",
        gold=target,
        detail={"hits": hits, "labels": len(labels), "hits_corrected": corrected},
    )


def _pad(pieces: Sequence[str], labels: Sequence[str]) -> list[str]:
    return [*pieces[: len(labels)], *[""] * (len(labels) - len(pieces))]


def _is_equal(piece: str, label: str) -> bool:
    if not piece:
        return False
    if piece == label:
        return True
    wanted = parse_number(label)
    return wanted is not None and parse_number(piece.replace("$", "").strip()) == wanted


def _pieces(answer: str) -> list[str]:
    """Split at commas; an answer without commas is split at line breaks and semicolons."""
    if "," in answer:
        return answer.lower().split(",")
    return [piece for piece in re.split(r"[;\n]", answer.lower()) if piece.strip()]


def _strip_decoration(piece: str) -> str:
    plain = _NUMBERING.sub("", piece.strip()).strip(_WRAPPING)
    return _PREFIX.sub("", _NUMBERING.sub("", plain)).strip(_WRAPPING)
