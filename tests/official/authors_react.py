"""Renders the authors' ReAct prompt, trims conversations and reads replies with their code, in a process of its own.

    python tests/official/authors_react.py CHECKOUT < REQUEST > ANSWER

REQUEST is a JSON object: ``fields`` of a task, ``exchanges`` that follow the prompt, ``limits`` of characters, and
``replies``. ANSWER has ``messages`` (the prompt), ``trimmed`` (the conversation for each limit) and ``read`` (code and
kept text of each reply). The packages that their code imports are replaced by small stand-ins.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any

_PACKAGE = "appworld_experiments.code.ace"


class FromDict:
    @classmethod
    def register(cls, _: str) -> Any:
        return lambda registered: registered


def _stand_ins(experiments: Path) -> None:
    def nothing(*_: Any, **__: Any) -> Any:
        return types.SimpleNamespace(start_task=nothing)

    utils = {
        "FromDict": FromDict, "chunk_and_return": nothing, "write_file": nothing,
        "read_file": lambda path: Path(path).read_text(encoding="utf-8"),
    }  # fmt: skip
    contents: dict[str, dict[str, Any]] = {
        "appworld": {"AppWorld": object},
        "appworld.common": {},
        "appworld.common.constants": {"DEFAULT_EXPERIMENT_NAME": ""},
        "appworld.common.random": {"set_random_seed": nothing},
        "appworld.common.utils": utils,
        "appworld.evaluator": {"evaluate_task": nothing},
        "appworld_experiments": {"__path__": [str(experiments)]},
        "appworld_experiments.code": {"__path__": [str(experiments / "code")]},
        _PACKAGE: {"__path__": [str(experiments / "code" / "ace")]},
        f"{_PACKAGE}.lite_llm_generator": {"LiteLLMGenerator": nothing},
        f"{_PACKAGE}.logger": {"Logger": nothing},
    }
    for name, attributes in contents.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(attributes)


def main() -> None:
    experiments = Path(sys.argv[1]) / "experiments"
    sys.dont_write_bytecode = True
    _stand_ins(experiments)
    request = json.load(sys.stdin)
    fields = request["fields"]
    kind = importlib.import_module(f"{_PACKAGE}.base_react").BaseSimplifiedReActAgent
    agent = kind(generator_prompt_file_path=str(experiments / "prompts" / "react.txt"), generator_model_config={})
    truth = types.SimpleNamespace(required_apis=[])
    task = types.SimpleNamespace(
        instruction=fields["question"],
        supervisor=types.SimpleNamespace(**fields),
        app_descriptions={app["name"]: app["description"] for app in json.loads(fields["app_descriptions"])},
        ground_truth=truth,
    )
    agent.initialize(types.SimpleNamespace(task_id="", task=task))
    answer = {"messages": agent.messages, "trimmed": []}
    agent.messages = [*agent.messages, *request["exchanges"]]
    for limit in request["limits"]:
        agent.max_output_length = limit
        answer["trimmed"].append(agent.trimmed_messages)
    answer["read"] = [agent.extract_code_and_fix_content(reply) for reply in request["replies"]]
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
