"""Run folders that want code to run: each is an honest, damaged run with one thing planted in it.

Whatever is executed leaves a file in the folder ``trace``, named after what was planted.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

ESCAPES = "\x1b]52;c;eA==\x07\x1b[2J\x9b2J\u202eevil\u2066\r"
"""What a terminal must not be sent: its clipboard, its screen, a line that runs backwards."""
SECRET = "EVIL_PLANTED_VALUE"
"""An environment variable that planted settings ask for."""
MODULE = "planted_code"
"""A module in the current folder that leaves a trace when it is imported."""

Plant = Callable[[Path, str], None]
"""Changes a run folder so that a shell command, if it is run, or the module leaves a trace."""


def _call(command: str) -> dict[str, Any]:
    return {"_target_": "subprocess.getoutput", "cmd": command}


def _settings(change: Callable[[dict[str, Any], str], object]) -> Plant:
    def plant(folder: Path, command: str) -> None:
        path = folder / "config.yaml"
        settings = msgspec.yaml.decode(path.read_bytes())
        change(settings, command)
        path.write_bytes(msgspec.yaml.encode(settings))

    return plant


def _placed(*path: str) -> Plant:
    """Plant a class at a place of the settings."""

    def change(settings: dict[str, Any], command: str) -> None:
        *parents, last = path
        for name in parents:
            if not isinstance(settings.get(name), dict):
                settings[name] = {}
            settings = settings[name]
        settings[last] = _call(command)

    return _settings(change)


def _task(option: str, **own: Any) -> Plant:
    """Plant another task whose settings name code."""

    def plant(folder: Path, command: str) -> None:
        _settings(lambda settings, _: settings.update(task=own))(folder, command)
        for name in ("environment.json", "metrics.json"):
            _json(folder / name, lambda about: about.update(task=option))

    return plant


def _json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


def _command_alone(folder: Path, command: str) -> None:
    (folder / "config.yaml").write_text("[")
    line = {
        "at": "2026-01-01T00:00:00Z",
        "command": f"ace-bench run +x._target_=subprocess.getoutput '+x.cmd={command}'",
    }
    with (folder / "processes.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def _option_with_words(folder: Path, command: str) -> None:
    for name in ("environment.json", "metrics.json"):
        _json(
            folder / name,
            lambda about: about.update(method=f"ace +x={{_target_:subprocess.getoutput,cmd:'{command}'}}"),
        )


def _text_in(name: str, text: str) -> Plant:
    def plant(folder: Path, command: str) -> None:
        (folder / name).write_text(text.replace("COMMAND", command))

    return plant


def _bomb(folder: Path, command: str) -> None:
    del command
    lines = ["x0: &x0 [a, a, a, a, a, a, a, a, a]"]
    lines += [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 30)]
    with (folder / "config.yaml").open("a") as file:
        file.write("\n".join(lines) + "\n")


def _template(folder: Path, command: str) -> None:
    for path in (folder / "prompts").rglob("*.j2"):
        shown = f"{{{{ cycler.__init__.__globals__.os.popen({command!r}).read() }}}}"
        path.write_text(path.read_text().replace("{% block user %}", f"{{% block user %}}{shown}"))


def _context(kind: str) -> Plant:
    def plant(folder: Path, command: str) -> None:
        for path in (folder / "contexts").glob("*.json"):
            _json(path, lambda record: record.update({"kind": kind, **_call(command)}))

    return plant


class _Pickled:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


def _pickles(folder: Path, command: str) -> None:
    content = pickle.dumps(_Pickled(command))
    for name in ("calls.npz", "embeddings.npy", "contexts/tested.pkl", "cache.pkl", "cache.msgpack", "modules.pth"):
        (folder / name).write_bytes(content)


def _repository(folder: Path, command: str) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.name=A", "-c", "user.email=a@b.c")
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)

    git("init", "-q")
    (folder / ".gitattributes").write_text("* filter=planted diff=planted\n")
    git("add", ".gitattributes")
    git("commit", "-q", "-m", "x")
    for name in ("filter.planted.clean", "filter.planted.process", "diff.planted.textconv", "diff.external"):
        git("config", name, command)
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "alias.rev-parse", "alias.ls-tree"):
        git("config", name, command)
    for number in range(9):
        (folder / ".gitattributes").write_text(f"* filter=planted diff=planted\n# {number}\n")


def _escapes(folder: Path, command: str) -> None:
    del command
    _json(folder / "metrics.json", lambda found: found["headline"].update(metric=f"[red]{ESCAPES}[/nothing]"))
    _json(folder / "identity.json", lambda found: found["settings"]["method"].update(own=ESCAPES))
    for path in (folder / "contexts").glob("*.json"):
        path.write_text(path.read_text().replace('"content": "', '"content": ' + json.dumps(ESCAPES)[:-1]))
    (folder / "SKILL.md").write_text(f"# Skill\n\n- {ESCAPES}\n")
    (folder / "notes.json").write_text(json.dumps({"note": ESCAPES}))
    summary = folder / "summary.txt"
    summary.write_text(ESCAPES + summary.read_text())


def _composed(folder: Path, command: str) -> None:
    """Plant interpolations and overrides wherever tables compose configurations of what a run recorded."""
    asked = f"${{oc.env:{SECRET}}}"

    def change(identity: dict[str, Any]) -> None:
        settings = identity["settings"]
        settings["backbone"].update({"model": asked, f"x={asked}": 1, "extra_body": {f"a: {asked}, b": [asked]}})
        settings.update(embedder=asked, prompts=f"x', name: {asked}", limit={"train": asked})

    _json(folder / "identity.json", change)
    for name in ("environment.json", "metrics.json"):
        _json(folder / name, lambda about: about.update(seed=1))


def _names(**names: str) -> Plant:
    def plant(folder: Path, command: str) -> None:
        for name in ("environment.json", "metrics.json"):
            _json(folder / name, lambda about: about.update(names))

    return plant


def _leaderboard(folder: Path, command: str) -> None:
    journal = folder / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"kinD"', b'"kind"'))  # it is read only if it is sound
    own = {"_target_": "ace_bench.tasks.appworld.task.AppWorld", "confinement": "none", "test_split": "test_normal"}
    _task("appworld", **own, data_dir=_call(command), sample_data=_call(command))(folder, command)


PLANTED: Mapping[str, Plant] = {
    "class of the method": _placed("method"),
    "class within the method": _placed("method", "refiner"),
    "class deep in the method": _placed("method", "refiner", "embedder"),
    "class of the task": _placed("task"),
    "class of the agent": _placed("agent"),
    "class of the tools": _placed("agent", "tools", "tools", "x"),
    "class of the mode": _placed("mode"),
    "class of the backbone": _placed("backbone"),
    "class of a role": _placed("roles", "reflector"),
    "class of the judge": _placed("default_roles", "judge"),
    "class of the rehearsal": _placed("rehearsal"),
    "class of a tracker": _placed("tracker", "x"),
    "class of a limit": _placed("limit"),
    "class of the budget": _placed("budget", "calls"),
    "class of the embedder": _placed("embedder"),
    "class of a launcher": _placed("launcher"),
    "class from the folder": _settings(lambda found, _: found["method"].update(_target_=f"{MODULE}.make")),
    "name that imports": _settings(lambda found, _: found["method"].update(_target_=f"{MODULE}:make")),
    "grader": _task("qa", _target_="ace_bench.tasks.qa.Qa", grader=f"python:{MODULE}.make", data="x.csv"),
    "environment": _task(
        "inspect", _target_="ace_bench.tasks.environments.inspect_task.InspectTask", name=f"{MODULE}.py@task", timeout=1
    ),
    "taskset": _task(
        "verifiers", _target_="ace_bench.tasks.environments.verifiers_task.VerifiersTask", environment=MODULE, timeout=1
    ),
    "sample package": _settings(lambda found, _: found["task"].update(sample_data=f"pkg://{MODULE}.inner/x")),
    "model folder": _settings(lambda found, _: found.update(embedder=f"./{MODULE}")),
    "resolver": _settings(lambda found, _: found.update(name=f"${{oc.env:{SECRET}}}", seed=f"${{oc.env:{SECRET}}}")),
    "resolver of code": _settings(lambda found, _: found.update(limit=f"${{oc.decode:${{oc.env:{SECRET}}}}}")),
    "command": _command_alone,
    "option": _option_with_words,
    "tag of YAML": _text_in("config.yaml", '!!python/object/apply:os.system ["COMMAND"]\n'),
    "new object of YAML": _text_in(
        "config.yaml", 'task: !!python/object/new:subprocess.Popen [["sh", "-c", "COMMAND"]]\n'
    ),
    "bomb of YAML": _bomb,
    "template": _template,
    "kind of context": _context(f"{MODULE}:make"),
    "context of a class": _context("playbook"),
    "pickles": _pickles,
    "repository": _repository,
    "escapes": _escapes,
    "interpolations": _composed,
    "interpolated method": _names(method=f"${{oc.env:{SECRET}}}"),
    "interpolated backbone": _names(backbone=f"{{_target_: x, name: ${{oc.env:{SECRET}}}}}"),
    "interpolated protocol": _names(protocol=f"${{oc.env:{SECRET}}}"),
    "leaderboard": _leaderboard,
}


def plant_all(honest: Path, results: Path, trace: Path) -> dict[str, Path]:
    """Write a hostile run folder of each kind below ``results``; return them by what is planted."""
    found = {}
    for place, (name, plant) in enumerate(PLANTED.items()):
        folder = found[name] = (
            results / f"planted{place}" / honest.parent.parent.name / honest.parent.name / honest.name
        )
        shutil.copytree(honest, folder)
        (folder / "checksums.jsonl").unlink()  # who may write a folder may write its checksums
        journal = folder / "journal.jsonl"
        journal.write_bytes(journal.read_bytes().replace(b'"kind"', b'"kinD"', 1))
        plant(folder, f"touch {trace}/{name.replace(' ', '_')}")
    return found
