"""The finance repository (ace-agent/ace): prompts are string constants of Python modules, which are never run.

The roles are asked with one message each, byte for byte as their code asks for the same sample, playbook and replies.
Two kinds of sentences come from their code: the feedback that the Reflector is given, and what is asked of a number
(Formula).

The finance task was first in ``finance/`` and then moved to ``eval/finance/``. Its ``prompts/`` may replace some of the
prompts in ``ace/prompts/``, as their ``load_prompts`` does. The Reflector's placeholders had no names at first.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

from ace_bench.cli.prompts.formats import (
    arguments,
    assigns,
    constant,
    either,
    exact_block,
    format_fields,
    from_named,
    function,
    literal,
    naming,
    positional,
    text_of,
)
from ace_bench.core.errors import DataError

FOLDER = Path("ace") / "prompts"
_LOOP = Path("ace") / "ace.py"
_TASKS = (Path("eval") / "finance", Path("finance"))
"""Where the finance task may be, the newest place first."""

_PLAYBOOK = "{{ official_playbook() }}"
_QUESTION = "{{ background }}{{ question }}"
_NO_CONTEXT = ""
"""Neither task has a context apart from its question."""


def templates(checkout: Path) -> Mapping[str, str]:
    """Return templates by file of the set. Raises ``DataError`` that names the file and the prompt."""
    right, wrong = _feedback(checkout / _LOOP)
    feedback = either("correct is none", "{{ feedback }}", either("correct", literal(right), literal(wrong)))
    number = "{{ question }}" + literal(_number_format(_task_folder(checkout) / "data_processor.py"))
    return {
        **_roles(checkout, "qa", _QUESTION, feedback),
        **_roles(checkout, "formula", number, feedback),
    }


def _task_folder(checkout: Path) -> Path:
    """Return the folder of the finance task."""
    folders = [checkout / folder for folder in _TASKS]
    return next((folder for folder in folders if folder.is_dir()), folders[-1])


def _roles(checkout: Path, folder: str, question: str, feedback: str) -> Mapping[str, str]:
    replaced = _task_folder(checkout) / "prompts"

    def read(module: str, name: str, convert: Callable[[str], str]) -> str:
        path = replaced / f"{module}.py"
        if not path.exists() or not assigns(path, name):
            path = checkout / FOLDER / f"{module}.py"
        text = constant(path, name)
        with naming(path, name):
            return convert(text)

    def reflector(name: str, fields: Mapping[str, str]) -> str:
        def convert(text: str) -> str:
            return from_named(text, fields) if format_fields(text) else positional(text, [*fields.values()])

        return read("reflector", name, convert)

    generator = (_PLAYBOOK, "{{ raw_reflection }}", question, _NO_CONTEXT)
    with_gold = {
        "question": question,
        "reasoning_trace": "{{ reply }}",
        "predicted_answer": "{{ answer }}",
        "ground_truth": "{{ gold }}",
        "environment_feedback": feedback,
        "bullets_used": "{{ official_excerpt(cited) }}",
    }
    without_gold = {name: value for name, value in with_gold.items() if name != "ground_truth"}
    curator = {
        "token_budget": "{{ token_budget }}",
        "current_step": "{{ step }}",
        "total_samples": "{{ total }}",
        "playbook_stats": "{{ statistics() }}",
        "recent_reflection": "{{ reflection }}",
        "current_playbook": _PLAYBOOK,
        "question_context": _NO_CONTEXT,
    }
    texts = {
        "generator": read("generator", "GENERATOR_PROMPT", lambda text: positional(text, generator)),
        "reflector": either(
            "gold",
            reflector("REFLECTOR_PROMPT", with_gold),
            reflector("REFLECTOR_PROMPT_NO_GT", without_gold),
        ),
        "curator": either(
            'labels == "gold"',
            read("curator", "CURATOR_PROMPT", lambda text: from_named(text, curator)),
            read("curator", "CURATOR_PROMPT_NO_GT", lambda text: from_named(text, curator)),
        ),
    }
    return {f"{folder}/{role}.j2": exact_block(text) for role, text in texts.items()}


def _feedback(path: Path) -> tuple[str, str]:
    """Return the sentences about a right and a wrong answer."""
    for node in ast.walk(function(path, "_train_single_sample")):
        if isinstance(node, ast.If) and isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
            wrong = next(arguments(node.body, "environment_feedback"), None)
            right = next(arguments(node.orelse, "environment_feedback"), None)
            if right is not None and wrong is not None:
                return right, wrong
    raise DataError(f"{path}: _train_single_sample has no texts for environment_feedback")


def _number_format(path: Path) -> str:
    """Return what is appended to a question of Formula."""
    for node in ast.walk(function(path, "parse_context_and_question_formula")):
        if isinstance(node, ast.AugAssign) and (text := text_of(node.value)) is not None:
            return text
    raise DataError(f"{path}: parse_context_and_question_formula appends no text to the question")
