"""What a list says of a run: the terminal and the page have the same columns, with the same words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

import msgspec

from ace_bench.core.backbones import backbone_name
from ace_bench.core.encoding import digest_of
from ace_bench.core.types import Record
from ace_bench.report.records import RunSummary
from ace_bench.store.processes import FILE

COLUMNS = ("task", "method", "model", "mode", "labels", "seed", "score", "n", "gain", "cost", "tokens", "date")
NOTES = ("tags", "note")
"""Columns that stand in a list only where a run has a tag or a note."""
_SAMPLED = 8
"""Characters of a digest, enough to distinguish sets of samples."""
BASE, FINISHED = "base", "finished"
_BEFORE = "its own score before"
_ALIKE = ("prompts", "agent")
"""Settings that a run shares with the base that it is compared with, beside task, model and data."""


class _Began(msgspec.Struct):
    at: datetime


_BEGAN = msgspec.json.Decoder(_Began)


@dataclass(frozen=True, kw_only=True)
class ListedGain:
    """How many percentage points a run scored more than ``over``, on the same samples."""

    points: float
    over: str


def model_name(run: RunSummary) -> str:
    """Return what a list calls the model of a run."""
    return backbone_name(run.backbone, run.model)


def began(folder: Path) -> float:
    """Return when the first process of a run began, as a Unix time.

    Runs of older versions do not record it. The last change of their settings stands in for it.
    """
    try:
        with (folder / FILE).open("rb") as file:
            at = _BEGAN.decode(file.readline()).at
    except (OSError, ValueError, UnicodeDecodeError):
        try:
            return (folder / "identity.json").stat().st_mtime
        except OSError:
            return 0.0
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def tested_on(run: RunSummary) -> str:
    """Return a digest of the samples that a finished run was tested on, judging by its settings."""
    limit, headline = run.identity.get("limit"), run.metrics["headline"]
    if isinstance(limit, Mapping):  # the samples to learn from may differ
        limit = limit.get(headline["split"])
    return digest_of([run.contents.get("data"), limit, headline["n"]])[:_SAMPLED]


def gains(runs: Iterable[RunSummary]) -> Mapping[Path, ListedGain]:
    """Return the gain of each finished run, by folder.

    A run that tested its samples before it adapted is compared with itself. Others are compared with the mean of the
    runs of ``method=base`` that were asked the same. Where there is neither, a run has no gain.
    """
    scored = [run for run in runs if run.finished]
    keys = {run.folder: asked(run) for run in scored}
    bases: defaultdict[str, list[float]] = defaultdict(list)
    for run in scored:
        if run.method == BASE:
            bases[keys[run.folder]].append(run.metrics["headline"]["after"])
    found: dict[Path, ListedGain] = {}
    for run in scored:
        after, before = (run.metrics["headline"].get(name) for name in ("after", "before"))
        base = bases.get(keys[run.folder], [])
        if run.method == BASE:
            continue
        if before is not None:
            found[run.folder] = ListedGain(points=after - before, over=_BEFORE)
        elif base:
            seeds = "" if len(base) == 1 else f", mean of {len(base)} runs"
            found[run.folder] = ListedGain(points=after - fmean(base), over=f"method=base on the same samples{seeds}")
    return found


def asked(run: RunSummary) -> str:
    """Return a digest of what a finished run was asked, of which model: runs with the same one can be compared."""
    headline, settings = run.metrics["headline"], run.identity
    model = {name: value for name, value in settings.get("backbone", {}).items() if name != "seed"}
    about = [run.task, run.protocol, run.source, run.simulated, model_name(run), model]
    return digest_of([*about, *map(settings.get, _ALIKE), tested_on(run), headline["split"], headline["metric"]])


def cell_texts(row: Record) -> Sequence[str]:
    """Return the cells of a row in the order of ``COLUMNS`` and ``NOTES``.

    ``row`` is a line of ``ace-bench ls --json``.
    """
    words = {name: "-" if row[name] is None else str(row[name]) for name in ("method", "mode", "labels", "seed")}
    others = (f"{number:,} calls by {name}" for name, number in (row["other_models"] or {}).items())
    marks = ", ".join(["simulated"] * bool(row["simulated"]) + [*others])
    model = backbone_name(row["backbone"], row["model"]) if row["backbone"] else "-"
    return [
        (row["task"] or "-") + " (sample data)" * (row["source"] == "sample"),
        words["method"],
        model + f" ({marks})" * bool(marks),
        words["mode"],
        words["labels"],
        words["seed"],
        _score_text(row),
        "" if row["n"] is None else str(row["n"]),
        "" if row["method"] == BASE or row["score"] is None else _or_unknown(row["gain"], "{:+.2f}"),
        _or_unknown(row["usd"], "${:,.2f}"),
        _or_unknown(row["tokens"], "{:,.0f}"),
        row["date"][:16].replace("T", " ") if row["date"] else "n/a",
        ",".join(row["tags"] or ()),
        row["note"] or "",
    ]


def _score_text(row: Record) -> str:
    """Return the score with its interval, or how a run ended that has none, with its score so far."""
    if row["score"] is not None:
        interval = " [{:.1f}, {:.1f}]".format(*row["interval"]) if row["interval"] else ""
        ended = "" if row["state"] == FINISHED else f", {row['state']}"
        return f"{row['score']:.2f}{interval}{ended}"
    progress = f", {row['stage']} {row['done']} of {row['total'] or 'unknown'}" if row["done"] else ""
    latest = "" if row["score_so_far"] is None else f", {row['score_so_far']:.2f} so far"
    return f"{row['state']}{progress}{latest}"


def _or_unknown(value: float | None, form: str) -> str:
    return "n/a" if value is None else form.format(value)


def utc_text(seconds: float) -> str:
    """Write a Unix time as in ``2026-11-27T10:30:55Z``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
