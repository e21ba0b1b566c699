"""Runs the authors' Dynamic Cheatsheet in a process of its own and writes down what it did.

    python tests/official/authors_dc.py CHECKOUT FOLDER URL MAX_TOKENS APPROACH

CHECKOUT is a checkout of suzgunmirac/dynamic-cheatsheet, ``FOLDER/questions.json`` a list of questions in their order,
each a task text and the part that is embedded, and APPROACH the end of the name of one of their approaches.
``FOLDER/record.json`` then holds ``calls`` (role, prompt and reply in order; of a generator's the answer) and
``steps`` (the cheatsheet after each). The loop around their class is that of their ``run_benchmark.py``.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from authors_finance import completion

_PROMPTS = {"Cumulative": "cumulative", "RetrievalSynthesis": "retrieval_synthesis"}
_UNUSED = ("tiktoken", "sklearn", "sklearn.metrics", "sklearn.metrics.pairwise")


def _litellm(url: str, calls: list[dict[str, Any]], roles: tuple[str, str]) -> types.ModuleType:
    """Return a module whose ``completion`` asks the server and notes the call; their class reads ``message`` by key."""

    def ask(**parameters: Any) -> Any:
        reply = completion(url, parameters).choices[0].message.content
        role = roles[len(calls) % 2]  # one of each a step: their replies ask for no code
        calls.append({"role": role, "prompt": parameters["messages"][0]["content"], "reply": reply})
        return types.SimpleNamespace(choices=[types.SimpleNamespace(message={"content": reply})])

    module = types.ModuleType("litellm")
    module.completion = ask  # type: ignore[attr-defined]
    return module


def main() -> None:
    checkout, folder, url, most, approach = sys.argv[1:]
    sys.dont_write_bytecode = True
    from ace_bench.playbook.embed import make_embedder

    roles = ("generator", "curator") if approach == "Cumulative" else ("curator", "generator")
    sys.path[0] = checkout  # in place of this file's folder
    calls: list[dict[str, Any]] = []
    sys.modules.update({name: MagicMock() for name in _UNUSED}, litellm=_litellm(url, calls, roles))
    module: Any = importlib.import_module("dynamic_cheatsheet.language_model")
    module.cosine_similarity = lambda one, many: np.asarray(one) @ np.asarray(many).T
    model = module.LanguageModel("openai/gpt-4o")
    prompts = Path(checkout) / "prompts"
    steps, cheatsheet = [], "(empty)"
    questions = json.loads(Path(folder, "questions.json").read_text(encoding="utf-8"))
    texts = [task + question for task, question in questions]
    embeddings = np.asarray(make_embedder(name="hashing").embed([question for _, question in questions]))
    outputs: list[str] = []
    for place, text in enumerate(texts):
        done = model.advanced_generate(
            f"DynamicCheatsheet_{approach}",
            text,
            cheatsheet=cheatsheet,
            generator_template=(prompts / "generator_prompt.txt").read_text(encoding="utf-8"),
            cheatsheet_template=(prompts / f"curator_prompt_for_dc_{_PROMPTS[approach]}.txt").read_text(
                encoding="utf-8"
            ),
            max_tokens=int(most),
            original_input_corpus=texts[: place + 1],
            original_input_embeddings=embeddings[: place + 1],
            generator_outputs_so_far=outputs,
        )
        outputs.append(done["final_output"])
        cheatsheet = done["final_cheatsheet"]
        calls[-2 + roles.index("generator")]["answer"] = done["final_answer"]
        steps.append({"after": cheatsheet})
    record = {"calls": calls, "steps": steps}
    Path(folder, "record.json").write_text(json.dumps(record), encoding="utf-8")


if __name__ == "__main__":
    main()
