"""Folders of made-up runs, and what commands print, write and draw of them."""

import io
import json
import random
import re
import shlex
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from ace_bench.cli.main import start
from ace_bench.cli.reproducing import session
from ace_bench.report.experiments import with_needs
from ace_bench.report.figures import own_runs, style, write
from ace_bench.report.narrowing import with_parts
from ace_bench.report.planned import PlannedRun
from ace_bench.runners import planning
from tests.report.page.runs import changed
from tests.report.paper.planned import CONTEXT, Planner
from tests.report.paper.reading import Report, read_reports
from tests.report.paper.test_tables import ACE, BASE, REAL, SHARED, edit_metrics, planned

EMBEDDED = ("backbone=embedded", "task.source=sample")
OF_PAPER = {
    "2/base/finer": 0.3, "2/ace_offline_gt/finer": 0.7, "2/icl/finer": 0.5, "2/base/formula": 0.5,
    "2/ace_offline_gt/formula": 0.8, "1/react/normal_tgc": 0.4, "1/ace_offline_gt/normal_tgc": 0.7,
    "1/ace_offline_gt/challenge_tgc": 0.6, "17/every_5/finer": 0.6, "12/ace/calls": 0.5, "4b/ace/dollars": 0.5,
    "4a/ace/latency": 0.5, "2/ace_online_gt/finer": 0.6, "figure_2/step_60/tokens": 0.3,
    "figure_2/step_60/accuracy": 0.7, "figure_2/step_61/accuracy": 0.3, "12/gepa/calls": 0.5,
}  # fmt: skip
"""Planned runs and the share of right answers."""
CLAIMED = {
    "figure_2/step_60/tokens": 0.6, "figure_2/step_60/accuracy": 0.7, "figure_2/step_61/accuracy": 0.4,
    "1/react/normal_tgc": 0.4, "1/react/challenge_tgc": 0.4, "1/ace_online/normal_tgc": 0.9,
    "1/ace_online/challenge_tgc": 0.6, "1/dc_online/normal_tgc": 0.4, "1/dc_online/challenge_tgc": 0.4,
    "2/base/finer": 0.5, "2/base/formula": 0.5, "10/base/accuracy": 0.5, "11/base/average": 0.3,
}  # fmt: skip
CLAIMED_OVER_SEEDS = {
    "2/ace_offline_gt/finer": 0.8, "2/ace_offline_gt/formula": 0.9, "2/gepa/finer": 0.5, "2/gepa/formula": 0.5,
    "2/icl/finer": 0.78, "2/icl/formula": 0.9, "2/ace_online/finer": 0.7, "2/ace_online/formula": 0.7,
    "10/ace/accuracy": 0.9, "10/gepa/accuracy": 0.5, "21/tokens_10k/finer": 1.0, "21/tokens_100k/finer": 1.0,
    "21/tokens_50k/finer": 0.9, "4a/gepa/rollouts": 0.5, "4a/ace/rollouts": 0.5, "4b/dc/latency": 0.5,
    "4b/ace/latency": 0.5, "11/ace/average": 0.8,
}  # fmt: skip
"""Runs of the claims with one seed and with three; on DDXPlus one of GEPA collapses."""


def make_paper_runs(results):
    """The paper's runs by a real model."""
    planner, rng = Planner(results, SHARED.compose), random.Random(1)
    for ref, share in OF_PAPER.items():
        for seed in (0, 1) if "ace" in ref else (0,):
            sizes = [9_000, 18_282, 122, 122] if "tokens" in ref else [5, 9, 20]
            run = planned(ref)
            if not planner.folder(run, REAL, seed).exists():
                planner.make(run, draw_scores(rng, share), extra=REAL, seed=seed, sizes=sizes, faults=2 * seed)


def make_rehearsed_runs(results):
    """A field that was rehearsed."""
    planner, rng = Planner(results, SHARED.compose, simulated=True, source="sample"), random.Random(2)
    chosen = {"methods": ("icl", "dc"), "tasks": ("finer",), "feedback": ("none", "gold"), "passes": ("stream", "fit")}
    for place, run in enumerate(with_parts(SHARED.experiments, ["field"], chosen).runs("field")):
        planner.make(run, draw_scores(rng, (place % 7) / 8, 10), extra=EMBEDDED, sizes=[1])


def make_own_runs(results):
    """A user's own sweep."""
    planner, rng = Planner(results, SHARED.compose, simulated=True, source="sample"), random.Random(4)
    refiners = ("threshold=0.5", "threshold=0.7", "max_tokens=1000")
    methods = ["base", "ace", *(f"ace method.refiner.{one}" for one in refiners), "ace labels=none"]
    for task, seed in (("finer", 0), ("formula", 0), ("finer", 1)):
        for method in methods:
            run = PlannedRun(overrides=(f"task={task}", *f"method={method}".split(), "mode=offline"))
            planner.make(run, draw_scores(rng, 0.3 + 0.2 * len(method.split()) * ("ace" in method)), seed=seed)
    short = PlannedRun(overrides=("task=finer", "method=ace", "mode=offline", "limit=10"))
    planner.make(short, draw_scores(rng, 0.5, 10), sizes=[1])


def make_claimed_runs(results):
    """Runs behind some of the paper's claims: of its model, of another of its models, and simulated ones."""
    planner, rng = Planner(results, SHARED.compose), random.Random(3)

    def make(ref, share, *, planner=planner, extra=REAL, seed=0, n=36):
        for run in with_needs(planned(ref)):
            if not planner.folder(run, extra, seed).exists():
                right = draw_scores(rng, share, n - 12 * (run.option("task") == "formula"))
                fall = [100, 500, 900, 1300, 90 if (ref, seed) == ("10/gepa/accuracy", 1) else 1200]
                sizes = [] if "method=base" in run.overrides else [18_282, 122] if "figure_2" in ref else fall
                planner.make(run, right, extra=extra, seed=seed, sizes=sizes)

    for ref, share in CLAIMED.items():
        make(ref, share)
    simulated = Planner(results, SHARED.compose, simulated=True, source="sample")
    for seed in (0, 1, 2):
        for ref, share in CLAIMED_OVER_SEEDS.items():
            make(ref, share, seed=seed, n=80 - seed if ref in ("4a/gepa/rollouts", "4b/dc/latency") else 36)
        for row, n in (("gepa", 8), ("ace", 2)):
            make(f"4a/{row}/rollouts", 1.0, planner=simulated, extra=EMBEDDED, seed=seed, n=n)
    for ref in ("8/ace_offline/finer", "8/ace_offline/formula", "8/base/finer", "8/base/formula"):
        make(ref, 0.5, extra=("backbone=gpt_5_1",))
    make("6/ace_offline_gt/normal_tgc", 0.5, extra=("backbone=gpt_5_1",))


def make_mixed_runs(results):
    """Runs of table 2, some of other models or settings than planned, some simulated, damaged or void."""
    real, rng = Planner(results, SHARED.compose), random.Random(5)

    def make(ref, *settings, planner=real, seeds=(0,), extra=REAL, n=20, sizes=(5, 9)):
        """Make runs of a cell; returns the folder of the last one."""
        for seed in seeds:
            right = draw_scores(rng, 0.5, n)
            folder = planner.make(planned(ref), right, extra=(*settings, *extra), seed=seed, sizes=sizes)
        return folder

    make("2/base/finer", sizes=())
    before = make("2/ace_offline_gt/finer", seeds=(0, 1))
    headline = json.loads((before / "metrics.json").read_text())["headline"]
    edit_metrics(before, headline=headline | {"before": 25.0})
    edit_metrics(make("2/icl/formula"), context={"digest": CONTEXT, "tokens": 0, "kind": "demonstrations", "items": 0})
    edit_metrics(make("2/ace_offline/finer"), cut_replies={"adapt": {"generator": 3}, "evaluate": {"generator": 2}})
    edit_metrics(make("4b/ace/dollars"), usd={"adapt": None, "evaluate": None, "total": None})
    other_samples = make("2/ace_online/formula", seeds=(0, 1)) / "journal.jsonl"
    other_samples.write_text(other_samples.read_text().replace("formula-test-3", "formula-test-elsewhere-3"))
    broken = make("2/dc_online/finer") / "journal.jsonl"
    broken.write_text("{broken}\n" + broken.read_text())
    (make("2/dc_online/formula", seeds=(0, 1)) / "metrics.json").write_text("{")
    make("2/ace_offline_gt/formula", "method.max_reflection_rounds=3", seeds=(0, 1))
    make("2/ace_offline_gt/formula", "mode.epochs=1", "method.max_reflection_rounds=3")
    make("2/icl/finer", "limit=20")
    make("2/gepa/finer", "method.keep=1")
    make("2/base/formula", extra=("backbone=gpt_oss_120b",), sizes=())
    simulated = Planner(results, SHARED.compose, simulated=True, source="sample")
    also_real = Planner(results, SHARED.compose, simulated=True)
    make("2/mipro/finer", "method.labeled=3", planner=also_real)
    make("2/base/finer", planner=also_real, extra=("backbone=embedded",), sizes=())
    make("2/base/finer", planner=simulated, extra=EMBEDDED, sizes=())
    make("2/base/finer", planner=simulated, extra=(*EMBEDDED, "limit=1"), n=1, sizes=())
    run = planned("16/gpt_oss_120b/finer")
    embedded = replace(run, overrides=tuple(x for x in run.overrides if not x.startswith("backbone@")))
    simulated.make(embedded, draw_scores(rng, 0.5, 20), extra=EMBEDDED, sizes=[1])


def make_drawn_runs(results):
    """Batches of several sizes, costs of which dollars or tokens are unknown, and a context that falls by a fifth."""
    planner = Planner(results, SHARED.compose)
    for row, seconds, scores in (("code_1", 50, ACE), ("code_16", 5, BASE), ("combee_16", 6, ACE), ("one_2", 9, BASE)):
        run = SHARED.experiments.run("combee", row, "accuracy")
        edit_metrics(planner.make(run, scores, extra=REAL), timing={"adapt": {"wall_s": seconds}})
    free = {"usd": dict.fromkeys(("adapt", "evaluate", "total"))}
    unknown = {"tokens": {"adapt": {"in": None, "out": None}, "total": {"in": 1, "out": 1}}}
    for row, changes in (("every_1", {}), ("every_5", free), ("never", free | unknown)):
        folder = planner.make(planned(f"17/{row}/finer"), ACE, extra=REAL, sizes=[1])
        edit_metrics(folder, **changes)
    changed(folder, "calls.jsonl", lambda line: line.update(usage={"prompt": None, "completion": None, "cached": None}))
    planner.make(planned("figure_2/step_60/tokens"), BASE, extra=REAL, sizes=[9_000, 18_282, 15_000, 15_000])
    planner.make(planned("figure_2/step_60/accuracy"), ACE, extra=REAL)
    planner.make(planned("figure_2/step_61/accuracy"), BASE, extra=REAL)


def draw_scores(rng, share, n=30):
    return [float(rng.random() < share) for _ in range(n)]


MAKERS = {
    "paper": make_paper_runs,
    "rehearsed": make_rehearsed_runs,
    "own": make_own_runs,
    "claimed": make_claimed_runs,
    "mixed": make_mixed_runs,
    "drawn": make_drawn_runs,
}


class Folders(dict):
    """Folders of made-up runs under ``root``, each made when a command first names it."""

    def __init__(self, root):
        super().__init__(root=root)

    def __missing__(self, kind):
        self[kind] = self["root"] / kind
        MAKERS[kind](self[kind])
        return self[kind]


class Commands:
    """Commands on the made-up folders: PAPER, OWN and so on. What a command wrote is kept."""

    def __init__(self, root: Path) -> None:
        self.folders = Folders(root)
        self._made: dict[str, tuple[str, Path, dict[str, Figure]]] = {}

    def printed(self, line: str) -> str:
        """Return what a command prints."""
        return self._call(line)[0]

    def tables(self, line: str) -> dict[str, Report]:
        """Return the tables that ``tables LINE`` makes, by their titles."""
        said, folder, _ = self._call(f"tables {line}")
        written = folder / "tables.md"
        return read_reports(written.read_text() if written.exists() else said)

    def files(self, line: str) -> dict[str, str]:
        """Return the files that ``tables LINE`` writes, by name."""
        return {file.name: file.read_text() for file in self._call(f"tables {line}")[1].iterdir()}

    def figures(self, line: str) -> dict[str, Figure]:
        """Return the figures that ``figures LINE`` draws, by the beginning of their files' names."""
        return self._call(f"figures {line}")[2]

    def _call(self, line: str) -> tuple[str, Path, dict[str, Figure]]:
        if line not in self._made:
            out, drawn = self.folders["root"] / f"out{len(self._made)}", dict[str, Figure]()
            named = re.sub("|".join(map(str.upper, MAKERS)), lambda found: str(self.folders[found[0].lower()]), line)
            command, *words = shlex.split(named)
            with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as said:
                patch.setattr(planning, "Composer", lambda _: SHARED.compose)  # composing again takes most of the time
                patch.setattr(session, "Composer", lambda _: SHARED.compose)
                patch.setattr(style, "which", lambda _: "pdflatex")  # nothing is given to it
                patch.setenv("COLUMNS", "300")
                for module in (own_runs, write):
                    patch.setattr(module, "save", lambda figure, stem, _: drawn.update({stem.name: figure}) or [])
                writes = command != "reproduce" and not {"--rows", "--over"} & {*words}
                start(command, [*words, *(["--out", str(out)] if writes else [])])
            self._made[line] = said.getvalue(), out, drawn
        return self._made[line]
