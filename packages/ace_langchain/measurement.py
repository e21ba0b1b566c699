"""A LangChain agent's first run against its second, with and without a playbook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from ace_bench.api import open_backbone
from ace_bench.core.errors import ConfigError
from ace_bench.core.measurement import Measurement, MeasurementRequest, Value
from ace_bench.core.replies import takes_tools

if TYPE_CHECKING:
    from ace_langchain.two_runs import RunResult

COLUMNS = ("learner", "run", "score", "calls", "tokens in", "learning calls", "bullets")
_LABELS: Mapping[str, str] = {
    "nothing": "no playbook",
    "heuristic": "heuristic reflector",
    "ace": "ACE's roles, without feedback",
    "ace_gold": "ACE's roles, right calls shown",
}


def two_runs_table(request: MeasurementRequest) -> Measurement:
    """Measure with each seed; figures are means over them."""
    try:
        from ace_langchain.two_runs import LEARNERS
    except ImportError as error:
        raise ConfigError(str(error)) from error
    by_seed = [_results(request, seed) for seed in request.seeds]
    rows: list[tuple[Value, ...]] = []
    for learner in LEARNERS:
        for number in (0, 1):
            results = [runs[learner][number] for _, runs in by_seed]
            rows.append((_LABELS[learner], str(number + 1), *_means(results)))
    return Measurement(columns=COLUMNS, rows=tuple(rows), simulated=any(simulated for simulated, _ in by_seed))


def _results(request: MeasurementRequest, seed: int) -> tuple[bool, Mapping[str, tuple[RunResult, RunResult]]]:
    """Return whether the backbone is simulated, and both runs of each learner."""
    from ace_langchain import CountedModels
    from ace_langchain.two_runs import LEARNERS, two_runs

    opened = open_backbone(request.backbone, folder=request.folder, settings=request.settings, seed=seed)
    with opened as backbone:
        if not takes_tools(backbone):
            raise ConfigError(f"{backbone.name} takes no tools: choose an OpenAI-compatible backbone, vLLM or embedded")
        runs = {str(learner): two_runs(CountedModels(backbone=backbone), learner) for learner in LEARNERS}
        return backbone.simulated, runs


def _means(results: Sequence[RunResult]) -> tuple[Value, ...]:
    tokens = [result.prompt_tokens for result in results]
    known = [count for count in tokens if count is not None]
    return (
        100 * fmean(result.score for result in results),
        fmean(result.calls for result in results),
        fmean(known) if len(known) == len(tokens) else None,
        fmean(result.learning_calls for result in results),
        fmean(result.bullets for result in results),
    )
