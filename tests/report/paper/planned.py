"""Run folders of planned runs with scores of one's choice, as real ones would lie there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from omegaconf import OmegaConf

from ace_bench.core.identity import RunIdentity, identity_settings
from ace_bench.report.planned import Compose, PlannedRun

METRICS = {"appworld": "tgc", "finer": "accuracy", "formula": "accuracy", "ddxplus": "accuracy", "bird_sql": "judge"}
CONTEXT = "c0ffee"


class Planner:
    """Writes finished runs of plans to ``results``."""

    def __init__(self, results: Path, compose: Compose, *, simulated: bool = False, source: str = "real") -> None:
        self.results = results
        self._compose = compose
        self._kind = {"simulated": simulated, "source": source}

    def folder(self, planned: PlannedRun, extra: Sequence[str], seed: int) -> Path:
        chosen = dict(override.split("=", 1) for override in (*planned.overrides, *extra))
        name = "-".join(chosen[key] for key in ("task", "method", "backbone", "mode"))
        digest = hashlib.sha256(repr((planned, extra, self._kind)).encode()).hexdigest()[:12]
        return self.results / "paper" / name / digest / f"seed{seed}"

    def make(
        self,
        planned: PlannedRun,
        scores: Sequence[float],
        *,
        extra: Sequence[str] = ("backbone=embedded",),
        seed: int = 0,
        sizes: Sequence[int] = (),
        faults: int = 0,
    ) -> Path:
        """Make one run, its ``scores`` those of its test samples, its ``sizes`` the context's by step."""
        folder = self.folder(planned, extra, seed)
        files = [
            f"{need.setting}={self.folder(need.run, extra, seed)}/contexts/{need.context}.json"
            for need in planned.needs
        ]
        config = dict(self._compose([*planned.overrides, *extra, *files])) | {"seed": seed}
        chosen = dict(override.split("=", 1) for override in (*planned.overrides, *extra))
        about = {key: chosen[key] for key in ("task", "method", "backbone", "mode")} | self._kind
        about |= {"labels": config["labels"], "seed": seed, "digest": folder.parent.name}
        online = chosen["mode"] == "online" and bool(sizes)
        lines = [_step(place, size) for place, size in enumerate(sizes)]
        lines += [_rollout(chosen["task"], place, score, online=online) for place, score in enumerate(scores)]
        (folder / "contexts").mkdir(parents=True)
        for context in ("tested", "before_fall", "after_fall"):
            (folder / "contexts" / f"{context}.json").write_text(f"{context} of {folder}")
        identity = RunIdentity(settings=identity_settings(config), contents={"source": self._kind["source"]})
        (folder / "identity.json").write_text(json.dumps(identity.dump()))
        (folder / "config.yaml").write_text(OmegaConf.to_yaml(OmegaConf.create(config)))
        (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        calls = [_call(stage, chosen["task"], place) for stage in ("adapt", "evaluate") for place in range(len(scores))]
        (folder / "calls.jsonl").write_text("".join(json.dumps(call) + "\n" for call in calls))
        metrics = about | _metrics(METRICS[chosen["task"]], scores, steps=len(sizes), faults=faults)
        (folder / "metrics.json").write_text(json.dumps(metrics))
        return folder


def _rollout(task: str, place: int, score: float, *, online: bool) -> Mapping[str, object]:
    return {
        "kind": "rollout",
        "stage": "adapt" if online else "evaluate",
        "split": "test",
        "sample": f"{task}-test-{place}",
        "context": CONTEXT,
        "trial": 0,
        "grade": {
            "score": score,
            "correct": score == 1,
            "group": f"scenario {place // 3}" if task == "appworld" else "",
            "detail": {"judge": score, ("simple", "moderate", "challenging")[place % 3]: 1.0},
        },
    }


def _step(index: int, size: int) -> Mapping[str, object]:
    return {"kind": "step", "index": index, "digest": str(index), "context_tokens": size}


def _call(stage: str, task: str, place: int) -> Mapping[str, object]:
    usage = {"prompt": 1000, "completion": 100, "cached": 10 * min(place, 90), "usd": 0.01}
    session = f"{task}-{'train' if stage == 'adapt' else 'test'}-{place}"
    return {"stage": stage, "role": "generator", "session": session, "usage": usage, "replayed": False}


def _metrics(metric: str, scores: Sequence[float], *, steps: int, faults: int) -> dict[str, object]:
    n = len(scores)
    after = 100 * sum(scores) / n
    groups = [scores[start : start + 3] for start in range(0, n, 3)]
    levels = {
        f"judge_{level}": 100 * sum(scores[place::3]) / len(scores[place::3])
        for place, level in enumerate(("simple", "moderate", "challenging"))
        if scores[place::3]
    }
    sgc = 100 * sum(all(score == 1 for score in group) for group in groups) / len(groups)
    stages = {stage: {"in": 1000 * n, "out": 100 * n} for stage in ("adapt", "evaluate")}
    return {
        "headline": {"split": "test", "metric": metric, "before": None, "after": after, "n": n, "ci95": None},
        "splits": {"test": {"before": None, "after": {"n": n, "faults": faults, metric: after, "sgc": sgc, **levels}}},
        "context": {"digest": CONTEXT, "tokens": 0, "kind": "playbook", "items": 0},
        "steps": steps,
        "rollouts": {"adapt": n, "evaluate": n},
        "faults": {"adapt": {}, "evaluate": {"generator/model/parse": faults}},
        "calls": {stage: {"generator": n} for stage in stages},
        "tokens": stages | {"total": {"in": 2000 * n, "out": 200 * n}},
        "replayed": dict.fromkeys(stages, 0),
        "dropped_items": dict.fromkeys(stages, 0),
        "usd": {"adapt": 0.01 * n, "evaluate": 0.01 * n, "total": 0.02 * n},
        "cache": {stage: {"share": 0.5, "cached_tokens": 1000 * n} for stage in (*stages, "total")},
        "timing": {stage: {"wall_s": 12.5, "wall_without_waiting_s": 12.5, "model_s": 35.0} for stage in stages},
        "roles": {"generator": "embedded"},
    }
