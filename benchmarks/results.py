"""The case ``results``: what tables and the viewer need for a folder of many runs."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count as count_from
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from ace_bench.core.identity import RunIdentity
from ace_bench.core.types import Record
from ace_bench.report.page.content import RUNS, Content
from ace_bench.report.page.results import Results
from ace_bench.report.records import RunSummary, find_runs, read_run
from ace_bench.store.folder import STATUS, format_json
from ace_bench.store.lines import SEAL, AppendLog, DiskGuard, read_lines
from ace_bench.store.results import CHECKSUMS, Checksums
from benchmarks.measuring import Figure, Setting, run_command

_ORIGINALS = (
    *(("finer", method) for method in (("base",), ("icl",), ("ace", "mode.epochs=1"), ("ace", "mode=online"))),
    *((task, method) for task in ("formula", "ddxplus") for method in (("base",), ("ace", "mode.epochs=1"))),
)
"""Task, method and settings of the runs that the others are made from."""


_PAUSE_S = 1.0
"""The viewer looks at the folder again after this time."""
_AIM = "< 60 s"


def results(setting: Setting) -> list[Figure]:
    """tables and the viewer over many finished runs of about 100 samples (CPU seconds)"""
    originals = [
        setting.run(f"task={task}", setting.source(task), "limit=100", f"method={method}", *settings)
        for task, (method, *settings) in _ORIGINALS
    ]
    folder = setting.scratch / "many"
    make_runs(originals, folder, setting.runs)
    out, table = setting.scratch / "found", setting.scratch / "table.csv"
    viewer = Results(folder)
    content = Content(viewer, live=True)
    figures = [
        Figure(f"{setting.runs:,} runs: find and read", _cpu(lambda: find_runs(folder))),
        Figure("viewer: first look at the folder", _cpu(viewer.version)),
        Figure("viewer: settings in which the runs differ", _cpu(viewer.listing)),
        Figure("viewer: answer with the list", _cpu(lambda: content.read(RUNS, {}))),
    ]
    time.sleep(_PAUSE_S)
    return [
        *figures,
        Figure("viewer: another look at the folder", _cpu(viewer.version)),
        Figure("ace-bench tables", _command("tables", f"--results={folder}", f"--out={out}"), _AIM),
        Figure("ace-bench tables --rows", _command("tables", str(folder), "--rows=method", f"--out={table}"), _AIM),
    ]


def _cpu(act: Callable[[], object]) -> str:
    started = time.process_time()
    act()
    return f"{time.process_time() - started:.2f} s"


def _command(*words: str) -> str:
    """Run a command and return its CPU time and the most memory that it held; raises ``RunFailedError``."""
    ran = run_command(words)
    return f"{ran.cpu:.1f} s, {ran.memory / 2**20:.0f} MiB"


_JOURNAL, _CALLS = "journal.jsonl", "calls.jsonl"
_SEEDS, _LIMITS = range(5), range(20, 220, 20)
_JOURNALS = 20
"""Number of journals with scores of their own for each real run; the runs made from it share them."""


def make_runs(originals: Sequence[Path], results: Path, count: int) -> None:
    """Write ``count`` finished runs to a new folder ``results``, in turn like each of the real runs ``originals``.

    They differ in ``mode.epochs``, ``limit`` and seed, and in the scores of their samples. All their files are there,
    with their checksums; files that do not differ are hard links.
    """
    kinds = [_Original(folder, results / ".journals" / str(index)) for index, folder in enumerate(originals)]
    for index, variation in zip(range(0, count, len(kinds)), _variations(), strict=False):
        for kind in kinds[: count - index]:
            kind.write_run(results / "many", variation)


class _Variation(NamedTuple):
    """How a run differs from the real one; ``journal`` is the number of the journal with its scores."""

    epochs: int
    limit: int
    seed: int
    journal: int


def _variations() -> Iterator[_Variation]:
    settings = ((epochs, limit, seed) for epochs in count_from(1) for limit in _LIMITS for seed in _SEEDS)
    return (_Variation(*values, number % _JOURNALS) for number, values in enumerate(settings))


class _Original:
    """A real run that others are made from."""

    def __init__(self, folder: Path, journals: Path) -> None:
        self._run = read_run(folder)
        self._about = msgspec.json.decode((folder / "environment.json").read_bytes())
        self._config = (folder / "config.yaml").read_text()
        left_out = (CHECKSUMS, _JOURNAL, ".lock")
        paths = [path for path in folder.rglob("*") if path.is_file() and path.name not in left_out]
        self._files = {path.relative_to(folder).as_posix(): path for path in paths}
        written = (_CALLS, STATUS, "processes.jsonl")
        self._contents = {name: path.read_bytes() for name, path in self._files.items() if name not in written}
        journals.mkdir(parents=True)
        self._journals = [journals / f"{number}.jsonl" for number in range(_JOURNALS)]
        self._scores = [_write_journal(self._run, path, number) for number, path in enumerate(self._journals)]

    def write_run(self, results: Path, variation: _Variation) -> None:
        """Write one run."""
        texts = {name: text.encode() for name, text in self._change_settings(variation).items()}
        run, digest = self._run, msgspec.json.decode(texts["identity.json"])["digest"]
        folder = results / f"{run.task}-{run.method}-{run.backbone}-{run.mode}" / digest[:12] / f"seed{variation.seed}"
        folder.mkdir(parents=True)
        checksums = Checksums(folder, DiskGuard())
        checksums.add({**self._contents, **texts})
        checksums.close()
        for name, text in texts.items():
            (folder / name).write_bytes(text)
        for name in self._files.keys() - texts.keys():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.link(self._files[name], folder / name)
        os.link(self._journals[variation.journal], folder / _JOURNAL)

    def _change_settings(self, variation: _Variation) -> dict[str, str]:
        """Return the files that hold settings or scores."""
        mode = {**self._run.identity["mode"], "epochs": variation.epochs}
        settings = {**self._run.identity, "mode": mode, "limit": variation.limit}
        identity = RunIdentity(settings=settings, contents=self._run.contents)
        identifiers = {"seed": variation.seed, "digest": identity.digest}
        config = re.sub(r"(?m)^seed: .*", f"seed: {variation.seed}", self._config)
        config = re.sub(r"(?m)^limit: .*", f"limit: {variation.limit}", config)
        metrics = _with_score(self._run.metrics, self._scores[variation.journal])
        return {
            "config.yaml": re.sub(r"(?m)^  epochs: .*", f"  epochs: {variation.epochs}", config),
            "identity.json": format_json(identity.dump()),
            "environment.json": format_json({**self._about, **identifiers}),
            "metrics.json": format_json({**metrics, **identifiers}),
        }


def _write_journal(run: RunSummary, path: Path, number: int) -> float:
    """Write the journal of a run with grades drawn from its own; return the score in percent."""
    stage, context = ("adapt", None) if run.mode == "online" else ("evaluate", run.metrics["context"]["digest"])
    lines = [msgspec.json.decode(line) for line in (run.folder / _JOURNAL).read_bytes().splitlines()]
    tested = [
        line
        for line in lines
        if line["kind"] == "rollout"
        and (line["stage"], line["split"], line["trial"]) == (stage, run.metrics["headline"]["split"], 0)
        and context in (None, line["context"])
    ]
    grades, draw = [line["grade"] for line in tested], random.Random(number)
    for line in tested:
        line["grade"] = draw.choice(grades)
    log = AppendLog(read_lines(path, msgspec.json.decode))
    for line in lines:
        log.append({name: value for name, value in line.items() if name not in SEAL})
    log.close()
    return 100 * fmean({line["sample"]: line["grade"]["score"] for line in reversed(tested)}.values())


def _with_score(metrics: Record, score: float) -> dict[str, Any]:
    headline, splits = metrics["headline"], metrics["splits"]
    split = headline["split"]
    after = {**splits[split]["after"], headline["metric"]: score}
    return {
        **metrics,
        "headline": {**headline, "after": score},
        "splits": {**splits, split: {**splits[split], "after": after}},
    }
