"""One warm engine for all tests of a worker that can do with it: loading it takes seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from ace_bench.tasks.appworld.engine import EngineSettings
from ace_bench.tasks.appworld.pool import Pool


class LastingPool(Pool):
    """Stays up when a task is closed; secrets lie where the engine's processes might pick them up as they start."""

    def close(self) -> None:
        pass

    def end(self) -> None:
        """End all processes; the next session starts new ones."""
        Pool.close(self)

    def _start(self):
        planted = self._settings.engine.folder / ".env"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PLANTED_API_KEY", "sk-planted")
            planted.write_text("PLANTED_FILE_KEY=sk-planted-file\n")
            try:
                return super()._start()
            finally:
                planted.unlink(missing_ok=True)


_POOLS = pytest.StashKey[dict[Path, LastingPool]]()


@contextmanager
def sharing(config: pytest.Config) -> Iterator[None]:
    """Let tasks made meanwhile share warm engines with all others whose data roots hold the same worlds."""
    with mock.patch("ace_bench.tasks.appworld.task.Pool", _shared(config)):
        yield


def _shared(config: pytest.Config) -> Callable[..., LastingPool]:
    if _POOLS not in config.stash:
        config.stash[_POOLS] = {}
        config.add_cleanup(lambda: [pool.end() for pool in pools.values()])
    pools = config.stash[_POOLS]

    def shared(settings: EngineSettings, *, root: Path, confined: bool) -> LastingPool:
        return pools.setdefault(
            (root / "data" / "tasks").resolve(), LastingPool(settings, root=root, confined=confined)
        )

    return shared
