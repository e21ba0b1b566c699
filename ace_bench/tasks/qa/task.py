"""Question answering on data of your own (docs/own-data.md): a row of a file is a question, a grader has a name.

* exact: the answer equals an accepted one, apart from what ``ignore`` names;
* numeric: the only number of the answer is within ``tolerance``;
* choice: the answer is the right option, by letter or text;
* contains: an accepted answer occurs in the answer as whole words;
* f1: the share of common words, as SQuAD counts it;
* judge: a model's verdict on whether the answer says what the reference says;
* python:MODULE.FUNCTION: a function of your own.

``accuracy`` is the percentage of right answers; of a grader that gives points, ``f1`` or ``score`` is their mean. Where
the answers are a few labels, ``in_form`` is the percentage of answers that are one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from ace_bench.core.backbones import Lm
from ace_bench.core.errors import DataError, SettingError
from ace_bench.core.prompts import Prompts
from ace_bench.core.settings import Seed, Share, Text
from ace_bench.core.types import Grade, Sample
from ace_bench.tasks.answers import JUDGE_TEMPLATE, AnswerTask, Grader, ask_judge, percent
from ace_bench.tasks.data import SPLITS, Row, Source
from ace_bench.tasks.qa.catalog import EXACT, FIELDS, JUDGE, PREFIX, PROMPT_GROUP, Tolerance, grader_named, try_function
from ace_bench.tasks.qa.columns import Columns
from ace_bench.tasks.qa.files import TextForm
from ace_bench.tasks.qa.graders import AnswerKey, Ignore, are_labels
from ace_bench.tasks.qa.loading import Hub, Shares, by_shares, load, read_instruction, repeats, sample_set

_IN_FORM = "in_form"


def _label_keys(keys: Sequence[AnswerKey]) -> Sequence[AnswerKey]:
    """Return a key for each different answer where these are few and repeat, as labels do, and else nothing."""
    by_answer = {key.gold: key for key in keys}
    return tuple(by_answer.values()) if are_labels([key.gold for key in keys]) else ()


class Qa(AnswerTask):
    """The task on a user's data; the module docstring describes its graders and metrics.

    ``data`` is a file, a file for each split, or ``hub://OWNER/NAME``; ``None`` means the sample set, whose
    columns are known. ``question``, ``answer``, ``id``, ``choices``, ``inputs``, ``group`` and ``split`` name columns.
    Everything is read and checked here: raises ``ConfigError`` or ``DataError`` before anything is spent.

    A subclass may extend ``score`` by a metric, and name it as ``headline``; the grader's is used otherwise.
    """

    name: str = "qa"
    headline: str = ""
    sections: tuple[str, ...] = ("rules_and_conventions", "strategies", "common_mistakes", "others")

    def __init__(  # noqa: PLR0913 - settings, all keyword-only
        self,
        *,
        data: Text | Mapping[str, Text] | None,
        source: Source,
        sample_data: Text | None,
        instruction: Text | None,
        split_ratio: Shares,
        split_seed: Seed,
        grader: Text,
        ignore: Ignore,
        tolerance: Tolerance,
        pass_from: Share,
        encoding: Text,
        delimiter: Text,
        hub: Hub,
        sample_allowed: bool,
        **columns: Annotated[Any, Columns],
    ) -> None:
        kind = grader_named(grader, ignore=ignore, tolerance=tolerance)
        self.headline = self.headline or kind.headline
        self.judge_decides: bool = grader == JUDGE
        self.judge_template: str | None = JUDGE_TEMPLATE if self.judge_decides else None
        if self.judge_decides:
            self.prompt_group = PROMPT_GROUP
        self._points, self._pass_from = kind.headline, pass_from
        chosen_columns = Columns(**columns)
        if data is None:
            loaded = sample_set(chosen_columns, source=source, sample_data=sample_data, allowed=sample_allowed)
        elif source == "sample":
            raise SettingError("source=sample reads the packaged sample set: set task.data=null, or use source=auto")
        else:
            form = TextForm(encoding=encoding, delimiter=delimiter)
            draw = partial(by_shares, shares=split_ratio, seed=split_seed)
            loaded = load(data, chosen_columns, form=form, hub=hub, draw=draw)
        self._background, checksums = read_instruction(instruction, loaded.instruction or kind.instruction)
        self.source: str = "sample" if data is None else "real"
        self.checksums: Mapping[str, str] = {**loaded.checksums, **kind.checksums, **checksums}
        self._rows = {split: loaded.questions.get(split, ()) for split in SPLITS}
        self.repeats: Sequence[str] = repeats(self._rows)
        self.splits: tuple[str, ...] = tuple(split for split, rows in self._rows.items() if rows)
        keys = {row.where: kind.make(row) for rows in self._rows.values() for row in rows}
        if grader.startswith(PREFIX):
            where, first = next(iter(keys.items()))
            try_function(first, where)
        self._keys = keys
        self._labels = _label_keys([*keys.values()]) if grader == EXACT else ()
        self.use_rows(self._read)

    def start(self, say: Callable[[str], None]) -> None:
        """Report how many questions each split has, and which are repeated."""
        counts = ", ".join(f"{len(rows)} {name}" for name, rows in self._rows.items() if rows)
        for line in (f"{counts} questions", *self.repeats):
            say(f"qa: {line}")

    def close(self) -> None:
        """Do nothing: there is no environment."""

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the judge's template."""
        del inputs, context_fields
        return {} if self.judge_template is None else {self.judge_template: FIELDS}

    def judge(self, sample: Sample, answer: str | None, grade: Grade, prompts: Prompts, lm: Lm) -> Grade:
        """Grade by the judge's verdict, unless the answer is empty or the reference itself."""
        if grade.correct or not (answer or "").strip():
            return grade
        right = ask_judge({**sample.inputs, "gold": grade.gold, "predicted": answer or ""}, prompts, lm)
        return self._grade_of(float(right), gold=grade.gold, group=grade.group)

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return the percentage of right answers and, of a grader that gives points, their mean in percent.

        Of labels also the percentage of answers that are one of them, right or wrong.
        """
        if not grades:
            return {}
        points = {self._points: percent(sum(grade.score for grade in grades), len(grades))}
        in_form = sum(grade.detail.get(_IN_FORM, 0.0) for grade in grades)
        form = {_IN_FORM: percent(in_form, len(grades))} if self._labels else {}
        return {**points, "accuracy": percent(sum(grade.correct for grade in grades), len(grades)), **form}

    def _read(self, split: str) -> Sequence[Row]:
        if not self._rows[split]:
            raise DataError(
                f"the split {split} holds no rows: give task.data a file for it, mark rows by task.split, or raise its "
                f"share in task.split_ratio"
            )
        return [
            Row(key=row.key, where=row.where, fields={"text": row.text, "group": row.group})
            for row in self._rows[split]
        ]

    def build(self, row: Row) -> tuple[Mapping[str, str], Grader]:
        """Ask the question below the instruction."""
        inputs = {"background": self._background, "question": row.fields["text"]}
        return inputs, partial(self._grade, self._keys[row.where], row.fields["group"])

    def _grade(self, key: AnswerKey, group: str, answer: str | None) -> Grade:
        given = answer if answer is not None and answer.strip() else ""
        score = key.score(given) if given else 0.0
        grade = self._grade_of(score, gold=key.gold, group=group)
        if not self._labels:
            return grade
        in_form = given and any(label.score(given) >= self._pass_from for label in self._labels)
        return replace(grade, detail={_IN_FORM: float(bool(in_form))})

    def _grade_of(self, score: float, *, gold: str, group: str) -> Grade:
        return Grade(score=score, correct=score >= self._pass_from, observed="", gold=gold, group=group)
