"""Run folders as pandas data frames, for notebooks (extra ``analysis``)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ace_bench.core.encoding import decoder_of
from ace_bench.core.errors import StoreError
from ace_bench.core.resources import require
from ace_bench.report.differences import Differences, differences
from ace_bench.report.records import find_runs
from ace_bench.store.calls import Request, restore_calls, stored_calls
from ace_bench.store.journal import parse_journal
from ace_bench.store.lines import SEAL, read_lines

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Frames:
    """One row per rollout, adaptation step and call. Nested values are flattened with dots (``grade.score``)."""

    rollouts: pd.DataFrame
    steps: pd.DataFrame
    calls: pd.DataFrame


def load_frames(runs: str | Path | Sequence[str | Path], *, prompts: bool = False) -> Frames:
    """Load one run folder, or all runs below one or several folders. Runs may still be under way.

    The frames of several runs also have a column ``run``, the name of the run by the settings in which it differs from
    the others, and one column for each of these settings, by its last part or path. With ``prompts`` the frame of the
    calls also has ``messages`` (a list of role and content), ``schema`` and ``settings``: exactly what was sent. This
    needs much memory for long runs. ``read_calls`` yields calls one by one. It takes no lock and changes nothing.
    Damaged lines and run folders are left out with a warning. Raises ``StoreError`` if there is no run.
    """
    require("load_frames", "pandas")
    problems: list[str] = []
    roots = [Path(runs)] if isinstance(runs, str | Path) else [*map(Path, runs)]
    try:
        if isinstance(runs, str | Path) and (roots[0] / "journal.jsonl").exists():
            return _frames(roots[0], problems, prompts=prompts)
        return _frames_of_all(roots, problems, prompts=prompts)
    finally:
        for problem in problems:
            warnings.warn(f"{problem}: left out", stacklevel=2)


def _frames_of_all(roots: Sequence[Path], problems: list[str], *, prompts: bool) -> Frames:
    found_runs = find_runs(*roots)
    runs = found_runs.runs
    problems += [damaged.reason for damaged in found_runs.damaged]
    if not runs:
        raise StoreError(
            f"there is no run folder (with a journal.jsonl) in {', '.join(map(str, roots)) or 'an empty list'}; give "
            "the folder that a run printed, or one above several"
        )
    differ = differences(runs)
    loaded = [_frames(run.folder, problems, prompts=prompts) for run in runs]
    return Frames(
        rollouts=_join_frames([frames.rollouts for frames in loaded], differ),
        steps=_join_frames([frames.steps for frames in loaded], differ),
        calls=_join_frames([frames.calls for frames in loaded], differ),
    )


def _join_frames(frames: Sequence[pd.DataFrame], differ: Differences) -> pd.DataFrame:
    """Put the frames of runs below each other, with what differs between the runs in front."""
    import pandas as pd

    for index, frame in enumerate(frames):
        settings = {name if name not in frame else path: path for path, name in differ.names.items()}
        for name, path in reversed(settings.items()):
            frame.insert(0, name, [differ.values[index].get(path)] * len(frame))
        frame.insert(0, "run", differ.labels[index])
    return pd.concat([frame for frame in frames if len(frame)] or list(frames[:1]), ignore_index=True)


def _frames(root: Path, problems: list[str], *, prompts: bool) -> Frames:
    """Load one run. Damaged lines are added to ``problems``."""
    import pandas as pd

    journal, calls = read_lines(root / "journal.jsonl", parse_journal), stored_calls(root)
    problems += [lines.summary for lines in (journal, calls) if lines.problems]
    rows = [_row(line) for line in journal.lines]
    frame = pd.json_normalize([_row(line) for line in calls.lines], max_level=1)
    if prompts:
        requests = [_request(call.request) for call in restore_calls(calls.entries)]
        for name in ("messages", "schema", "settings"):
            frame[name] = pd.Series([request.get(name) for request in requests], dtype=object)
    return Frames(
        rollouts=pd.json_normalize([row for row in rows if row["kind"] == "rollout"], max_level=1),
        steps=pd.json_normalize([row for row in rows if row["kind"] == "step"], max_level=1),
        calls=frame,
    )


def _request(request: Request | None) -> dict[str, Any]:
    """Return the fields of a request. A damaged line may leave none."""
    return msgspec.json.decode(msgspec.json.encode(request)) or {}


def _row(line: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = decoder_of(dict[str, Any]).decode(line)
    return {name: value for name, value in fields.items() if name not in (*SEAL, "request")}
