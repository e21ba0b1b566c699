"""The document's A/B table as an experiment: ``reproduce experiment=seed_004``."""

from __future__ import annotations

from ace_bench.contexts.playbook.embed import make_embedder
from ace_bench.core.measurement import Measurement, MeasurementRequest, Value
from ace_retrieval.labels import SHIPPED, by_wording, labelled, read_labels, read_playbook
from ace_retrieval.measuring import Measured, Trial, ways

COLUMNS = ("wording", "row", "configuration", "R@1", "R@5", "P@3", "p50 ms", "p95 ms")
_EMBEDDER = "embedder="


def ab_table(request: MeasurementRequest) -> Measurement:
    """Measure the report half of the set that ships; of the settings, ``embedder=`` counts.

    Marked as simulated, because queries and labels are the project's own.
    """
    chosen = [one.removeprefix(_EMBEDDER) for one in request.settings if one.startswith(_EMBEDDER)]
    playbook = read_playbook(SHIPPED.playbook)
    labels = read_labels(SHIPPED.labels, playbook, half="report")
    timing = Trial(
        playbook=playbook,
        queries=by_wording(labels),
        relevant=labelled(labels),
        embedder=make_embedder(chosen[-1] if chosen else "hashing"),
    )
    measured = [one for way in ways(cross_encoder=False) for one in timing.of(way)]
    rows = tuple(_row(one) for wording in timing.queries for one in measured if one.wording == wording)
    return Measurement(columns=COLUMNS, rows=rows, simulated=True)


def _row(one: Measured) -> tuple[Value, ...]:
    shares = (round(100 * share, 1) for share in (one.recall_1, one.recall_5, one.precision_3))
    return one.wording, one.row, one.way, *shares, one.p50_ms, one.p95_ms
