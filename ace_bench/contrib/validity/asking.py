"""Questions about a benchmark itself: whether a model knows its test set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import msgspec
import numpy as np

from ace_bench.api import Run
from ace_bench.contrib.validity.planning import (
    Make,
    Overrides,
    PlannedRun,
    Request,
    Row,
    Study,
    find_run,
    keep,
    without,
)
from ace_bench.core.statistics import paired_difference
from ace_bench.core.types import Record, Sample
from ace_bench.report.evidence import read_lines_of
from ace_bench.report.tables.grids import p_value

_CONTROLS = 10
"""Other samples with whose reference each reply is compared."""
_TASK_SETTINGS = ("task", "method", "mode", "agent", "protocol", "labels")


def _lines(finished: Run) -> list[dict[str, Any]]:
    return read_lines_of(finished.folder / "journal.jsonl", dict[str, Any])


def _attempts(finished: Run) -> Mapping[str, Record]:
    """Return the last attempt at each tested sample, as lines of the journal."""
    lines = _lines(finished)
    return {line["sample"]: line for line in lines if line["kind"] == "rollout" and line["split"] == "test"}


def _ask(settings: Overrides, questions: Sequence[tuple[str, str]], instruction: str) -> dict[str, str]:
    """Return the overrides of a run that asks questions, each with its reference answer; one call a question."""
    rows = [{"id": index, "question": text, "answer": gold} for index, (text, gold) in enumerate(questions)]
    file = keep(settings, "".join(f"{msgspec.json.encode(row).decode()}\n" for row in rows), "jsonl")
    files = {"data": f"{{test: {file}}}", "instruction": str(keep(settings, instruction, "txt")), "grader": "f1"}
    form = {**files, "id": "id", "question": "question", "answer": "answer", "split": "null", "source": "auto"}
    task = {"task": "qa", **{f"task.{name}": value for name, value in form.items()}}
    return {**without(settings, *_TASK_SETTINGS), "method": "base", "mode": "online", "limit": "null", **task}


def _replies(finished: Run) -> list[str]:
    """Return the replies to ``_ask`` in the order of the questions."""
    answers = {
        sample.rpartition("-")[2]: line["attempt"]["answer"] or "" for sample, line in _attempts(finished).items()
    }
    return [answers[str(index)] for index in range(len(answers))]


class Contamination(Study):
    """Whether the model knows the test set: continues questions, answers them unseen (task= may name several)"""

    columns = ("task", "probe", "samples", "overlap", "by chance", "excess", "95% interval", "p")
    note = (
        "Overlap is the F1 of words with the text or answer of the same sample, by chance that with up to ten others: "
        "what the form of questions and the frequency of answers give. An excess above 0 hints at a test set that the "
        "model has seen, or at answers that do not need the whole question."
    )

    def __init__(self, request: Request) -> None:
        self._probes: dict[tuple[str, str], tuple[PlannedRun, Sequence[str]]] = {}
        for task in request.overrides["task"].split(","):
            settings = {**request.having(request.seeds[0]), "task": task}
            identified = find_run(settings)
            samples = identified.task.samples("test")[: identified.limits.get("test")]
            golds = [identified.task.failing_grade(sample).gold for sample in samples]
            for name, (instruction, texts, references) in _probes(task, samples, golds).items():
                probe = _ask(settings, [*zip(texts, references, strict=True)], instruction)
                self._probes[task, name] = PlannedRun(overrides=probe), references
        self.runs = [planned for planned, _ in self._probes.values()]

    def rows(self, make: Make) -> Iterator[Row]:
        """Compare each reply with the reference of its sample, and with the references of others."""
        for (task, name), (planned, references) in self._probes.items():
            replies = _replies(make(planned))
            scores = np.array([_own_and_others(index, reply, references) for index, reply in enumerate(replies)])
            with_own, chance = scores.T
            difference = paired_difference(
                with_own[None], chance[None], [[index] for index in range(len(with_own))], paired=False
            )
            width = "{:.1f} to {:.1f}".format(*(100 * bound for bound in difference.bounds())) if difference else None
            means = (
                round(100 * float(value), 1) for value in (with_own.mean(), chance.mean(), (with_own - chance).mean())
            )
            yield task, name, len(with_own), *means, width, p_value(difference.p) if difference else None


def _probes(
    task: str, samples: Sequence[Sample], golds: Sequence[str]
) -> Mapping[str, tuple[str, Sequence[str], Sequence[str]]]:
    """Return the instruction, questions and references of each probe."""
    texts = [sample.inputs["question"] for sample in samples]
    names = [f"Question {number} of the test set of the benchmark {task}" for number in range(1, len(texts) + 1)]
    halves, quarters = (
        [f"{name} begins:\n\n{text[: len(text) // part]}" for name, text in zip(names, texts, strict=True)]
        for part in (2, 4)
    )
    unseen = f"{samples[0].inputs['background']}\n\nReply with your best answer alone, even where you cannot know it."
    return {
        "continues the question": (
            "Continue the text word for word, as it stands in the benchmark. Reply with the rest alone.",
            halves,
            [text[len(text) // 2 :] for text in texts],
        ),
        "answers by number": (unseen, [f"{name}, in the order of its file, is not shown." for name in names], golds),
        "answers from a quarter": (unseen, quarters, golds),
    }


def _own_and_others(index: int, reply: str, references: Sequence[str]) -> tuple[float, float]:
    controls = [references[(index + step) % len(references)] for step in range(1, min(_CONTROLS + 1, len(references)))]
    chance = fmean(_overlap(reply, reference) for reference in controls) if controls else 0.0
    return _overlap(reply, references[index]), chance


def _overlap(reply: str, reference: str) -> float:
    """Return F1, computed from the words that both texts share."""
    answered, wanted = reply.lower().split(), reference.lower().split()
    common = sum((Counter(answered) & Counter(wanted)).values())
    return 2 * common / (len(answered) + len(wanted)) if common else 0.0
