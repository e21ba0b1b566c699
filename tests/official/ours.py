"""Our side: ``ace-bench run protocol=official`` as a user starts it, and what its run folder holds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import msgspec

from ace_bench.contexts.cheatsheet import EMPTY, Cheatsheet
from ace_bench.core.context import Context
from ace_bench.core.errors import UNREADABLE
from ace_bench.core.types import Stage
from ace_bench.methods.official.playbook import TextPlaybook
from ace_bench.report.histories import history
from ace_bench.store.calls import CallRecord, read_calls
from ace_bench.store.journal import RolloutRecord, StepRecord, parse_journal
from ace_bench.store.lines import read_lines
from ace_bench.store.results import read_settings
from ace_bench.tasks.appworld.engine import FOLDER_VARIABLE
from tests.launching import ROOT
from tests.official.comparing import Call, Side, Step
from tests.official.serving import MODEL, spoken

T = TypeVar("T")
Scores = Mapping[str, Sequence[float]]

_TIMEOUT = 300
SAVE_STEPS = 5
"""Steps between the playbooks that are exported."""
NO_ANSWER = "No final answer found"
"""What the authors' code reads where ours reads no answer."""


def command(*arguments: str, folder: Path, timeout: float = _TIMEOUT) -> str:
    """Run an ``ace-bench`` command in a folder; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "ace_bench", *arguments],
        cwd=folder,
        env={FOLDER_VARIABLE: str(ROOT / ".appworld"), **os.environ},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"ace-bench {arguments[0]} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def run(
    code: Path, folder: Path, url: str, *overrides: str, method: str = "ace", protocol: str = "official",
    timeout: float = _TIMEOUT,
) -> Path:  # fmt: skip
    """Run one experiment with the prompts of a checkout, one rollout at a time; return its run folder."""
    command("prompts", str(code), str(folder / "prompts"), folder=folder)
    command(
        "run",
        f"method={method}",
        f"protocol={protocol}",
        f"prompts={folder / 'prompts'}",
        "backbone=openai_compatible",
        f"backbone.base_url={url}",
        f"backbone.model={MODEL}",
        "backbone.api_key_env=null",
        "backbone.structured=none",
        "concurrency=1",
        "estimate=false",
        f"results={folder / 'results'}",
        *overrides,
        folder=folder,
        timeout=timeout,
    )
    (metrics,) = (folder / "results").rglob("metrics.json")
    return metrics.parent


def side(run_folder: Path) -> Side:
    """Read calls, steps and scores of a finished run."""
    rollouts = {record.key: record for record in _journal(run_folder, RolloutRecord)}
    contexts = [*history(run_folder)]
    replied = (record for record in read_calls(run_folder) if record.fault is None or record.fault.kind in UNREADABLE)
    calls = [_call(record, rollouts) for record in replied]
    steps = [_step(context) for context in contexts[1:]]
    return Side(calls, steps, _scores(run_folder, contexts, rollouts), _playbooks(run_folder))


def _playbooks(run_folder: Path) -> dict[str, str]:
    """Export the playbooks as the authors' code names them."""
    out = run_folder.parent / "playbooks"
    command("playbook", "export", str(run_folder), "--out", str(out), "--every", str(SAVE_STEPS), folder=run_folder)
    return {path.relative_to(out).as_posix(): path.read_text(encoding="utf-8") for path in out.rglob("*.txt")}


def adaptation(run_folder: Path) -> Side:
    """Read the calls and steps of a run's adaptation; the authors' AppWorld code evaluates in a run of its own."""
    calls = [_spoken(record) for record in read_calls(run_folder) if record.stage is Stage.ADAPT]
    return Side(calls, [_step(context) for context in history(run_folder)][1:])


def cheatsheets(run_folder: Path) -> Side:
    """Read the calls, answers and cheatsheets of an online run of Dynamic Cheatsheet."""
    rollouts = {record.key: record for record in _journal(run_folder, RolloutRecord)}
    records = [record for record in read_calls(run_folder) if record.stage is Stage.ADAPT]
    calls = [replace(_call(record, rollouts), correct=None) for record in records]
    texts = [context.text or EMPTY for context in history(run_folder) if isinstance(context, Cheatsheet)]
    return Side(calls, [Step(text) for text in texts[1:]])


def spoken_calls(run_folder: Path) -> Side:
    """Read the prompts and replies of a run's adaptation, for methods whose contexts theirs do not write down."""
    return Side([_spoken(record) for record in read_calls(run_folder) if record.stage is Stage.ADAPT], [])


def _journal(folder: Path, kind: type[T]) -> list[T]:
    lines = read_lines(folder / "journal.jsonl", parse_journal).check().entries
    return [line.record for line in lines if isinstance(line.record, kind)]


def _spoken(record: CallRecord) -> Call:
    assert record.request is not None
    prompt = spoken([{"role": message.role, "content": message.content} for message in record.request.messages])
    return Call(record.role, prompt, record.completion.as_written)


def _call(record: CallRecord, rollouts: Mapping[str, RolloutRecord]) -> Call:
    call = _spoken(record)
    if record.role != "generator":
        return call
    rollout = rollouts[record.session]
    answer = NO_ANSWER if rollout.attempt.answer is None else rollout.attempt.answer
    return replace(call, answer=answer, correct=rollout.grade.correct)


def _step(context: Context) -> Step:
    assert isinstance(context, TextPlaybook)
    return Step(context.text, context.next_number)


def _scores(folder: Path, contexts: Sequence[Context], rollouts: Mapping[str, RolloutRecord]) -> Scores:
    metrics = msgspec.json.decode((folder / "metrics.json").read_bytes())
    about = metrics["headline"]
    scores = {"before": [about["before"] / 100], "after": [about["after"] / 100]}
    if metrics["mode"] == "online":
        return {**scores, "windows": _windows(folder, contexts, rollouts)}
    return {**scores, "validation": [one["score"] / 100 for one in metrics["validation"]]}


def _windows(folder: Path, contexts: Sequence[Context], rollouts: Mapping[str, RolloutRecord]) -> list[float]:
    """Return the accuracy of each window, predicted under the context before its first step."""
    window = read_settings(folder)["mode"]["window"]
    samples, steps = list[str](), list[int]()
    for number, record in enumerate(_journal(folder, StepRecord)):
        samples += record.samples
        steps += [number] * len(record.samples)
    scores = []
    for start in range(0, len(samples), window):
        predicted = {
            record.sample: record.grade.detail
            for record in rollouts.values()
            if record.stage is Stage.ADAPT and record.context == contexts[steps[start]].digest and not record.trial
        }
        details = [predicted[sample] for sample in samples[start : start + window]]
        scores.append(sum(one["hits"] for one in details) / sum(one["labels"] for one in details))
    return scores
