"""Makes the runs of a sweep that its plan has left: Hydra's own sweeper would make all combinations of its values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import Override

_NODE = {
    "_target_": "hydra_plugins.ace_bench.planned_sweeper.PlannedBasicSweeper",
    "max_batch_size": None,
    "params": None,
    "plan": "???",
}
ConfigStore.instance().store(group="hydra/sweeper", name="planned", node=_NODE, provider="ace_bench")


class PlannedBasicSweeper(BasicSweeper):
    """``plan`` is a JSON file with the overrides of each run."""

    def __init__(self, *, max_batch_size: int | None, params: Mapping[str, str] | None, plan: str) -> None:
        super().__init__(max_batch_size, dict(params or {}))
        self._plan = plan

    def split_arguments(  # type: ignore[override]  # Hydra calls it on the object
        self, overrides: list[Override], max_batch_size: int | None
    ) -> list[list[list[str]]]:
        """Return the overrides of each run, in batches."""
        del overrides
        planned = msgspec.json.decode(Path(self._plan).read_bytes(), type=list[list[str]])
        return [*self.split_overrides_to_chunks(planned, max_batch_size)]
