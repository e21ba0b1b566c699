"""A machine without containers: commands run under bubblewrap, with this system's programs.

A command reads this system's ``/usr`` and writes to the machine's folders. It sees neither the network nor other
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
from pathlib import Path, PurePosixPath

_LINKED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_READ = ("alternatives", "group", "ld.so.cache", "localtime", "nsswitch.conf", "passwd")
_NOT_OURS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "proc", "dev")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MIB = 1 << 20
_LARGEST_FILE, _MOST_OUTPUT = 256 * _MIB, 1 * _MIB
_FOLLOWED, _IGNORED = ("COPY", "ENV", "WORKDIR"), ("CMD", "EXPOSE", "FROM", "LABEL", "MAINTAINER", "USER")


def reason_against() -> str | None:
    """Return why commands cannot be confined on this system; ``None`` if they can."""
    if missing := [name for name in ("bwrap", "prlimit") if shutil.which(name) is None]:
        return f"there is no program {missing[0]} (Debian has it in bubblewrap and util-linux)"
    with tempfile.TemporaryDirectory() as root:
        command = [*_confinement_words(Path(root), "/", memory=1024, variables={"PATH": _PATH}), "true"]
        tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"bwrap cannot confine a command here: {tried.stderr.strip()}" if tried.returncode else None


class Machine:
    """Folders of one attempt, made as a folder's Dockerfile says, and confined commands in them.

    Raises ``ValueError`` at construction if the Dockerfile needs a container.
    """

    def __init__(self, environment: Path):
        self._environment = environment
        self._instructions = list(_read_dockerfile(environment))
        self._root: Path | None = None

    @property
    def root(self) -> Path:
        """Where the machine's folders lie on this system."""
        assert self._root is not None
        return self._root

    def make(self, workdir: str | None) -> None:
        """Make the folders, and do what the Dockerfile says; commands start in ``workdir`` if it is given."""
        self._root = Path(tempfile.mkdtemp(prefix="ace-machine-"))
        self._workdir, self._variables = "/", {"PATH": _PATH, "HOME": "/root", "LANG": "C.UTF-8"}
        for name in ("app", "root", "tmp", "logs/agent", "logs/verifier", "logs/artifacts"):
            (self.root / name).mkdir(parents=True)
        for verb, words in self._instructions:
            if verb == "WORKDIR":
                self._enter(words[0])
            elif verb == "COPY":
                self._copy_files(words[:-1], words[-1])
            else:
                self._variables |= dict(word.split("=", 1) for word in words)
        self._enter(workdir or ("." if self._workdir != "/" else "app"))

    def _enter(self, folder: str) -> None:
        self._workdir = str(PurePosixPath(self._workdir, folder))
        self.place(self._workdir).mkdir(parents=True, exist_ok=True)

    def _copy_files(self, names: Sequence[str], target: str) -> None:
        place = self.place(str(PurePosixPath(self._workdir, target)))
        for name in (str(PurePosixPath("/", name))[1:] for name in names):
            sources = sorted(self._environment.glob(name)) if name else [self._environment]
            if not sources:
                raise FileNotFoundError(f"the Dockerfile copies {name}, which is not in {self._environment}")
            for source in sources:
                named = source.is_file() and (target.endswith(("/", ".")) or place.is_dir())
                _copy(source, place / source.name if named else place, within=self.root)

    def remove(self) -> None:
        """Remove the folders."""
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)

    async def run(
        self, command: str, *, folder: str | None, variables: Mapping[str, str], memory: int, seconds: float | None
    ) -> tuple[str, str, int]:
        """Run a command; return what it printed on both streams, and its status. Raises ``TimeoutError``.

        ``memory`` limits one process, in MiB. All that a command starts ends with it.
        """
        confined = _confinement_words(
            self.root, folder or self._workdir, memory=memory, variables={**self._variables, **variables}
        )
        process = await asyncio.create_subprocess_exec(
            *confined,
            *("bash", "-c", command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        reading = asyncio.gather(_read_output(process.stdout), _read_output(process.stderr), process.wait())
        try:
            printed, errors, status = await asyncio.wait_for(reading, seconds)
        finally:
            if process.returncode is None:  # to kill one that has ended may lose its status
                process.kill()
                await process.wait()
        return printed, errors, status

    def copy_in(self, source: Path, target: str) -> None:
        """Copy a file, or a folder's files, to the machine."""
        _copy(source, self.place(target), within=self.root)

    def copy_out(self, source: str, target: Path) -> None:
        """Copy a file, or a folder's files, from the machine."""
        _copy(self.place(source), target, within=target.parent)

    def place(self, path: str) -> Path:
        """Return where a path of the machine lies; raises ``ValueError`` if it is this system's."""
        parts = PurePosixPath("/", path).parts[1:]
        place = self.root.joinpath(*parts)
        if parts[:1] and parts[0] in _NOT_OURS:
            raise ValueError(f"{path} belongs to this system: machine=bubblewrap cannot change it")
        if not place.resolve().is_relative_to(self.root.resolve()):
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


def _read_dockerfile(folder: Path) -> Iterator[tuple[str, list[str]]]:
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


async def _read_output(stream: asyncio.StreamReader) -> str:
    kept = bytearray()
    while chunk := await stream.read(1 << 16):
        kept += chunk[: max(0, _MOST_OUTPUT - len(kept))]
    return kept.decode(errors="replace")
