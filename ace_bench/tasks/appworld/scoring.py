"""Evaluation of saved outputs by the engine, and the official metrics.

A task is passed when all its unit tests pass. Task goal completion (TGC) is the share of tasks passed, scenario goal
completion (SGC) the share of scenarios all of whose tasks are passed (paper, section 4.3; the engine's evaluator).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ace_bench.core.typed import converted
from ace_bench.core.types import Grade
from ace_bench.tasks.answers import percent
from ace_bench.tasks.appworld.outputs import Unusable
from ace_bench.tasks.appworld.servers import Servers, task_fault

EVALUATION_S = 60
"""Most seconds that an evaluation may take: outputs can make it slow on purpose."""


class Verdict(msgspec.Struct, frozen=True):
    """The evaluator's result: the number of unit ``tests``, how many passed (``passes``), and its ``report``."""

    success: bool
    tests: int
    passes: int
    report: str


class Scorer:
    """Evaluates outputs against the full data root ``root``; safe between threads."""

    def __init__(self, servers: Servers, *, root: Path, memory: int):
        self._servers = servers
        self._limits = {"root": str(root), "memory": memory}

    def score(self, task: str, outputs: Path) -> Verdict:
        """Evaluate the outputs in ``outputs/tasks/<task>``.

        Raises ``Unusable`` where the outputs cause an error, ``RolloutFault`` where the evaluation fails otherwise.
        """
        request = outputs / "request.json"
        request.write_text(json.dumps({"task": task, "outputs": str(outputs), "seconds": EVALUATION_S, **self._limits}))
        answer = self._servers.score(request, seconds=3 * EVALUATION_S)
        if answer is not None and answer.get("bad_outputs"):
            raise Unusable(answer["error"].strip().splitlines()[-1])
        if answer is None or "error" in answer:
            reason = "there was no answer" if answer is None else answer["error"]
            raise task_fault("scoring", f"{task} could not be evaluated: {reason}")
        verdict: Verdict = converted(answer, Verdict)
        return verdict


def metrics(grades: Sequence[Grade]) -> Mapping[str, float]:
    """Return TGC and SGC in percent, overall and by difficulty, and the mean number of pieces of code run."""
    if not grades:
        return {}
    levels: dict[str, list[Grade]] = defaultdict(list, {"": list(grades)})
    for grade in sorted(grades, key=lambda grade: grade.detail["difficulty"]):
        levels[f"_level{grade.detail['difficulty']:.0f}"].append(grade)
    return {
        **{f"tgc{level}": percent(sum(grade.correct for grade in some), len(some)) for level, some in levels.items()},
        **{f"sgc{level}": _scenarios(some) for level, some in levels.items()},
        "interactions": sum(grade.detail["interactions"] for grade in grades) / len(grades),
    }


def _scenarios(grades: Sequence[Grade]) -> float:
    passed: dict[str, bool] = {}
    for grade in grades:
        passed[grade.group] = passed.get(grade.group, True) and grade.correct
    return percent(sum(passed.values()), len(passed))
