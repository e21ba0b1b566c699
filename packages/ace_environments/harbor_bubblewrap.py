"""A machine for Harbor tasks without containers: commands run under bubblewrap, with this system's programs.

A command reads this system's ``/usr`` and writes to the attempt's folders. It sees neither the network nor other
processes, and what it starts ends with it. A Dockerfile may set a folder, copy files and set variables; one that runs
commands needs a container.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

_LINKED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_READ = ("alternatives", "group", "ld.so.cache", "localtime", "nsswitch.conf", "passwd")
_NOT_OURS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "proc", "dev")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MIB = 1 << 20
_LARGEST_FILE, _MOST_OUTPUT = 256 * _MIB, 1 * _MIB
_FOLLOWED, _IGNORED = ("COPY", "ENV", "WORKDIR"), ("CMD", "EXPOSE", "FROM", "LABEL", "MAINTAINER", "USER")


class BubblewrapEnvironment(BaseEnvironment):  # type: ignore[misc]
    """Runs commands in folders of the attempt, confined by bubblewrap."""

    @staticmethod
    def type() -> str:
        """The name in Harbor's records."""
        return "bubblewrap"

    @classmethod
    def preflight(cls) -> None:
        """Raise ``SystemExit``, as Harbor's own do, where a command cannot be confined."""
        if missing := [name for name in ("bwrap", "prlimit") if shutil.which(name) is None]:
            raise SystemExit(f"there is no program {missing[0]} (Debian has it in bubblewrap and util-linux)")
        with tempfile.TemporaryDirectory() as root:
            command = [*_confinement_words(Path(root), "/", memory=1024, variables={"PATH": _PATH}), "true"]
            tried = subprocess.run(command, capture_output=True, text=True, check=False)
        if tried.returncode:
            raise SystemExit(f"bwrap cannot confine a command here: {tried.stderr.strip()}")

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """There is never a network."""
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self) -> None:
        self._instructions = list(_instructions(self.environment_dir))

    async def start(self, force_build: bool) -> None:
        """Make the folders, and do what the Dockerfile says."""
        self._root = Path(tempfile.mkdtemp(prefix="ace-machine-"))
        self._workdir, self._variables = "/", {"PATH": _PATH, "HOME": "/root", "LANG": "C.UTF-8"}
        for name in ("app", "root", "tmp", "logs/agent", "logs/verifier", "logs/artifacts"):
            (self._root / name).mkdir(parents=True)
        for verb, words in self._instructions:
            if verb == "WORKDIR":
                self._enter(words[0])
            elif verb == "COPY":
                self._copy_files(words[:-1], words[-1])
            else:
                self._variables |= dict(word.split("=", 1) for word in words)
        self._enter(self.task_env_config.workdir or ("." if self._workdir != "/" else "app"))

    def _enter(self, folder: str) -> None:
        self._workdir = str(PurePosixPath(self._workdir, folder))
        self._place(self._workdir).mkdir(parents=True, exist_ok=True)

    def _copy_files(self, names: Sequence[str], target: str) -> None:
        place = self._place(str(PurePosixPath(self._workdir, target)))
        for name in (str(PurePosixPath("/", name))[1:] for name in names):
            sources = sorted(self.environment_dir.glob(name)) if name else [self.environment_dir]
            if not sources:
                raise FileNotFoundError(f"the Dockerfile copies {name}, which is not in {self.environment_dir}")
            for source in sources:
                named = source.is_file() and (target.endswith(("/", ".")) or place.is_dir())
                _copy(source, place / source.name if named else place, within=self._root)

    async def stop(self, delete: bool) -> None:
        """Remove the folders."""
        if hasattr(self, "_root"):
            shutil.rmtree(self._root, ignore_errors=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a command; raises ``TimeoutError``. There is one user, and all that a command starts ends with it."""
        variables = {**self._variables, **(self._merge_env(env) or {})}
        memory = self.task_env_config.memory_mb or 2048
        confined = _confinement_words(self._root, cwd or self._workdir, memory=memory, variables=variables)
        process = await asyncio.create_subprocess_exec(
            *confined,
            *("bash", "-c", command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            reading = asyncio.gather(_read(process.stdout), _read(process.stderr))
            printed = await asyncio.wait_for(reading, timeout_sec)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            status = await process.wait()
        return ExecResult(stdout=printed[0], stderr=printed[1], return_code=status)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copy a file to the machine."""
        _copy(Path(source_path), self._place(target_path), within=self._root)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copy a folder's files to the machine."""
        await self.upload_file(source_dir, target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copy a file from the machine."""
        _copy(self._place(source_path), Path(target_path), within=Path(target_path).parent)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copy a folder's files from the machine."""
        await self.download_file(source_dir, target_dir)

    def _place(self, path: str) -> Path:
        """Return where a path of the machine lies; raises ``ValueError`` if it is this system's."""
        parts = PurePosixPath("/", path).parts[1:]
        place = self._root.joinpath(*parts)
        if parts[:1] and parts[0] in _NOT_OURS:
            raise ValueError(f"{path} belongs to this system: machine=bubblewrap cannot change it")
        if not place.resolve().is_relative_to(self._root.resolve()):
            raise ValueError(f"{path} leads out of the machine")
        return place


def _confinement_words(root: Path, folder: str, *, memory: int, variables: Mapping[str, str]) -> list[str]:
    """Return the words before a command; ``memory`` limits one process, in MiB."""
    words = ["prlimit", f"--as={memory * _MIB}", f"--fsize={_LARGEST_FILE}", "--core=0", "bwrap"]
    words += ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    words += ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--chdir", folder]
    for path in map(Path, _LINKED):
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    words += [word for name in _READ for word in ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")]
    words += [word for place in sorted(root.iterdir()) for word in ("--bind", str(place), f"/{place.name}")]
    return [*words, *(word for name, value in variables.items() for word in ("--setenv", name, value))]


def _instructions(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield what a task's Dockerfile asks for; raises ``ValueError`` if that needs a container."""
    if folder.resolve().is_relative_to("/usr"):
        raise ValueError("tasks that lie under /usr could be read by commands: move them")
    if (folder / "docker-compose.yaml").exists() or not (folder / "Dockerfile").is_file():
        raise ValueError("machine=bubblewrap needs a Dockerfile, and no docker-compose.yaml: choose machine=docker")
    text = (folder / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    for line in (one.strip() for one in text.splitlines()):
        verb, _, rest = line.partition(" ")
        verb = verb.upper()
        if not line or line.startswith("#") or verb in _IGNORED:
            continue
        words = shlex.split(rest)
        odd = rest.startswith("[") or any(word.startswith("--") or ".." in word for word in words)
        if verb not in _FOLLOWED or odd or (verb == "ENV" and not all("=" in word for word in words)):
            raise ValueError(
                f"its Dockerfile has {line[:60]!r}, which machine=bubblewrap cannot do: choose machine=docker"
            )
        yield verb, words


def _copy(source: Path, target: Path, *, within: Path) -> None:
    """Copy a file, or a folder's files, to a place in a folder; links, which may lead anywhere, are left out."""
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        for one in source.iterdir():
            if not one.is_symlink():
                _copy(one, target / one.name, within=within)
    elif source.is_file():
        if not target.parent.resolve().is_relative_to(within.resolve()) or target.is_symlink():
            raise ValueError(f"{target} leads out of {within}")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


async def _read(stream: asyncio.StreamReader) -> str:
    kept = bytearray()
    while chunk := await stream.read(1 << 16):
        kept += chunk[: max(0, _MOST_OUTPUT - len(kept))]
    return kept.decode(errors="replace")
