"""Which stage a sample belongs to: its task, or the part of its task that a field names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ace_bench.core.errors import ConfigError
from ace_bench.core.task import Divisible, Task
from ace_bench.core.types import Sample

_ANSWER, _GROUP = "answer", "group"
_LONGEST = 40


@dataclass(frozen=True, kw_only=True)
class Division:
    """The stages of a task: the values of ``by`` that each holds, and the stage of each sample, by its id."""

    by: str
    holds: Mapping[str, Sequence[str]]
    stage_of: Mapping[str, str]


def divide(task: Task, splits: Sequence[str], by: str | None, parts: int | None) -> Division:
    """Divide all samples of these splits, whatever the run's limit; raises ``ConfigError``.

    Several values of one sample, as FiNER's tags, are separate: the sample goes where most of them are.
    """
    samples = [sample for split in splits for sample in task.samples(split)]
    by = by or (task.divisions[0] if isinstance(task, Divisible) else None)
    if by is None:
        raise ConfigError(f"mode=lifelong must know what a stage is: {_choices(task, samples)}")
    values = {sample.id: _values(task, sample, by, samples) for sample in samples}
    # By name, as StreamBench sorts databases; the tasks of task=stream are in the order of mode.stages all the same.
    counts = Counter(sorted(value for some in values.values() for value in some))
    if parts is not None and not 2 <= parts <= len(counts):
        raise ConfigError(
            f"mode.parts={parts} must be at least 2 and at most the number of values of {by}, {len(counts)}"
        )
    holds: dict[str, list[str]] = {}
    for value, part in _parts(counts, parts).items():
        holds.setdefault(part, []).append(value)
    names = {part: f"{by}{part}" if parts else some[0] for part, some in holds.items()}
    place = {value: names[part] for part, some in holds.items() for value in some}
    return Division(
        by=by,
        holds={names[part]: some for part, some in holds.items()},
        stage_of={key: Counter(place[one] for one in some).most_common(1)[0][0] for key, some in values.items()},
    )


def _parts(counts: Counter[str], parts: int | None) -> Mapping[str, str]:
    """Return the part of each value: of about equal size, in the order of values."""
    if parts is None:
        return {value: value for value in counts}
    found, before, left = dict[str, str](), 0, len(counts)
    number, total = 1, sum(counts.values())
    for value, count in counts.items():
        full = before >= number * total / parts or left <= parts - number
        number = min(parts, number + (full and bool(found)))
        found[value] = str(number)
        before, left = before + count, left - 1
    return found


def _values(task: Task, sample: Sample, by: str, samples: Sequence[Sample]) -> Sequence[str]:
    if isinstance(task, Divisible) and by in task.divisions:
        return [task.part_of(sample, by)]
    if by == _ANSWER:
        return [value.strip() for value in task.failing_grade(sample).gold.split(",")]
    if by == _GROUP:
        return [task.failing_grade(sample).group or "none"]
    if by not in sample.inputs:
        raise ConfigError(f"mode.by={by} is no field of this task: {_choices(task, samples)}")
    return [" ".join(sample.inputs[by].split())[:_LONGEST]]


def _choices(task: Task, samples: Sequence[Sample]) -> str:
    own = task.divisions if isinstance(task, Divisible) else ()
    grouped = [_GROUP] if samples and task.failing_grade(samples[0]).group else []
    inputs = samples[0].inputs if samples else ()
    return f"choose mode.by of {', '.join(dict.fromkeys((*own, _ANSWER, *grouped, *inputs)))}, often with mode.parts"
