"""Capital cities: the capital of a country. An answer is right if it names the city."""

from collections.abc import Mapping, Sequence
from functools import partial

from ace_bench.core.settings import Text
from ace_bench.core.types import Grade
from ace_bench.tasks.answers import AnswerTask, Splits, file_names, percent, split_reader
from ace_bench.tasks.data import SPLITS, DataSettings, Source, locate


class CapitalCities(AnswerTask):
    """Rows hold the question (``context``) and the city (``target``)."""

    name = "capital_cities"
    prompt_group = "qa"
    headline = "accuracy"
    splits = SPLITS
    sections = ("strategies", "others")

    def __init__(self, *, data_dir: Text | None, source: Source, sample_data: Text | None, sample_allowed: bool):
        settings = DataSettings(
            data_dir=data_dir, source=source, sample_data=sample_data, sample_allowed=sample_allowed
        )
        located = locate(self.name, file_names(), settings)
        self.source, self.checksums = located.source, located.checksums
        self._splits = Splits(self.name, split_reader(located, ("context", "target")), _build)

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Percent of cities right."""
        return {"accuracy": percent(sum(grade.correct for grade in grades), len(grades))} if grades else {}


def _build(row):
    return {"background": "Name the city.", "question": row.fields["context"]}, partial(_grade, row.fields["target"])


def _grade(target: str, answer: str | None) -> Grade:
    correct = (answer or "").strip().casefold() == target.casefold()
    return Grade(score=float(correct), correct=correct, observed="", gold=target)
