"""What a run says of its own gain and cost: figures on the same samples, and the sentence that a paper may print."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np

from ace_bench.core.backbones import GENERATOR
from ace_bench.core.statistics import blocks, clusters, paired_difference
from ace_bench.core.types import NO_USAGE, Record, Usage
from ace_bench.store.calls import CallRecord
from ace_bench.store.processes import parse_command
from ace_bench.store.results import NOTHING

SMALLEST_P = 0.004
"""The smallest level at which tests were simulated: 5% of a family of 13."""
_SAMPLES = "samples"
_PLAYBOOK = "playbook"
"""The kind of ACE's context."""
_UNKNOWN = Usage(prompt=None, completion=None, cached=None, usd=None)
_DIGITS, _DOLLAR_DIGITS = 4, 8
_ROUNDING = 0.01
"""Largest difference between a change of the metric and the mean change of its scores, in percentage points."""


class Graded(Protocol):
    """What is known of a graded answer; see ``Grade``."""

    @property
    def score(self) -> float: ...  # noqa: D102
    @property
    def group(self) -> str: ...  # noqa: D102


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """A difference between two scores of the same ``n`` samples, in percentage points.

    ``better`` and ``worse`` count the samples whose score differs. ``units`` are what the paired t test takes as
    independent. ``detectable`` is about the smallest difference that it finds with a power of 80%.
    """

    n: int
    before: float
    after: float
    ci95: tuple[float, float]
    p: float
    better: int
    worse: int
    units: str = _SAMPLES
    detectable: float | None = None

    def describe(self, subject: str, score: str, *, marks: Sequence[str] = ()) -> str:
        """Say in one sentence what ``subject`` does to a ``score``. ``marks`` say why the number is not a model's."""
        (low, high), change = self.ci95, self.after - self.before
        verb = "raises" if low > 0 else "lowers" if high < 0 else "is not shown to change"
        amount = f"{score} by {abs(change):.1f} points," if low > 0 or high < 0 else f"{score}: {change:+.1f} points,"
        p = f"p = {self.p:.3f}" if self.p >= SMALLEST_P else f"p < {SMALLEST_P}"
        units = "" if self.units == _SAMPLES else f" in {self.units}"
        evidence = f"95% interval {low:+.1f} to {high:+.1f}, paired t test over {self.n:,} samples{units}, {p}"
        sentence = f"{subject} {verb} {amount} from {self.before:.1f} to {self.after:.1f} ({evidence})."
        if not (low > 0 or high < 0) and self.detectable:
            sentence += f" A test of this size finds {self.detectable:.1f} points in 80% of cases."
        return f"[{', '.join(marks)}] {sentence}" if marks else sentence


def advice_on_gain(metrics: Mapping[str, Any]) -> str | None:
    """Return what to try where a playbook costs more points than it gives, ``None`` elsewhere."""
    gain = metrics.get("gain")
    if gain is None or gain["ci95"][1] >= 0 or metrics["context"]["kind"] != _PLAYBOOK:
        return None
    return (
        "the model answers better without its playbook; of these, try what the run lacks: show only the two bullets "
        "nearest to a question by a sentence model (method.retrieval.mode=embeddings method.retrieval.top_k=2 "
        "method.retrieval.min_score=0.3), or where questions repeat their words the nearest four by these "
        "(method.retrieval.mode=bm25 method.retrieval.top_k=4 method.retrieval.min_score=0), keep only lessons with "
        "which a sample turns right (method.verify=true, where labels show it), or take a stronger Generator "
        "(backbone@roles.generator=NAME)"
    )


def measure_gain(before: Sequence[Graded], after: Sequence[Graded], change: float, *, stream: bool) -> Gain | None:
    """Compare answers with those of the same samples before adaptation, in the same order.

    ``change`` is that of the metric. Consecutive answers of a ``stream`` depend on each other. Returns ``None`` if the
    metric is not the mean of the scores, or for too few samples.
    """
    ours, base = (np.array([[grade.score for grade in grades]], dtype=float) for grades in (after, before))
    if ours.shape != base.shape or not ours.size:
        return None
    gains = (ours - base)[0]
    if abs(100 * float(gains.mean()) - change) > _ROUNDING:
        return None
    groups = clusters(range(len(after)), lambda place: after[place].group)
    name = "blocks of the stream" if stream else _SAMPLES if len(groups) == len(after) else "groups"
    estimate = paired_difference(ours, base, blocks(groups) if stream else groups, paired=True)
    if estimate is None:
        return None
    low, high = estimate.bounds()
    return Gain(
        n=len(after),
        before=_percent(float(base.mean())),
        after=_percent(float(ours.mean())),
        ci95=(_percent(max(-1.0, low)), _percent(min(1.0, high))),
        p=round(estimate.p, 6),
        better=int((gains > 0).sum()),
        worse=int((gains < 0).sum()),
        units=name,
        detectable=None if estimate.detectable is None else _percent(estimate.detectable),
    )


def _percent(share: float) -> float:
    return round(100 * share, _DIGITS)


def query_cost(calls: Iterable[CallRecord], rollouts: Collection[str]) -> Record | None:
    """Return what an answer costs on average over these rollouts, given by key: calls, tokens and dollars.

    Only calls of the generator count, as no other role answers. The size of a reply from the response cache is
    unknown.
    """
    wanted, count, usage = {*rollouts}, 0, NO_USAGE
    for call in calls:
        if call.session in wanted and call.role == GENERATOR and (call.fault is None or not call.fault.unanswered):
            count += 1
            usage += _UNKNOWN if call.completion.replayed else call.completion.usage
    if not wanted or not count:
        return None

    def mean(total: float | None, digits: int = _DIGITS) -> float | None:
        return None if total is None else round(total / len(wanted), digits)

    return {
        "calls": mean(count),
        "in": mean(usage.prompt),
        "out": mean(usage.completion),
        "usd": mean(usage.usd, _DOLLAR_DIGITS),
    }


def describe_cost(metrics: Mapping[str, Any], query: Mapping[str, Any]) -> str:
    """Say what adapting cost, and what an answer costs after it and before."""
    parts = list[str]()
    if metrics["steps"]:
        calls = sum(metrics["calls"]["adapt"].values())
        parts.append(f"adapting {_amount(calls, metrics['tokens']['adapt'], metrics['usd']['adapt'])}")
    for name, words in (("after", "a query"), ("before", "before adaptation")):
        if cost := query.get(name):
            parts.append(f"{words} {_amount(cost['calls'], cost, cost['usd'])}")
    return "; ".join(parts)


def _amount(calls: float, tokens: Mapping[str, float | None], usd: float | None) -> str:
    sizes = (f"{'n/a' if tokens[way] is None else f'{tokens[way]:,.0f}'} tokens {way}" for way in ("in", "out"))
    dollars = "dollars n/a" if usd is None else f"${usd:,.2f}" if usd >= 1 or not usd else f"${usd:.2g}"
    return ", ".join(
        (f"{calls:,.3g} call{'s' * (calls != 1)}" if calls < 1000 else f"{calls:,.0f} calls", *sizes, dollars)
    )


def adapted(metrics: Mapping[str, Any]) -> bool:
    """Whether a run was tested with a context that was learnt, by it or before it."""
    return bool(metrics["context"]["kind"] != "none" and (metrics["steps"] or metrics["context"]["items"]))


def subject_of(metrics: Mapping[str, Any]) -> str:
    """Name what changed between the two scores of a run."""
    return "Trying again" if "trials" in metrics else "Adaptation"


def score_name(metrics: Mapping[str, Any]) -> str:
    """Name the score of a run: ``test accuracy``."""
    return f"{metrics['headline']['split']} {metrics['headline']['metric']}"


def marks_of_number(metrics: Mapping[str, Any]) -> list[str]:
    """Return why a run's numbers say nothing of a model or of a benchmark."""
    return ["simulated"] * bool(metrics["simulated"]) + ["sample data"] * (metrics["source"] == "sample")


def limits_of_one_run(metrics: Mapping[str, Any]) -> str:
    """Say what one run cannot say."""
    if metrics.get("drawn") == NOTHING:
        return "the seed draws nothing here, so other seeds would repeat this run"
    kind = str(metrics["context"]["kind"]).replace("_", " ")
    pronoun = "these" if kind.endswith("s") else "this"
    return (
        f"the spread between seeds is unknown, so this holds for {pronoun} {kind} and not for the method; "
        "runs with other seeds (seed=1,2) give the spread"
    )


def command_of_base(command: str | None) -> str:
    """Return the command that tests the base on the samples of a run, by the run's own command.

    A folder may hold any text in place of the command; only one that this program can have recorded is shown.
    """
    kept = [word for word in parse_command(command) if not word.lstrip("+~").startswith(("method.", "method="))]
    return shlex.join([*kept, "method=base"]) if kept else "the same command with method=base"
