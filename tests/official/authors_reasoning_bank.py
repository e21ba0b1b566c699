"""Runs the authors' ReasoningBank (WebArena) on attempts and writes down what it asks for and what it stores.

    python tests/official/authors_reasoning_bank.py CHECKOUT FOLDER

CHECKOUT is a checkout of google-research/reasoning-bank, ``FOLDER/attempts.json`` a list of attempts in their order:
query, thought, action, whether it succeeded, what a judge said ("" for none) and what the extractor replies. After each
their ``induce_memory.py`` runs. ``FOLDER/record.json`` then holds ``calls`` (system text, prompt and temperature of
each) and ``stored``: the parts of each reply as their memory keeps them.
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

_MODEL = "gemini-2.5-flash"


def _write(place: int, attempt: dict[str, Any]) -> list[str]:
    """Write what their run, their judge and their data leave of an attempt; return the options that fit it."""
    folder = Path("results", f"webarena.{place}")
    folder.mkdir(parents=True)
    step = SimpleNamespace(agent_info={"think": attempt["thought"], "action": attempt["action"]})
    with gzip.open(folder / "step_0.pkl.gz", "wb") as file:
        pickle.dump(step, file)
    (folder / "summary_info.json").write_text(json.dumps({"cum_reward": float(attempt["success"])}))
    judged = [{"rm": attempt["success"], "thoughts": attempt["judged"]}]
    (folder / f"{_MODEL}_autoeval.json").write_text(json.dumps(judged))
    Path("config_files").mkdir(exist_ok=True)
    task = {"intent": attempt["query"], "intent_template_id": place}
    Path("config_files", f"{place}.json").write_text(json.dumps(task))
    return ["--task", f"webarena.{place}", "--criteria", "autoeval" if attempt["judged"] else "gt"]


def main() -> None:
    checkout, folder = sys.argv[1:]
    sys.dont_write_bytecode = True
    sys.path[0] = f"{checkout}/WebArena"  # in place of this file's folder
    sys.modules["utils.clients"] = MagicMock()
    module: Any = import_module("induce_memory")
    attempts = json.loads(Path(folder, "attempts.json").read_text(encoding="utf-8"))
    calls: list[dict[str, Any]] = []

    class Client:
        def __init__(self, model_name: str):
            self._reply = attempts[len(calls)]["reply"]

        def one_step_chat(self, text: str, *, system_msg: str, temperature: float) -> tuple[str, None]:
            calls.append({"system": system_msg, "prompt": text, "temperature": temperature})
            return self._reply, None

    module.CLIENT_DICT = {_MODEL: Client}
    os.chdir(folder)
    body = Path(module.__file__).read_text(encoding="utf-8").partition('if __name__ == "__main__":')[2]
    for place, attempt in enumerate(attempts):
        sys.argv[1:] = [*_write(place, attempt), "--result_dir", "results", "--output_path", "memory.jsonl"]
        exec(compile(f"if True:{body}", module.__file__, "exec"), vars(module))
    stored = [json.loads(line)["memory_items"] for line in Path("memory.jsonl").read_text().splitlines()]
    Path("record.json").write_text(json.dumps({"calls": calls, "stored": stored}), encoding="utf-8")


if __name__ == "__main__":
    main()
