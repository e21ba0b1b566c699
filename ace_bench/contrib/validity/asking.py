"""Questions about a benchmark itself: whether a model knows its test set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from ace_bench.core.statistics import LEVEL, clusters, score_bounds
from ace_bench.core.types import Record
from ace_bench.core.words import visible, words_of
from ace_bench.report.evidence import read_lines_of
from ace_bench.report.tables.grids import p_value

_CONTROLS = 10
"""Other samples with whose reference each reply is compared."""
_RUN = 5
"""New words in a row that nobody guesses from the words before them (simulated: docs/validity.md)."""
_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+")
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


@dataclass(frozen=True, kw_only=True)
class _Probe:
    """What is asked of each sample, the text that a reply may recite, and the sample's group.

    ``least`` is how many new words a text needs to be counted.
    """

    instruction: str
    questions: Sequence[str]
    references: Sequence[str]
    groups: Sequence[str]
    least: int


class Contamination(Study):
    """Whether the model knows the test set: continues questions, answers them unseen (task= may name several)"""

    columns = ("task", "probe", "samples", "recited", "95% interval", "by chance", "p (Holm)")
    note = (
        f"Recited: the reply has {_RUN} words in a row of the hidden half, or all of a shorter answer. Words that the "
        "question shows do not count. By chance: the same with up to ten other samples. The test is exact: a reply "
        "that knows nothing recites its own sample as often as any other."
    )

    def __init__(self, request: Request) -> None:
        self._probes: dict[tuple[str, str], tuple[PlannedRun, _Probe]] = {}
        for task in request.overrides["task"].split(","):
            settings = {**request.having(request.seeds[0]), "task": task}
            for name, probe in _probes(task, settings).items():
                asked = _ask(settings, [*zip(probe.questions, probe.references, strict=True)], probe.instruction)
                self._probes[task, name] = PlannedRun(overrides=asked), probe
        self.runs = [planned for planned, _ in self._probes.values()]

    def rows(self, make: Make) -> Iterator[Row]:
        """Give the share of replies that recite their own sample, and how often they recite others."""
        for (task, name), (planned, probe) in self._probes.items():
            counts = _count(_replies(make(planned)), probe)
            own = np.array([[float(recited) for recited, _ in counts.values()]])
            groups = [probe.groups[index] for index in counts]
            bounds = score_bounds(own, clusters(range(len(counts)), groups.__getitem__)) if len(counts) > 1 else None
            if bounds is None:
                yield Row(cells=(task, name, len(counts), None, None, None))
                continue
            chance = fmean(fmean(others) for _, others in counts.values())
            share, low, high, by_chance = (round(100 * part, 1) for part in (float(own.mean()), *bounds, chance))
            cells = (task, name, len(counts), share, f"{low} to {high}", by_chance)
            yield Row(cells=cells, p=_exact_p(counts.values()))

    def verdict(self, rows: Sequence[Row]) -> Iterator[str]:
        """Say of each task whether the model recites more of it than chance explains."""
        for task in dict.fromkeys(row.cells[0] for row in rows):
            tests = [(row.p, row.cells) for row in rows if row.cells[0] == task and row.p is not None]
            if not tests:
                yield f"{task}: not tested, as under two samples hide {_RUN} words that their questions do not show."
                continue
            p, cells = min(tests, key=lambda test: test[0])
            _, probe, samples, share, interval, by_chance = cells
            knows = "the model knows" if p < 1 - LEVEL else "no sign that the model knows"
            yield (
                f"{task}: {knows} the test set. It {probe}: {share}% of {samples} recited ({interval}), "
                f"{by_chance}% by chance, p (Holm) {p_value(p)}."
            )


def _probes(task: str, settings: Overrides) -> Mapping[str, _Probe]:
    """Return the probes of a task by what a model does that passes them."""
    identified = find_run(settings)
    samples = identified.task.samples("test")[: identified.limits.get("test")]
    grades = [identified.task.failing_grade(sample) for sample in samples]
    texts = [sample.asked for sample in samples]
    names = [f"Question {number} of the test set of the benchmark {task}" for number in range(1, len(texts) + 1)]
    groups = [grade.group for grade in grades]
    probes = {
        "continues the question": _Probe(
            instruction="Continue the text word for word, as it stands in the benchmark. Reply with the rest alone.",
            questions=[f"{name} begins:\n\n{text[: len(text) // 2]}" for name, text in zip(names, texts, strict=True)],
            references=[text[len(text) // 2 :] for text in texts],
            groups=groups,
            least=_RUN,
        )
    }
    if any(grade.gold for grade in grades):
        background = samples[0].inputs["background"]
        probes["answers by number"] = _Probe(
            instruction=f"{background}\n\nReply with your best answer alone, even where you cannot know it.",
            questions=[f"{name}, in the order of its file, is not shown." for name in names],
            references=[grade.gold for grade in grades],
            groups=groups,
            least=1,
        )
    return probes


def _count(replies: Sequence[str], probe: _Probe) -> Mapping[int, tuple[bool, Sequence[bool]]]:
    """Return by sample whether its reply recites it, and which other samples it recites.

    Left out are samples, and others, whose text has too few words that the question does not show.
    """
    counts = {}
    for index, (reply, question) in enumerate(zip(replies, probe.questions, strict=True)):
        shown = frozenset(_words(question))
        said = [word for word in _words(reply) if word not in shown]
        others = min(_CONTROLS + 1, len(replies))
        places = [index, *((index + step) % len(replies) for step in range(1, others))]
        hidden = [[word for word in _words(probe.references[place]) if word not in shown] for place in places]
        own, *rest = [_recites(said, text) if len(text) >= probe.least else None for text in hidden]
        controls = [recited for recited in rest if recited is not None]
        if own is not None and controls:
            counts[index] = own, controls
    return counts


def _words(text: str) -> list[str]:
    return words_of(" ".join(_WORD.findall(visible(text).lower())))


def _recites(said: Sequence[str], hidden: Sequence[str]) -> bool:
    """Whether some of the hidden words, ``_RUN`` in a row or all if there are fewer, are among those said."""
    size = min(_RUN, len(hidden))
    runs = {tuple(said[start : start + size]) for start in range(len(said) - size + 1)}
    return any(tuple(hidden[start : start + size]) in runs for start in range(len(hidden) - size + 1))


def _exact_p(counts: Iterable[tuple[bool, Sequence[bool]]]) -> float:
    """Return the probability of as many recited samples where each reply recites its own as often as any other."""
    recited, distribution = 0, np.ones(1)
    for own, others in counts:
        recited += own
        rate = (own + sum(others)) / (1 + len(others))
        distribution = np.convolve(distribution, [1 - rate, rate])
    return float(distribution[recited:].sum())
