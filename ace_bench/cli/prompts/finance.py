"""The finance repository (ace-agent/ace): prompts are string constants of Python modules, which are never run.

The roles are asked with one message each, byte for byte as their code asks for the same sample, playbook and replies.
Two kinds of sentences come from their code: the feedback that the Reflector is given, and what is asked of a number
(Formula).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

from ace_bench.cli.prompts.formats import (
    arguments,
    constant,
    either,
    exact_block,
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
_DATA = Path("finance") / "data_processor.py"

_PLAYBOOK = "{{ official_playbook() }}"
_QUESTION = "{{ background }}{{ question }}"
_NO_CONTEXT = ""
"""Neither task has a context apart from its question."""


def templates(checkout: Path) -> Mapping[str, str]:
    """Return templates by file of the set. Raises ``DataError`` that names the file and the prompt."""
    right, wrong = _feedback(checkout / _LOOP)
    feedback = either("correct is none", "{{ feedback }}", either("correct", literal(right), literal(wrong)))
    number = "{{ question }}" + literal(_number_format(checkout / _DATA))
    return {
        **_roles(checkout, "qa", _QUESTION, feedback),
        **_roles(checkout, "formula", number, feedback),
    }


def _roles(checkout: Path, folder: str, question: str, feedback: str) -> Mapping[str, str]:
    def read(module: str, name: str, convert: Callable[[str], str]) -> str:
        path = checkout / FOLDER / f"{module}.py"
        text = constant(path, name)
        with naming(path, name):
            return convert(text)

    generator = (_PLAYBOOK, "{{ raw_reflection }}", question, _NO_CONTEXT)
    with_gold = (question, "{{ reply }}", "{{ answer }}", "{{ gold }}", feedback, "{{ official_excerpt(cited) }}")
    without_gold = tuple(field for field in with_gold if field != "{{ gold }}")
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
            read("reflector", "REFLECTOR_PROMPT", lambda text: positional(text, with_gold)),
            read("reflector", "REFLECTOR_PROMPT_NO_GT", lambda text: positional(text, without_gold)),
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
