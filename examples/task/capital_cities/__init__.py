"""A task: name the capital of a country among cities that are often taken for it."""

from collections.abc import Mapping, Sequence
from functools import partial

from ace_bench.core.types import Grade
from ace_bench.tasks.answers import AnswerTask, Grader, percent
from ace_bench.tasks.data import Row


class CapitalCities(AnswerTask):
    """Each row holds a question with its options (``context``) and the right city (``target``)."""

    name: str = "capital_cities"
    sections: tuple[str, ...] = ("capitals", "others")

    def build(self, row: Row) -> tuple[Mapping[str, str], Grader]:
        """Return what prompts may show of a row, and the function that grades an answer."""
        inputs = {"background": "Name the city.\n\n", "question": row.fields["context"]}
        return inputs, partial(grade_city, row.fields["target"])

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return the share of right cities in percent; without grades, no metric."""
        return {"accuracy": percent(sum(grade.correct for grade in grades), len(grades))} if grades else {}


def grade_city(target: str, answer: str | None) -> Grade:
    """Grade an answer. It is right if it names the city, in any case and with or without a full stop."""
    correct = (answer or "").strip().rstrip(".").casefold() == target.casefold()
    return Grade(score=float(correct), correct=correct, observed="", gold=target)
