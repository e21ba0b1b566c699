"""The cases: each returns its figures; its docstring's first line is the table's title."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.measuring import ACE_BENCH, Figure, Setting, in_process, metrics_of
from benchmarks.scripted import InstantModel, ShuffledGolds, large_playbook

KILLS = 20
PREDICTIONS, THREADS = 500, 8
_EMBEDDED = "ace_bench.backbones.embedded.backbone.EmbeddedBackbone"


def startup(setting: Setting) -> list[Figure]:
    """seconds until something happens, median of five"""
    del setting

    def median(*command: str) -> str:
        times = []
        for _ in range(5):
            started = time.perf_counter()
            subprocess.run([sys.executable, *command], capture_output=True, check=True)
            times.append(time.perf_counter() - started)
        return f"{statistics.median(times):.2f} s"

    return [
        Figure("python -c 'import ace_bench'", median("-c", "import ace_bench"), "< 0.3 s"),
        Figure("ace-bench run --help", median("-m", "ace_bench", "run", "--help"), "< 1.0 s"),
    ]


def embedded_call(setting: Setting) -> list[Figure]:
    """the embedded reader on FiNER prompts, median of 200 calls"""
    from hydra.utils import get_class

    from ace_bench.core.resources import prompts_folder
    from ace_bench.core.types import Message
    from ace_bench.playbook.playbook import Playbook
    from ace_bench.store.prompts import PromptSet
    from ace_bench.tasks.catalog import make_task

    data = {"data_dir": str(setting.data / "finer")} if setting.data else {"source": "sample"}
    samples = make_task("finer", **data, sample_allowed=True).samples("test")
    folder = setting.run("task=finer", setting.source("finer"), "mode.epochs=1", "limit={train: 80, test: 1}")
    learnt = Playbook.load(json.loads((folder / "contexts" / "final.json").read_text()))
    prompts = PromptSet(prompts_folder() / "default", task="finer", prompt_group="qa")
    figures = []
    for size in (0, 100):
        playbook = learnt.with_bullets(learnt.bullets[:size])
        backbone = get_class(_EMBEDDED)(name="embedded")
        times = []
        for number in range(200):
            sample = samples[number % len(samples)]
            fields = {**sample.inputs, **playbook.render(sample), "reflection": "(none)", "scaffold": "own"}
            messages: tuple[Message, ...] = prompts.render("generator", fields)
            started = time.perf_counter()
            backbone.complete(messages, role="generator", session="s")
            times.append(time.perf_counter() - started)
        measured = f"{1000 * statistics.median(times):.2f} ms"
        figures.append(Figure(f"generator, {playbook.size} bullets", measured, "< 5 ms"))
    return figures


def step_overhead(setting: Setting) -> list[Figure]:
    """the harness's own cost of an ACE step (10 calls), model time taken off, median of 30 steps"""
    figures = []
    for size in (0, 2000):
        sized = replace(setting, scratch=setting.scratch / str(size))
        sized.scratch.mkdir(parents=True)
        model = InstantModel()
        overrides = ["task=finer", "task.source=sample", "limit={train: 40, test: 1}", "mode.epochs=1"]
        overrides += ["mode.before=false", "concurrency=1", "method.max_reflection_rounds=4"]
        overrides += ["method.refiner.max_tokens=1000000"]
        if size:
            initial = sized.scratch / "initial.json"
            initial.write_text(json.dumps(large_playbook(size)))
            overrides.append(f"method.initial={initial}")
        folder = in_process(sized, overrides, backbones={"generator": model})
        walls, sizes = _steps(folder)
        model_ms = 1000 * model.seconds / model.calls * 10
        median, fastest = (1000 * statistic(walls[10:]) - model_ms for statistic in (statistics.median, min))
        written = f"{statistics.median(sizes[10:]) / 1000:.1f} kB a step"
        figures += [
            Figure(f"{size} bullets: step", f"{median:.1f} ms, fastest {fastest:.1f} ms", "< 10 ms"),
            Figure(f"{size} bullets: run folder", written),
        ]
    return figures


def _steps(folder: Path) -> tuple[list[float], list[int]]:
    """Wall seconds and bytes of the journal and the calls, step by step."""
    calls = [len(line) for line in (folder / "calls.jsonl").read_bytes().splitlines(keepends=True)]
    walls, sizes, last, size, calls_before = [], [], 0.0, 0, 0
    for line in (folder / "journal.jsonl").read_bytes().splitlines(keepends=True):
        record = json.loads(line)
        size += len(line)
        if record["kind"] == "step":
            walls.append(record["wall"] - last)
            sizes.append(size + sum(calls[calls_before : record["calls_made"]]))
            last, size, calls_before = record["wall"], 0, record["calls_made"]
    return walls, sizes


def online_cache(setting: Setting) -> list[Figure]:
    """simulated prefix-cache reuse of 60 online FiNER steps"""
    folder = setting.run("task=finer", setting.source("finer"), "mode=online", "limit=60", "mode.before=false")
    share = metrics_of(folder)["cache"]["adapt"]["share"]
    return [Figure("cached share of prompt tokens", f"{share:.1%}", "> 85%")]


def learning(setting: Setting) -> list[Figure]:
    """test accuracy before and after one epoch of ACE offline, embedded, seed 0"""
    figures = []
    for task in ("finer", "formula"):
        for labels in ("gold", "correctness", "none"):
            overrides = (f"task={task}", setting.source(task), f"labels={labels}", "mode.epochs=1")
            limit = () if task == "formula" else ("limit={train: 300, test: 100}",)
            started = time.perf_counter()
            folder = setting.run(*overrides, *limit)
            figures.append(_gain(f"{task}, labels={labels}", folder, time.perf_counter() - started))
        started = time.perf_counter()
        shuffled = [f"task={task}", setting.source(task), "mode.epochs=1", "name=shuffled"]
        folder = in_process(setting, shuffled, task=ShuffledGolds)
        figures.append(_gain(f"{task}, shuffled golds (must not gain)", folder, time.perf_counter() - started))
    return figures


def _gain(name: str, folder: Path, seconds: float) -> Figure:
    headline = metrics_of(folder)["headline"]
    gain = headline["after"] - headline["before"]
    measured = f"{headline['before']:.1f} -> {headline['after']:.1f} ({gain:+.1f}), n={headline['n']}, {seconds:.0f} s"
    return Figure(name, measured)


def kills(setting: Setting) -> list[Figure]:
    """kill -9 at 20 random moments of one run, each time continued"""
    overrides = ("task=finer", setting.source("finer"), "mode.epochs=2", "limit={train: 60, test: 60}")
    uninterrupted = replace(setting, scratch=setting.scratch / "whole").run(*overrides)
    cut = replace(setting, scratch=setting.scratch / "cut")
    rng = random.Random(0)
    timing = metrics_of(uninterrupted)["timing"]
    length = sum(part.get("wall_s", 0.0) for part in timing.values())
    for _ in range(KILLS):
        with subprocess.Popen(
            [*ACE_BENCH, *cut.words(*overrides)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()  # the title: from here on the run is under way
            time.sleep(rng.uniform(0, 2 * length / KILLS))
            process.kill()
    return _compare_runs(cut.run(*overrides), uninterrupted)


def _compare_runs(folder: Path, uninterrupted: Path) -> list[Figure]:
    """Return what a run that was killed and continued has in common with one that was not."""
    ids = _values(folder / "calls.jsonl", "id")
    return [
        Figure(
            "metrics equal (timings and cache aside)", str(_lasting_metrics(folder) == _lasting_metrics(uninterrupted))
        ),
        Figure("contexts equal byte for byte", str(_contexts(folder) == _contexts(uninterrupted))),
        Figure("calls, uninterrupted run", str(len(_values(uninterrupted / "calls.jsonl", "id")))),
        Figure("calls, killed run", f"{len(ids)}, {len(set(ids))} distinct"),
        Figure("processes the killed run took", str(len(set(_values(folder / "journal.jsonl", "process"))))),
    ]


def _lasting_metrics(folder: Path) -> str:
    metrics = metrics_of(folder)
    return json.dumps({key: value for key, value in metrics.items() if key not in ("timing", "cache")})


def _contexts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "contexts").iterdir()}


def _values(path: Path, field: str) -> list[Any]:
    return [json.loads(line)[field] for line in path.read_text().splitlines()]


def sql(setting: Setting) -> list[Figure]:
    """seconds for 500 executed predictions (gold queries with a comment added), eight rollouts at a time"""
    from ace_bench.tasks.catalog import make_task

    data = {"data_dir": str(setting.data / "bird_sql")} if setting.data else {"source": "sample"}
    setting.scratch.mkdir(parents=True)
    with mock.patch.dict(os.environ, {"ACE_BENCH_CACHE": str(setting.scratch)}):
        task: Any = make_task("bird_sql", **data, sample_allowed=True)
        samples = [sample for split in task.splits for sample in task.samples(split)]
        samples = (samples * (1 + PREDICTIONS // len(samples)))[:PREDICTIONS]

        def grade(sample: Any) -> Any:
            with task.open(sample) as session:
                return session.grade(f"{session.grade(None).gold}\n-- prediction")

        figures = []
        with ThreadPoolExecutor(THREADS) as pool:
            for name in ("gold queries run, too", "gold results kept"):
                started = time.perf_counter()
                grades = list(pool.map(grade, samples))
                figures.append(Figure(name, f"{time.perf_counter() - started:.2f} s", "< 20 s"))
        task.close()
    scores = task.score(grades)
    right = ", ".join(f"{name} {scores[name]:.1f}" for name in ("execution", "execution_corrected"))
    return [*figures, Figure("gold queries as predictions, percent right", right, "corrected 100.0")]
