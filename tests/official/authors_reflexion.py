"""Runs the authors' Reflexion (HotPotQA, chain of thought) and writes down how it reflects and what a trial is shown.

    python tests/official/authors_reflexion.py CHECKOUT FOLDER

CHECKOUT is a checkout of noahshinn/reflexion, ``FOLDER/attempts.json`` a list of questions: query, key, and for each
trial its thought, action and the reflection on it. ``FOLDER/record.json`` then holds ``reflections`` (the prompt of
each) and ``shown`` (the notes of each later trial), and ``acting``: the prompts of their agent (ALFWorld) after each
trial whose log is the question and ``steps``.
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

_REPLACED = (
    "tiktoken", "llm", "langchain", "langchain.llms.base", "langchain.chat_models", "langchain.chat_models.base",
    "langchain.schema", "langchain.agents.react.base", "langchain.docstore.base", "langchain.prompts",
)  # fmt: skip


class _Template:
    """What their code asks of a prompt template."""

    def __init__(self, *, template: str, **_: Any):
        self._template = template

    def format(self, **fields: str) -> str:
        return self._template.format(**fields)


def main() -> None:
    checkout, folder = sys.argv[1:]
    sys.dont_write_bytecode = True
    sys.path[0] = f"{checkout}/hotpotqa_runs"  # in place of this file's folder
    os.environ["OPENAI_API_KEY"] = "none"
    sys.modules.update({name: MagicMock() for name in _REPLACED})
    sys.modules["langchain.prompts"].PromptTemplate = _Template  # type: ignore[attr-defined]
    module: Any = import_module("agents")
    record: dict[str, list[str]] = {"reflections": [], "shown": [], "acting": []}
    os.chdir(f"{checkout}/alfworld_runs")
    sys.path[0] = "."
    sys.modules.pop("utils", None)
    acting: Any = import_module("generate_reflections")
    for one in json.loads(Path(folder, "attempts.json").read_text(encoding="utf-8")):
        said = [text for trial in one["trials"] for text in (trial["thought"], f"Finish[{trial['action']}]")]
        notes = [trial["note"] for trial in one["trials"]]
        log = f"Here is the task:\n{one['query']}\n{one['steps']}"
        for number in range(len(notes)):
            record["acting"].append(acting._generate_reflection_query(log, notes[:number][-3:]))

        def reflect(prompt: str, _notes: list[str] = notes) -> str:
            record["reflections"].append(prompt)
            return _notes.pop(0)

        act = iter(said)
        agent = module.CoTAgent(
            one["query"], "Toy.", one["key"], module.cot_reflect_agent_prompt, module.cot_reflect_prompt,
            self_reflect_llm=reflect, action_llm=lambda _, _act=act: next(_act),
        )  # fmt: skip
        with contextlib.redirect_stdout(io.StringIO()):
            for number in range(len(one["trials"])):
                if number == 0 or not agent.is_correct():
                    agent.run()
                    record["shown"] += [agent.reflections_str] if number else []
    Path(folder, "record.json").write_text(json.dumps(record), encoding="utf-8")


if __name__ == "__main__":
    main()
