"""Weights & Biases: live progress, final figures, and the tested context as an artifact.

The service's client runs in a separate process (``wandb_worker``) behind a queue, so that a slow or broken service
neither stops nor delays a run. This module chooses what leaves the machine: progress, metrics, the settings named in
``_SETTINGS`` and the context; no prompts, samples, answers, paths or keys.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ace_bench.contrib.trackers.points import EVERY_S, Points
from ace_bench.core.resources import require
from ace_bench.core.settings import Text
from ace_bench.core.types import Record
from ace_bench.runners.progress import Progress

Mode = Literal["online", "offline"]
WORKER = "ace_bench.contrib.trackers.wandb_worker"

_SETTINGS = ("task", "method", "mode", "labels", "limit", "seed", "concurrency")
_KINDS = ("simulated", "source", "digest")
_PLACES = ("data_dir", "initial", "context")
_MODEL = ("name", "model", "sampling")
_PATIENCE_S = 30.0
"""The most seconds that the end of a run waits for the service."""
_WAITING = 1000
"""The maximum number of queued messages for a slow service; further progress is dropped."""

_log = logging.getLogger(__name__)


class Wandb:
    """A tracker. ``project``, ``entity`` and ``mode`` are
    wandb's own settings; its key comes from ``WANDB_API_KEY`` or ``wandb login``. Raises ``ConfigError`` if wandb is
    not installed.
    """

    def __init__(self, *, project: Text, entity: Text | None, mode: Mode) -> None:
        require("tracker=wandb", "wandb", otherwise="tracker=none")
        self._service = {"project": project, "entity": entity, "mode": mode}
        self._points = Points(EVERY_S)
        self._waiting: queue.Queue[Record | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._send, name="wandb", daemon=True)
        self._process: subprocess.Popen[str] | None = None

    def begin(self, folder: Path, about: Record, config: str) -> None:
        """Start or continue the tracker's run for a run folder, which holds its id."""
        self._folder = folder
        name = "-".join(str(about[key]) for key in ("task", "method", "backbone", "mode", "labels"))
        self._waiting.put(
            {
                **self._service,
                "id": _id(folder),
                "dir": str(folder),
                "name": f"{name}-seed{about['seed']}",
                "group": about["digest"][:12],
                "config": _describe_settings(msgspec.yaml.decode(config)) | {key: about[key] for key in _KINDS},
            }
        )
        self._thread.start()

    def update(self, progress: Progress) -> None:
        """Send a point if one is due."""
        point = self._points.take(progress)
        if point is None:
            return
        try:
            self._waiting.put_nowait({"log": point})
        except queue.Full:
            _log.debug("wandb is slow; a point is left out")

    def finish(self, metrics: Record) -> None:
        """Send the final figures and the tested context."""
        self._enqueue({"finish": metrics, "context": str(self._folder / "contexts")})

    def close(self) -> None:
        """Wait for the service, but not for long, then end its client."""
        self._enqueue(None)
        deadline = time.monotonic() + _PATIENCE_S
        self._thread.join(_PATIENCE_S)
        if self._process is None:
            return
        try:
            status = self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            _log.warning("wandb did not take everything within %.0f s; what it has is in %s", _PATIENCE_S, self._dir)
        else:
            if status:
                _log.warning("wandb failed; the run is not affected; see %s/worker.log for the reason", self._dir)
        self._thread.join()

    @property
    def _dir(self) -> Path:
        return self._folder / "wandb"

    def _enqueue(self, message: Record | None) -> None:
        try:
            self._waiting.put(message, timeout=_PATIENCE_S)
        except queue.Full:
            _log.warning("wandb takes no more messages; the rest of this run is not sent")

    def _send(self) -> None:
        """Write messages to the worker; runs in a thread that ends with the worker."""
        self._dir.mkdir(exist_ok=True)
        with (self._dir / "worker.log").open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", WORKER],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                # The run folder also keeps files that wait to be sent.
                env={"WANDB_DATA_DIR": str(self._dir.resolve()), **os.environ},
                start_new_session=True,  # Ctrl-C must reach only the run, which then closes its tracker
            )
        assert self._process.stdin is not None
        try:
            with self._process.stdin as worker:
                for message in iter(self._waiting.get, None):
                    worker.write(json.dumps(message) + "\n")
                    worker.flush()
        except OSError as error:
            _log.debug("the wandb worker has gone: %s", error)


def _id(folder: Path) -> str:
    """Return the id of the folder's tracker run, the same after a kill."""
    file = folder / "wandb" / "id"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(uuid.uuid4().hex[:16])
    return file.read_text()


def _describe_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that describe the run, without paths and addresses."""
    described: dict[str, Any] = {}
    for name in _SETTINGS:
        value = settings[name]
        if isinstance(value, Mapping):
            value = {key: part for key, part in value.items() if key not in _PLACES}
        described[name] = value
    backbones = {"generator": settings["backbone"], **(settings.get("roles") or {})}
    described["backbones"] = {
        role: {key: backbone[key] for key in _MODEL if key in backbone} for role, backbone in backbones.items()
    }
    return described
