"""TensorBoard: curves and final figures as event files in the run folder.

``tensorboardX`` writes them in a background thread, without TensorBoard itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ace_bench.contrib.trackers.points import EVERY_S, Points, flatten
from ace_bench.core.resources import require
from ace_bench.core.types import Record
from ace_bench.runners.progress import Progress

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter

FOLDER = "tensorboard"
"""In the run folder. A continued run has several event files, which TensorBoard joins."""

_FINAL = ("headline", "splits")

_log = logging.getLogger(__name__)


class TensorBoard:
    """A tracker. The steps of its curves are numbers of calls.

    Raises ``ConfigError`` if tensorboardX is not installed.
    """

    def __init__(self) -> None:
        require("tracker=tensorboard", "tensorboardX", otherwise="tracker=none")
        self._points = Points(EVERY_S)
        self._calls = 0

    def begin(self, folder: Path, about: Record, config: str) -> None:
        """Open an event file and write the run's digest and configuration to it."""
        from tensorboardX import SummaryWriter

        self._writer: SummaryWriter = SummaryWriter(str(folder / FOLDER))
        self._writer.add_text("digest", str(about["digest"]))
        self._writer.add_text("config", f"```yaml\n{config}\n```")

    def update(self, progress: Progress) -> None:
        """Add a point if one is due."""
        point = self._points.take(progress)
        if point is not None:
            self._calls = progress.spent.calls
            self._add(point)

    def finish(self, metrics: Record) -> None:
        """Add the final scores."""
        self._add({f"final/{name}": value for part in _FINAL for name, value in flatten(metrics[part], part)})

    def close(self) -> None:
        """Write pending events."""
        with _warning():
            self._writer.close()

    def _add(self, figures: Mapping[str, float]) -> None:
        with _warning():
            for name, value in figures.items():
                self._writer.add_scalar(name, value, self._calls)


@contextmanager
def _warning() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _log.warning("TensorBoard's events cannot be written: %s", error)
