"""Runs the authors' extraction from several attempts (ReasoningBank, WebArena) and writes down what it asks for.

    python tests/official/authors_scaling.py CHECKOUT FOLDER

CHECKOUT is a checkout of google-research/reasoning-bank, ``FOLDER/attempts.json`` a list of tasks: query, and the
model's replies, one an attempt. For each their ``induce_scaling.py`` runs. It reads the same folder for every attempt,
so each reading is given the next attempt here. ``FOLDER/record.json`` then holds ``calls`` (system text, prompt,
temperature).
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock


def main() -> None:
    checkout, folder = sys.argv[1:]
    sys.dont_write_bytecode = True
    sys.path[0] = f"{checkout}/WebArena"  # in place of this file's folder
    for name in ("google", "google.genai", "memory_management"):
        sys.modules[name] = MagicMock()
    calls: list[dict[str, Any]] = []

    def chat(text: str, *, system_msg: str, temperature: float) -> str:
        calls.append({"system": system_msg, "prompt": text, "temperature": temperature})
        return "items"

    sys.modules["utils.clients"] = MagicMock(CLIENT_DICT={"gemini-2.5-flash": SimpleNamespace(one_step_chat=chat)})
    module: Any = import_module("induce_scaling")
    os.chdir(folder)
    Path("config_files").mkdir()
    body = Path(module.__file__).read_text(encoding="utf-8").partition('if __name__ == "__main__":')[2]
    for place, task in enumerate(json.loads(Path("attempts.json").read_text(encoding="utf-8"))):
        made = Path("results", f"webarena.{place}")
        made.mkdir(parents=True)
        (made / "summary_info.json").write_text(json.dumps({"cum_reward": 0.0}))
        Path("config_files", f"{place}.json").write_text(json.dumps({"intent": task["query"], "intent_template_id": 0}))
        replies = iter(task["replies"])
        module.load_trajectory = lambda _, replies=replies: [next(replies)]
        sys.argv[1:] = ["--result_dir", "results", "--output_path", "memory.jsonl", "--task", f"webarena.{place}"]
        sys.argv += ["--num_samples", str(len(task["replies"]))]
        exec(compile(f"if True:{body}", module.__file__, "exec"), vars(module))
    Path("record.json").write_text(json.dumps({"calls": calls}), encoding="utf-8")


if __name__ == "__main__":
    main()
