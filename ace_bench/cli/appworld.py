"""Set up AppWorld's engine and data, in an environment of their own: ``make appworld``.

    ace-bench appworld           .appworld/, the mini-world, and a health check
    ace-bench appworld --data    the official data into data/appworld, too (network needed)

It can be interrupted and started again; finished parts are kept. About 300 MB; packages come from pip's index.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ace_bench.cli.arguments import Parser
from ace_bench.core.console import Console
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.store.files import write_files
from ace_bench.tasks.appworld.data import check_path
from ace_bench.tasks.appworld.engine import FACTS, HERE, VERSION, engine_folder, find_engine, python_of
from ace_bench.tasks.appworld.task import AppWorld
from ace_bench.tasks.catalog import make_task
from ace_bench.tasks.data import download_folder

_DESCRIBE = "import json, appworld, appworld.apps as a; print(json.dumps([appworld.__version__, a.APP_TO_DESCRIPTION]))"
_HIDDEN = ("admin",)
_NOTHING: Mapping[str, str] = MappingProxyType({})
_WAY_OUT = ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "ssl_cert_file", "requests_ca_bundle")
"""Environment variables of proxies and certificates, in lower or upper case."""


def install(folder: Path, console: Console) -> None:
    """Make the environment and install the engine. Raises ``ConfigError`` if a step fails."""
    check_path(folder)
    python = python_of(folder)
    if not (folder / "pyvenv.cfg").is_file() or not python.exists():
        console.print(f"creating {folder}")
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    console.print(f"installing appworld {VERSION}")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    _run([*pip, "install", "--constraint", str(HERE / "constraints.txt"), f"appworld=={VERSION}"])
    console.print("unpacking its apps")
    _appworld(folder, "install")
    version, apps = json.loads(_run([str(python), "-c", _DESCRIBE], cwd=folder))
    descriptions = {name: description for name, description in sorted(apps.items()) if name not in _HIDDEN}
    write_files({folder / FACTS: json.dumps({"version": version, "apps": descriptions}, indent=1) + "\n"})


def download(folder: Path, target: Path, console: Console) -> None:
    """Download the official data into ``target/data``; existing data is replaced only by a complete download."""
    if (target / "data" / "datasets").is_dir():
        console.print(f"the official data is already in {target}; move it away to download it again")
        return
    console.print(f"downloading the official data into {target}")
    check_path(target)
    part = target.with_name(f"{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        way_out = {name: value for name, value in os.environ.items() if name.lower() in _WAY_OUT}
        output = _appworld(folder, "download", "data", "--root", str(part), cwd=part, variables=way_out)
        if not (part / "data" / "datasets").is_dir():  # it exits with 0 even if the download is refused
            raise ConfigError("".join(output.strip().splitlines()[-1:]) or "nothing came")
        part.rename(target)
    except ConfigError as error:
        raise DataError(
            f"the official data cannot be downloaded: {error}. On a machine that can reach its publisher, run "
            f"`appworld download data`, and copy the folder data/ that it makes to {target}/data"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check(task: AppWorld, console: Console) -> float:
    """Run and grade one reference solution of the mini-world. Return the seconds it took."""
    try:
        task.start(console.print)
        sample = task.samples("train")[0]
        started = time.perf_counter()
        with task.open(sample) as session:
            output = session.step(f"{task.failing_grade(sample).gold}\nsolution(apis, requester)")
            grade = session.grade("")
        if not grade.correct:
            raise ConfigError(
                f"the engine does not work: the reference solution of {sample.id} fails: {output}\n{grade.report}"
            )
        return time.perf_counter() - started
    finally:
        task.close()


def _appworld(folder: Path, *arguments: str, cwd: Path | None = None, variables: Mapping[str, str] = _NOTHING) -> str:
    environment = {"APPWORLD_CACHE": str(folder / "cache"), "PATH": "/usr/bin:/bin", "HOME": str(folder), **variables}
    return _run([str(folder / "bin" / "appworld"), *arguments], cwd=cwd or folder, environment=environment)


def _run(command: Sequence[str], *, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise ConfigError(f"{Path(command[0]).name} ended with status {done.returncode}: {''.join(last)}")
    return done.stdout


def main(arguments: Sequence[str]) -> int:
    """Set up what is missing and return the exit status."""
    parser = Parser("appworld", __doc__)
    parser.add_argument("--data", action="store_true", help="download the official data into data/appworld, too")
    options = parser.parse_args(arguments)
    console = Console(highlight=False, markup=False)
    try:
        find_engine()
    except ConfigError:
        install(engine_folder(), console)
    task: Any = make_task("appworld", source="sample", sample_allowed=True)
    console.print(f"mini-world: {len(task.samples('train'))} tasks to learn from, in {task.root}")
    console.print(f"health check passed: a rollout took {check(task, console):.2f} s")
    if options.data:
        download(engine_folder(), download_folder("appworld"), console)
    return 0
