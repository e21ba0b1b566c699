"""Run folders as pandas data frames, for notebooks (extra ``analysis``)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ace_bench.core.errors import StoreError
from ace_bench.core.typed import decoder_of
from ace_bench.store.calls import restored, stored_calls
from ace_bench.store.journal import parse_journal
from ace_bench.store.lines import SEAL, read_lines
from ace_bench.store.requests import Request

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Frames:
    """One row per rollout, adaptation step and call; nested values are flattened with dots (``grade.score``)."""

    rollouts: pd.DataFrame
    steps: pd.DataFrame
    calls: pd.DataFrame


def load_frames(folder: str | Path, *, prompts: bool = False) -> Frames:
    """Load a run folder, also of an active run; takes no lock and changes nothing.

    With ``prompts`` the frame of the calls also has ``messages`` (a list of role and content), ``schema`` and
    ``settings``: exactly what was sent. This needs much memory for long runs; ``read_calls`` yields calls one by
    one. Damaged lines are left out with a warning. Raises ``StoreError``.
    """
    import pandas as pd

    root = Path(folder)
    if not (root / "journal.jsonl").exists():
        raise StoreError(f"{root} is not a run folder (no journal.jsonl); give the folder that the run printed")
    journal = read_lines(root / "journal.jsonl", parse_journal)
    calls = stored_calls(root)
    for found in (journal, calls):
        if found.problems:
            warnings.warn(f"{found.summary}: left out", stacklevel=2)
    rows = [_row(line) for line in journal.lines]
    flat = {kind: [row for row in rows if row["kind"] == kind] for kind in ("rollout", "step")}
    frame = pd.json_normalize([_row(line) for line in calls.lines], max_level=1)
    if prompts:
        requests = [_request(call.request) for call in restored(calls.entries)]
        for name in ("messages", "schema", "settings"):
            frame[name] = pd.Series([request.get(name) for request in requests], dtype=object)
    return Frames(
        rollouts=pd.json_normalize(flat["rollout"], max_level=1),
        steps=pd.json_normalize(flat["step"], max_level=1),
        calls=frame,
    )


def _request(request: Request | None) -> dict[str, Any]:
    fields: dict[str, Any] = {} if request is None else msgspec.json.decode(msgspec.json.encode(request))
    return fields


def _row(line: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = decoder_of(dict[str, Any]).decode(line)
    return {name: value for name, value in fields.items() if name not in (*SEAL, "request")}
