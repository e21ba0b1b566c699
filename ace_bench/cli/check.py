"""Check a task's data: counts, checksums, fields, the grades of its gold answers, and prompts that hold them.

A reference solution of AppWorld is first run in a fresh world; samples without one are left out.

    ace-bench check finer --data-dir data/finer
    ace-bench check bird_sql --set metric=execution_corrected
    ace-bench check task=qa task.data=questions.csv task.question=question task.answer=answer
    ace-bench check --config-dir experiments experiment=first

The exit code is 1 if a gold answer is graded as wrong for no known reason, and 2 for a bad file or setting. A known
reason: BIRD-SQL's official rule gives no point to a gold query that returns no row.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.table import Table

from ace_bench.cli.arguments import Parser
from ace_bench.cli.data import difference
from ace_bench.cli.own_table import balance, majority
from ace_bench.core.console import Console
from ace_bench.core.errors import ConfigError
from ace_bench.core.leakage import find_leakage
from ace_bench.core.task import Lifecycle, Task
from ace_bench.core.types import Grade, Sample
from ace_bench.runners.composing import compose_run, refuse_settings_in_texts
from ace_bench.runners.override_help import explanation
from ace_bench.runners.settings import decode
from ace_bench.tasks.catalog import make_task, task_names
from ace_bench.tasks.data import SOURCES, RemoteFile
from ace_bench.tasks.qa.graders import are_labels


def grade_golds(task: Task, samples: Sequence[Sample]) -> list[tuple[Sample, Grade]]:
    """Grade each sample's reference answer; samples without one, as on AppWorld's test splits, are left out."""
    acts = task.prompt_group == "agent"  # its reference answer is code that defines a function
    grades = []
    for sample in samples:
        gold = task.failing_grade(sample).gold
        if acts and not gold:
            continue
        with task.open(sample) as session:
            if acts:
                session.step(f"{gold}\nsolution(apis, requester)")
            grades.append((sample, session.grade(gold)))
    return grades


def _describe_file(task: Task, name: str) -> str:
    """Return the checksum of a file, and how it compares with the published one of the same name."""
    checksum = task.checksums.get(name)
    if checksum is None:  # all splits are rows of one file of the user's own
        own = "\n".join(f"{file}, your own\nsha256 {sha256[:16]}…" for file, sha256 in task.checksums.items())
        return own or "n/a"
    files: Mapping[str, Path] = getattr(task, "files", {})
    downloads: Sequence[RemoteFile] = getattr(task, "downloads", ())
    official = next((file for file in downloads if file.name == name), None)
    if task.source == "sample":
        published = "sample set"
    elif official is None:
        published = "no published file known"
    else:
        published = "differs from the official file" if difference(files[name], official) else "the official file"
    return f"{name}, {published}\nsha256 {checksum[:16]}…"


def _describe_inputs(samples: Sequence[Sample]) -> str:
    """Return each field of a split with its distinct values and median length in characters."""
    parts = []
    for field in samples[0].inputs:
        values = [sample.inputs[field] for sample in samples]
        median = sorted(map(len, values))[len(values) // 2]
        parts.append(f"{field}: {len(set(values))} distinct, {median} characters")
    return "\n".join(parts)


def check(task: Task, console: Console) -> int:
    """Print the report of a task. Return how many gold answers were graded as wrong without a reason."""
    console.print(f"Task {task.name}: {task.source} data", style="bold")
    wrong: list[tuple[Sample, Grade]] = []
    for split in getattr(task, "splits", ("train", "val", "test")):
        samples = task.samples(split)
        graded = grade_golds(task, samples)
        wrong += [(sample, grade) for sample, grade in graded if not grade.correct]
        scores = task.score([grade for _, grade in graded])
        lines = [f"{name} {value:.2f}" for name, value in scores.items()]
        lines += [f"{len(samples) - len(graded)} without a reference"] * (len(graded) < len(samples))
        repeated = len(samples) - len({tuple(sorted(sample.inputs.items())) for sample in samples})
        table = Table.grid(padding=(0, 2))
        table.add_row(f"\n{split}", f"\n{len(samples)} samples, {repeated} repeated", style="bold")
        table.add_row("  inputs", _describe_inputs(samples))
        golds = [str(gold) for sample in samples if (gold := task.failing_grade(sample).gold)]
        if golds and are_labels(golds):
            lines += [balance(golds), majority(golds)]
        table.add_row("  gold answers", "\n".join(lines))
        table.add_row("  leakage", str(find_leakage(task, split)))
        table.add_row("  file", _describe_file(task, f"{split}.jsonl"))
        console.print(table)
    expected: Callable[[Grade], str | None] = getattr(task, "expected_loss", lambda _: None)
    reasons = {sample.id: expected(grade) for sample, grade in wrong}
    console.print()
    for name, reason in reasons.items():
        line = f"{name}: the gold answer is graded as wrong{f', as expected: {reason}' if reason else ''}"
        console.print(line, style="dim" if reason else "red")
    module = inspect.getmodule(type(task))
    notes = re.sub(r"(?<!\n)\n(?![\n*])", " ", (module.__doc__ or "") if module else "").strip()  # a line a paragraph
    console.print(f"\nThe grader and its quirks\n\n{notes}")
    return sum(reason is None for reason in reasons.values())


def _read_settings(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the settings by name, read as ``run`` reads them. Raises ``ConfigError``."""
    settings = OmegaConf.create()
    try:
        for override in OverridesParser.create().parse_overrides(list(arguments)):
            OmegaConf.update(settings, override.key_or_group, override.value(), force_add=True)
        refuse_settings_in_texts(OmegaConf.to_container(settings), "task")
        changes = OmegaConf.to_container(settings, resolve=True)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        explained = explanation(error, (), arguments) or str(error).splitlines()[0]
        raise ConfigError(explained) from error
    assert isinstance(changes, dict)
    return {str(key): value for key, value in changes.items()}


def _make_task(name: str, settings: Mapping[str, Any]) -> Task:
    """Make the task that a word names, or the one of a preset. Raises ``ConfigError`` and ``DataError``."""
    if not name.startswith("experiment="):
        return make_task(name.removeprefix("task="), **settings, sample_allowed=True)
    part = decode(compose_run([name])).parts.task
    task: Task = replace(part, node={**part.node, **settings}).build(sample_allowed=True)
    return task


def main(arguments: Sequence[str]) -> int:
    """Check one task. Return the exit code."""
    parser = Parser("check", __doc__)
    parser.add_argument("task", help=f"one of: {', '.join(task_names())}; task=NAME means the same; or experiment=NAME")
    parser.add_argument("settings", nargs="*", metavar="task.KEY=VALUE", help="settings as in the command of a run")
    parser.add_argument("--data-dir", help="folder with the files (default: where runs would look)")
    parser.add_argument("--source", choices=SOURCES, help="which data to check (default: as runs with auto)")
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="KEY=VALUE", help="other settings of the task, such as metric=judge"
    )
    options = parser.parse_args(arguments)
    for word in options.set:
        if "=" not in word:
            raise ConfigError(f"--set {word} has no value: write --set {word}=VALUE")
    for word in options.settings:
        if not re.match(r"task\.\S+=", word):
            raise ConfigError(f"{word} is not a setting of a task: write task.KEY=VALUE")
    arguments_of_task = [*(word.removeprefix("task.") for word in options.settings), *options.set]
    settings = _read_settings(arguments_of_task)
    flags = {"data_dir": options.data_dir, "source": options.source}
    settings |= {name: value for name, value in flags.items() if value is not None}
    task = _make_task(options.task, settings)
    with closing(task) if isinstance(task, Lifecycle) else nullcontext():
        wrong = check(task, Console(markup=False, highlight=False))
    return 1 if wrong else 0
