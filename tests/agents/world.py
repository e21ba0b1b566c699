"""A small world for agents, in this process: code is run, `apis` records what it is asked."""

from __future__ import annotations

import contextlib
import io
import linecache
import traceback
from types import SimpleNamespace
from typing import Any

from ace_bench.agents.react import ReAct
from ace_bench.core.types import Completion, GeneratorSpec, Grade, Sample, Usage
from ace_bench.store.prompts import PromptSet
from tests.core.test_tool_rules import tools
from tests.launching import ROOT

PROMPTS = PromptSet(ROOT / "prompts" / "default", task="appworld", prompt_group="agent")
PERSON = {"first_name": "Ida", "last_name": "Reed", "email": "ida@example.com", "phone_number": "5550100"}
DOC = '{"api_name": "login", "parameters": [{"name": "username"}, {"name": "password"}]}'
COMPLETE = "apis.supervisor.complete_task()"


def sample(name: str = "world-train-0") -> Sample:
    inputs = {"background": "music: songs", "question": f"Do {name}.", "datetime": "2023-05-18T12:00:00", **PERSON}
    return Sample(id=name, split=name.split("-")[1], inputs=inputs)


class World:
    """A session. ``steps`` is the code that was run; right is what set ``good`` and completed the task."""

    def __init__(self, gold: str = "good = True"):
        self.finished = False
        self.steps: list[str] = []
        self._gold = gold
        self._file = f"<python-input-{id(self)}>"
        docs = SimpleNamespace(show_api_doc=lambda **_: DOC, show_app_descriptions=lambda: '[{"name": "music"}]')
        supervisor = SimpleNamespace(complete_task=self._complete)
        self._names = {"apis": SimpleNamespace(api_docs=docs, supervisor=supervisor)}

    def step(self, action: str) -> str:
        self.steps.append(action)
        # So that a traceback shows the line that failed, as the engine's does.
        linecache.cache[self._file] = (len(action), None, action.splitlines(keepends=True), self._file)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                exec(compile(action, self._file, "exec"), self._names)
            except Exception:
                return "Execution failed. Traceback:\n" + traceback.format_exc()
        return printed.getvalue() or "Execution successful."

    def grade(self, answer: str | None) -> Grade:
        right = answer is not None and self.finished and bool(self._names.get("good"))
        observed = "The task was completed." if self.finished else "The task was not completed."
        return Grade(
            score=float(right), correct=right, observed=observed, gold=self._gold, report="passes: 1, failures: 2"
        )

    def _complete(self) -> None:
        self.finished = True


def make_agent(generator: GeneratorSpec, **settings: Any) -> ReAct:
    """Return a ReAct agent; without worked examples and memory unless ``settings`` say otherwise."""
    usual: dict[str, Any] = {
        "prompts": PROMPTS,
        "max_steps": 40,
        "history_chars": 400_000,
        "demonstrations": None,
        "memory": "off",
        "memory_place": "newest",
        "tools": tools("appworld"),
        "parse_replies": "lenient",
        "keep_text_replies": True,
        "max_usd": None,
    }
    return ReAct(generator=generator, **{**usual, **settings})


class Replies:
    """An ``Lm`` that gives one text after the other, the last one for ever; it keeps every prompt."""

    def __init__(self, *texts: str):
        self._texts = list(texts)
        self.prompts: list[list[tuple[str, str]]] = []

    @property
    def texts(self):
        return ["\n".join(content for _, content in prompt) for prompt in self.prompts]

    def __call__(self, messages, schema=None):
        self.prompts.append([(message.role, message.content) for message in messages])
        text = self._texts.pop(0) if len(self._texts) > 1 else self._texts[0]
        return Completion(text=text, usage=Usage(), seconds=0.0)


def code(text: str, thought: str = "") -> str:
    return f"{thought}\n\n```python\n{text}\n```"
