"""Runs the authors' AppWorld code in the engine's interpreter and writes down what it did.

    .appworld/bin/python tests/official/authors_appworld.py CHECKOUT FOLDER URL SETTINGS

CHECKOUT is a checkout of ace-agent/ace-appworld, FOLDER an AppWorld root (it holds ``data``), URL a server that speaks
the chat-completions protocol, and SETTINGS a JSON object: ``tasks`` (ids, in order), ``labels`` (whether the reference
solution and the test report are shown), ``max_steps`` and ``packages`` (the folder that Jinja2 is imported from).
``FOLDER/record.json`` then holds ``calls`` (role, messages and reply, in order) and ``steps`` (task, playbook and next
number after each task). Their classes for models and logs are replaced by small stand-ins: these need packages that
the engine's environment lacks.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import types
import urllib.request
from pathlib import Path
from typing import Any

_PACKAGE = "appworld_experiments.code.ace"
_PROMPTS = {
    "generator_prompt_file_path": "appworld_react_generator_prompt.txt",
    "curator_prompt_file_path": "appworld_react_curator_prompt.txt",
}
_REFLECTORS = {
    True: "appworld_react_reflector_with_gt_prompt.txt",
    False: "appworld_react_reflector_no_gt_prompt.txt",
}
_CALLS: list[dict[str, Any]] = []


class Model:
    """Stands in for their client of providers."""

    def __init__(self, *, role: str, url: str):
        self._role = role
        self._url = url

    def generate(self, messages: list[dict[str, str]]) -> dict[str, Any]:
        """Ask the server; costs nothing."""
        body = json.dumps({"model": "scripted", "messages": messages}).encode()
        request = urllib.request.Request(f"{self._url}/chat/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            message = json.load(response)["choices"][0]["message"]
        _CALLS.append({"role": self._role, "messages": messages, "reply": message["content"]})
        return {**message, "cost": 0.0}


class Silence:
    """Stands in for their console."""

    def __init__(self, **_: Any): ...

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def _modules(checkout: Path) -> None:
    """Make their package importable without installing it."""
    folders = {
        "appworld_experiments": checkout / "experiments",
        "appworld_experiments.code": checkout / "experiments" / "code",
        _PACKAGE: checkout / "experiments" / "code" / "ace",
    }
    for name, folder in folders.items():
        package = sys.modules[name] = types.ModuleType(name)
        package.__path__ = [str(folder)]
    contents: dict[str, dict[str, Any]] = {
        f"{_PACKAGE}.lite_llm_generator": {"LiteLLMGenerator": Model},
        f"{_PACKAGE}.logger": {"Logger": Silence},
        "openai": {},
    }
    for name, attributes in contents.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(attributes)


def _complete_engine() -> None:
    """Give the released engine what their version of it has beside: a function, and the report of an evaluation."""
    utils, evaluator = (importlib.import_module(f"appworld.{name}") for name in ("common.utils", "evaluator"))
    inner = evaluator.evaluate_task

    def evaluate(task_id: str, experiment_name: str) -> tuple[Any, str]:
        tracker = inner(task_id, experiment_name)
        return tracker, tracker.report(print_it=False, colorize=False)

    utils.chunk_and_return = lambda items, **_: items  # one process takes all
    evaluator.evaluate_task = evaluate


def _agent(checkout: Path, folder: Path, url: str, settings: dict[str, Any]) -> Any:
    prompts, playbooks = (checkout / "experiments" / part for part in ("prompts", "playbooks"))
    kind = importlib.import_module(f"{_PACKAGE}.adaptation_react").SimplifiedReActStarAgent
    return kind(
        **{f"{role}_model_config": {"role": role, "url": url} for role in ("generator", "reflector", "curator")},
        **{name: str(prompts / file) for name, file in _PROMPTS.items()},
        reflector_prompt_file_path=str(prompts / _REFLECTORS[settings["labels"]]),
        initial_playbook_file_path=str(playbooks / "appworld_initial_playbook.txt"),
        trained_playbook_file_path=str(folder / "trained.txt"),
        appworld_config={"random_seed": 123},
        max_steps=settings["max_steps"],
        use_gt_code=settings["labels"],
    )


def main() -> None:
    checkout, folder, url, given = sys.argv[1:]
    sys.dont_write_bytecode = True
    sys.path.pop(0)  # this file's folder
    os.environ["APPWORLD_ROOT"] = folder
    os.chdir(folder)
    _modules(Path(checkout))
    _complete_engine()
    settings = json.loads(given)
    sys.path.append(settings["packages"])
    importlib.import_module("jinja2")
    sys.path.pop()
    agent = _agent(Path(checkout), Path(folder), url, settings)
    steps: list[dict[str, Any]] = []
    solve = agent.solve_task

    def noted(task: str, experiment: str) -> None:
        solve(task, experiment)
        steps.append({"task": task, "after": agent.playbook, "next": agent.next_global_id})

    agent.solve_task = noted
    agent.solve_tasks(settings["tasks"], experiment_name="authors")
    Path("record.json").write_text(json.dumps({"calls": _CALLS, "steps": steps}), encoding="utf-8")


if __name__ == "__main__":
    main()
