"""Runs the scripts that learn from attempts at web tasks in the authors' code, and writes down what they ask.

    python tests/official/authors_inductions.py CHECKOUT FOLDER SCRIPT

SCRIPT is ``induce_prompt`` (CHECKOUT is one of zorazrw/agent-workflow-memory) or ``induce_memory``
(google-research/reasoning-bank). ``FOLDER/attempts.json`` is a list of attempts in order, with query, thought, action
and success, for ``induce_memory`` also with what a judge said ("" for none) and what the extractor replies. The script
runs after each.
``FOLDER/record.json`` then holds ``calls`` (prompt, system text and temperature; for ``induce_prompt`` only the prompt
after each attempt, ``null`` where none has succeeded) and ``stored``: the parts of each reply as their memory keeps
them.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

_MODEL = "gemini-2.5-flash"
_CALLS: list[Any] = []


def _write(place: int, query: str, *, success: bool) -> Path:
    """Write what their run and their data leave of an attempt; return its folder."""
    folder = Path("results", f"webarena.{place}")
    folder.mkdir(parents=True)
    (folder / "summary_info.json").write_text(json.dumps({"cum_reward": float(success)}))
    Path("config_files").mkdir(exist_ok=True)
    task = {"intent": query, "intent_template_id": place, "sites": ["shopping"]}
    Path("config_files", f"{place}.json").write_text(json.dumps(task))
    return folder


def _start(module: Any, *options: str) -> None:
    """Do what a script does when it is started."""
    sys.argv[1:] = [*options, "--result_dir", "results", "--output_path", "memory.jsonl"]
    body = Path(module.__file__).read_text(encoding="utf-8").partition('if __name__ == "__main__":')[2]
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(f"if True:{body}", module.__file__, "exec"), vars(module))


def induce_prompt(module: Any, attempts: list[dict[str, Any]]) -> None:
    """Run the script after each attempt, over all attempts so far."""
    prompts: list[str] = []

    def create(messages: list[dict[str, str]], **_: Any) -> Any:
        prompts.append(messages[0]["content"])
        return MagicMock(choices=[MagicMock(**{"message.content": ""})])

    module.client.chat.completions.create = create
    os.symlink(Path(module.__file__).parent / "prompt", "prompt")
    found = os.listdir
    module.os.listdir = lambda path: sorted(found(path), key=lambda name: int(name.rpartition(".")[2]))
    for place, attempt in enumerate(attempts):
        log = f"2024 browsergym.experiments.loop - INFO - {attempt['thought']}\n\naction:\n{attempt['action']}\n\n"
        (_write(place, attempt["query"], success=attempt["success"]) / "experiment.log").write_text(log)
        _start(module, "--criteria", "gt")
        _CALLS.append(prompts.pop() if any(one["success"] for one in attempts[: place + 1]) else None)


def _client(reply: Callable[[], Any]) -> Any:
    """Return a client of a model that notes each call and returns what ``reply`` does."""

    def chat(text: str, *, system_msg: str, temperature: float) -> Any:
        said = reply()
        _CALLS.append({"system": system_msg, "prompt": text, "temperature": temperature})
        return said

    return SimpleNamespace(one_step_chat=chat)


def induce_memory(module: Any, attempts: list[dict[str, Any]]) -> None:
    """Run the script on each attempt."""
    client = _client(lambda: (attempts[len(_CALLS)]["reply"], None))
    module.CLIENT_DICT = {_MODEL: lambda **_: client}
    for place, attempt in enumerate(attempts):
        folder = _write(place, attempt["query"], success=attempt["success"])
        step = SimpleNamespace(agent_info={"think": attempt["thought"], "action": attempt["action"]})
        with gzip.open(folder / "step_0.pkl.gz", "wb") as file:
            pickle.dump(step, file)
        judged = [{"rm": attempt["success"], "thoughts": attempt["judged"]}]
        (folder / f"{_MODEL}_autoeval.json").write_text(json.dumps(judged))
        _start(module, "--task", folder.name, "--criteria", "autoeval" if attempt["judged"] else "gt")


def main() -> None:
    checkout, folder, script = sys.argv[1:]
    sys.dont_write_bytecode = True
    os.environ["OPENAI_API_KEY"] = "none"
    sys.path[0] = str(next(Path(checkout).glob("[wW]eb[aA]rena")))  # in place of this file's folder
    for name in ("openai", "google", "google.genai", "memory_management", "utils.clients"):
        sys.modules[name] = MagicMock()
    module = import_module(script)
    os.chdir(folder)
    globals()[script](module, json.loads(Path("attempts.json").read_text(encoding="utf-8")))
    kept = Path("memory.jsonl").read_text(encoding="utf-8").splitlines() if Path("memory.jsonl").exists() else []
    stored = [json.loads(line)["memory_items"] for line in kept] if script == "induce_memory" else []
    Path("record.json").write_text(json.dumps({"calls": _CALLS, "stored": stored}), encoding="utf-8")


if __name__ == "__main__":
    main()
