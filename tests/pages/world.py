"""A user's checkout in which commands are run as pages print them. What stands for what:

- A model is the embedded reader behind HTTP. The addresses of the hosted presets and those that pages print lead to
  `vllm_stand_in.py`, which is also the ``vllm`` on the PATH and in `.vllm/bin`. It does not say what it is, so that
  runs meet the conditions of a real model.
- Splits hold two samples, so that a run takes a second. Real data, where a page says that it is needed, is a copy of
  the sample sets to which ``ACE_BENCH_DATA`` points.
- Names that pages leave open, such as FILE and DIR, are files and folders of these names.
- The sentence model, where a page says that one is needed, is a module in the place of the library.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from ace_bench.backbones.vllm.command import free_port
from ace_bench.store.files import cache_folder
from ace_bench.tasks.appworld.data import builder_digest
from tests.cli.prompts.stand_ins import finance
from tests.launching import ROOT

PARTS = (
    *("ace_bench", "configs", "hydra_plugins", "prompts", "scripts", "benchmarks", "run.py"),
    *("Makefile", "pyproject.toml", "constraints.txt"),
)
ROWS = 2
PATIENTS = 1_010
"""Training patients in real data: DDXPlus draws 1,000 of them, as the paper does."""
KEYS = ("OPENAI_API_KEY", "SAMBANOVA_API_KEY")
SENTENCE_MODEL = """
from ace_bench.playbook.embeddings import HashingEmbedder


class SentenceTransformer:
    def __init__(self, name, device=None):
        pass

    def encode(self, texts, **settings):
        return HashingEmbedder().embed(texts)
"""
PRICES = "\nprices: {input: 1, cached_input: 0.1, output: 2}\n"
"""What the servers cost: a list of prices knows none at their address."""
MARKS = (".ready", ".full")
"""Files by which `make` knows that an environment is set up."""
PLACES = (
    (r"http://(?:localhost|host|HOST):8000", "http://127.0.0.1:{port}"),
    (r"--port 8000", "--port {port}"),
)
"""Addresses of pages, and of the server that stands there."""


class World:
    """The checkout at ``place``."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._port, self._hosted = free_port(), free_port()
        self._servers: dict[int, subprocess.Popen[bytes]] = {}
        _copy(place)
        self._presets = _led_to(f"http://127.0.0.1:{self._hosted}/v1", place / "configs" / "backbone")

    def open(self, page: str) -> None:
        """Forget what the commands of another page did; ``page`` finds one finished run."""
        self._stop(self._port)
        results, kept = self.place / "results", self.place / "kept"
        for made in (results, self.place / "data"):
            shutil.rmtree(made, ignore_errors=True)
        if not kept.exists():
            problem = self.run("make run")
            assert problem is None, problem
            shutil.copy(next(results.rglob("final.json")), self.place / "FILE")
            results.rename(kept)
        shutil.copytree(kept, results)

    def close(self) -> None:
        """End the servers."""
        for port in tuple(self._servers):
            self._stop(port)

    def run(self, text: str, more: str = "", *, prepared: bool = False) -> str | None:
        """Run a command with the words ``more`` behind it; return what went wrong.

        ``prepared``: there are real data and a sentence model.
        """
        line = self._here(text)
        if re.match(r"(vllm|ace-bench) serve \S", line):
            return self._serve(self._port, line)
        if f":{self._port}" in line and self._port not in self._servers:
            self._serve(self._port, "vllm serve " + re.findall(r"\bmodel(?:=|: )([\w./-]+)", line)[0])
        if "backbone" in line and self._hosted not in self._servers:
            self._serve(self._hosted, f"vllm serve any --port {self._hosted} --served-model-name {self._presets}")
        done = subprocess.run(
            ["bash", "-c", f"{line} {more}"],
            cwd=self.place,
            env=self._environment(prepared=prepared),
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        said = done.stdout + done.stderr
        wrong = done.returncode != 0 or "Traceback" in said
        return f"$ {line} {more}\nended with status {done.returncode}:\n{said[-3000:]}" if wrong else None

    def faults(self) -> list[str]:
        """Return the finished runs in which something failed: they end with status 0 all the same."""
        faults = {path: json.loads(path.read_text())["faults"] for path in self.place.rglob("metrics.json")}
        return [f"{path.parent} has faults: {some}" for path, some in faults.items() if any(some.values())]

    def _here(self, text: str) -> str:
        for pattern, meant in PLACES:
            text = re.sub(pattern, meant.replace("{port}", str(self._port)), text)
        return re.sub(r"results/\S*\.\.\.\S*", lambda found: self._path(found[0]), text)

    def _path(self, printed: str) -> str:
        """Return the first path that is meant by one with ``...`` in it."""
        meant = re.compile(re.escape(printed).replace(re.escape("..."), ".+"))
        paths = (str(path.relative_to(self.place)) for path in (self.place / "results").rglob("*"))
        return min(filter(meant.fullmatch, paths), default=printed)

    def _environment(self, *, prepared: bool = False) -> dict[str, str]:
        extras = [str(self.place / "extras")] if prepared else []
        return {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("WANDB_", "PYTEST_", "MAKE", "MFLAGS"))
            },
            **dict.fromkeys(KEYS, "a-key"),
            **({"ACE_BENCH_DATA": str(self.place / "real")} if prepared else {}),
            "PATH": ":".join([str(self.place / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": ":".join([str(self.place), *extras]),
            "STAND_IN_PORT": str(self._port),
            "COLUMNS": "200",
        }

    def _serve(self, port: int, line: str) -> str | None:
        """Start a server and wait until it listens."""
        self._stop(port)
        log = (self.place / f"server-{port}.log").open("wb")
        with log:
            self._servers[port] = subprocess.Popen(
                shlex.split(line), cwd=self.place, env=self._environment(), stdout=log, stderr=subprocess.STDOUT
            )
        for _ in range(400):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            except OSError:
                time.sleep(0.05)
            else:
                return None
        return f"$ {line}\ndoes not listen:\n{Path(log.name).read_text()[-3000:]}"

    def _stop(self, port: int) -> None:
        server = self._servers.pop(port, None)
        if server is not None:
            server.terminate()
            server.wait(timeout=20)


def _copy(place: Path) -> None:
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, place / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, place / part)
    samples = place / "ace_bench" / "tasks" / "samples"
    for split in samples.glob("*/*.jsonl"):
        split.write_text("".join(split.read_text().splitlines(keepends=True)[:ROWS]))
    shutil.copytree(samples, place / "real")
    _name_what_pages_leave_open(place)
    (place / "extras").mkdir()
    (place / "extras" / "sentence_transformers.py").write_text(SENTENCE_MODEL)
    for folder in (place / "bin", place / ".vllm" / "bin"):
        folder.mkdir(parents=True)
        program = folder / "vllm"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name("vllm_stand_in.py")} "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    _complete_environments(place)


def _name_what_pages_leave_open(place: Path) -> None:
    patients = place / "real" / "ddxplus" / "train.jsonl"
    patient = json.loads(patients.read_text().splitlines()[0])
    numbered = ({**patient, "PATIENT_PROFILE": f"{number}. {patient['PATIENT_PROFILE']}"} for number in range(PATIENTS))
    patients.write_text("".join(json.dumps(row) + "\n" for row in numbered))
    shutil.copytree(place / "real", place / "DIR")
    shutil.copytree(place / "real" / "bird_sql", place / "DIR", dirs_exist_ok=True)
    mini_world = (
        cache_folder("appworld").resolve()
        / builder_digest(ROOT / "ace_bench" / "tasks" / "appworld" / "miniworld")[:16]
    )  # the first run on AppWorld builds it
    (place / "real" / "appworld").symlink_to(mini_world)
    finance(place / "CHECKOUT")


def _complete_environments(place: Path) -> None:
    """Make the environments of this checkout those of the copy, and older what `make` would set them up from."""
    (place / ".appworld").symlink_to(ROOT / ".appworld")
    (place / ".venv").mkdir()
    for entry in Path(sys.prefix).iterdir():
        if entry.name not in MARKS:
            (place / ".venv" / entry.name).symlink_to(entry)
    appworld = ("ace_bench/cli/appworld.py", "ace_bench/tasks/appworld/constraints.txt")
    for name in ("pyproject.toml", "constraints.txt", "scripts/vllm_cpu.py", *appworld):
        os.utime(place / name, (0, 0))
    for mark in (*(place / ".venv" / name for name in MARKS), place / ".vllm" / ".ready"):
        mark.touch()
        os.utime(mark, (1, 1))


def _led_to(address: str, presets: Path) -> str:
    """Let the hosted presets ask the server at ``address``, at a price; return their models' names."""
    models = []
    for preset in presets.glob("*.yaml"):
        text, hosted = re.subn(
            r"^base_url: https://\S+", f"base_url: {address}", preset.read_text(), flags=re.MULTILINE
        )
        if hosted:
            preset.write_text(text + ("" if re.search("^prices:", text, re.MULTILINE) else PRICES))
            models += re.findall(r"^model: (\S+)", text, re.MULTILINE)
    return shlex.join(models)
