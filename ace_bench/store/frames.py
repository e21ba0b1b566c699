"""Run folders as pandas data frames, for notebooks (extra ``analysis``)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ace_bench.core.errors import StoreError
from ace_bench.core.typed import decoder_of
from ace_bench.store.lines import SEAL, read_lines

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Frames:
    """One row a rollout, a context step and a call; nested values are flattened with dots (``grade.score``)."""

    rollouts: pd.DataFrame
    steps: pd.DataFrame
    calls: pd.DataFrame


def load_frames(folder: str | Path) -> Frames:
    """Load a run folder, running or finished; needs no lock and changes nothing.

    Damaged lines are left out with a warning. Raises ``StoreError``.
    """
    import pandas as pd

    root = Path(folder)
    if not (root / "journal.jsonl").exists():
        raise StoreError(f"{root} is no run folder: it holds no journal.jsonl; give the folder a run printed last")
    journal, calls = (_records(root / name) for name in ("journal.jsonl", "calls.jsonl"))
    flat = {
        kind: pd.json_normalize([line for line in journal if line.get("kind") == kind], max_level=1)
        for kind in ("rollout", "step")
    }
    return Frames(rollouts=flat["rollout"], steps=flat["step"], calls=pd.json_normalize(calls, max_level=1))


def _records(path: Path) -> list[dict[str, Any]]:
    found = read_lines(path, decoder_of(dict[str, Any]).decode)
    if found.problems:
        warnings.warn(f"{found.summary}: left out", stacklevel=3)
    return [{key: value for key, value in record.items() if key not in SEAL} for record in found.entries]
