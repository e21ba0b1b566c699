"""A machine of ``bubblewrap.py`` for Harbor tasks, with the interface of Harbor's environments."""

from __future__ import annotations

from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

from ace_environments.bubblewrap import Machine, reason_against


class BubblewrapEnvironment(BaseEnvironment):  # type: ignore[misc]
    """Runs commands in folders of the attempt, confined by bubblewrap."""

    @staticmethod
    def type() -> str:
        """The name in Harbor's records."""
        return "bubblewrap"

    @classmethod
    def preflight(cls) -> None:
        """Raise ``SystemExit``, as Harbor's own do, where a command cannot be confined."""
        if reason := reason_against():
            raise SystemExit(reason)

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """There is never a network."""
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self) -> None:
        self._machine = Machine(self.environment_dir)

    async def start(self, force_build: bool) -> None:
        """Make the folders, and do what the Dockerfile says."""
        self._machine.make(self.task_env_config.workdir)

    async def stop(self, delete: bool) -> None:
        """Remove the folders."""
        self._machine.remove()

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a command; raises ``TimeoutError``. There is one user, and all that a command starts ends with it."""
        printed, errors, status = await self._machine.run(
            command,
            folder=cwd,
            variables=self._merge_env(env) or {},
            memory=self.task_env_config.memory_mb or 2048,
            seconds=timeout_sec,
        )
        return ExecResult(stdout=printed, stderr=errors, return_code=status)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copy a file to the machine."""
        self._machine.copy_in(Path(source_path), target_path)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copy a folder's files to the machine."""
        self._machine.copy_in(Path(source_dir), target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copy a file from the machine."""
        self._machine.copy_out(source_path, Path(target_path))

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copy a folder's files from the machine."""
        self._machine.copy_out(source_dir, Path(target_dir))
