"""Runs the authors' Agent Workflow Memory (WebArena) on attempts and writes down how it asks for workflows.

    python tests/official/authors_awm.py CHECKOUT FOLDER

CHECKOUT is a checkout of zorazrw/agent-workflow-memory, ``FOLDER/attempts.json`` a list of attempts in order:
query, thought, action, and whether it succeeded. After each ``induce_prompt.py`` runs as in ``pipeline.py``.
``FOLDER/record.json`` then holds its prompts, ``null`` where nothing had succeeded.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

_LOGGED = "browsergym.experiments.loop - INFO -"


def _write(place: int, attempt: dict[str, Any]) -> None:
    """Write what their run, their data and their environment leave of an attempt."""
    folder = Path("results", f"webarena.{place}")
    folder.mkdir(parents=True)
    (folder / "summary_info.json").write_text(json.dumps({"cum_reward": attempt["success"]}))
    log = f"2024 {_LOGGED} {attempt['thought']}\n\naction:\n{attempt['action']}\n\n"
    (folder / "experiment.log").write_text(log)
    task = {"intent": attempt["query"], "intent_template_id": place, "sites": ["shopping"]}
    Path("config_files").mkdir(exist_ok=True)
    Path("config_files", f"{place}.json").write_text(json.dumps(task))


def main() -> None:
    checkout, folder = sys.argv[1:]
    sys.dont_write_bytecode = True
    sys.path[0] = f"{checkout}/webarena"  # in place of this file's folder
    sys.modules["openai"] = MagicMock()
    os.environ["OPENAI_API_KEY"] = "none"
    module: Any = import_module("induce_prompt")
    prompts: list[str] = []

    def create(messages: list[dict[str, str]], **_: Any) -> Any:
        prompts.append(messages[0]["content"])
        return MagicMock(choices=[MagicMock(**{"message.content": ""})])

    module.client.chat.completions.create = create
    attempts = json.loads(Path(folder, "attempts.json").read_text(encoding="utf-8"))
    os.chdir(folder)
    os.symlink(f"{checkout}/webarena/prompt", "prompt")
    found = os.listdir
    module.os.listdir = lambda path: sorted(found(path), key=lambda name: int(name.rpartition(".")[2]))
    sys.argv[1:] = ["--result_dir", "results", "--output_path", "workflows.txt", "--criteria", "gt"]
    shown: list[str | None] = []
    for place, attempt in enumerate(attempts):
        _write(place, attempt)
        source = Path(module.__file__).read_text(encoding="utf-8").partition('if __name__ == "__main__":')[2]
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(f"if True:{source}", module.__file__, "exec"), vars(module))
        shown.append(prompts.pop() if any(one["success"] for one in attempts[: place + 1]) else None)
    Path("record.json").write_text(json.dumps({"prompts": shown}), encoding="utf-8")


if __name__ == "__main__":
    main()
