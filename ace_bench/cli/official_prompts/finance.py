"""The finance repository (ace-agent/ace): prompts are string constants of Python modules, which are never run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

from ace_bench.cli.official_prompts.formats import either, named, positional, user_block
from ace_bench.core.errors import DataError

FOLDER = Path("ace") / "prompts"

_ASKED = "{{ background }}{{ question }}"
_STATS = '{"total_bullets": {{ size }}, "total_tokens": {{ tokens }}}'
_GENERATOR = ("{{ official_playbook() }}", "{{ reflection }}", _ASKED, "")
_REFLECTOR = (_ASKED, "{{ reasoning }}", "{{ answer }}", "{{ gold }}", "{{ feedback }}", "{{ bullets }}")
_REFLECTOR_BLIND = tuple(field for field in _REFLECTOR if field != "{{ gold }}")
_CURATOR = {
    "token_budget": "{{ token_budget }}",
    "current_step": "{{ step }}",
    "total_samples": "{{ total }}",
    "playbook_stats": _STATS,
    "recent_reflection": "{{ reflection }}",
    "current_playbook": "{{ official_playbook() }}",
    "question_context": _ASKED,
}


def constants(path: Path) -> Mapping[str, str]:
    """Return the texts that a Python module assigns to names, without running it."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; is it a checkout of the authors' code?") from error
    except SyntaxError as error:
        raise DataError(f"{path}: line {error.lineno}: not valid Python: {error.msg}") from error
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.update({target.id: node.value.value for target in node.targets if isinstance(target, ast.Name)})
    return found


def templates(checkout: Path) -> Mapping[str, str]:
    """Return templates by file of the set; raises ``DataError`` that names the file and the prompt."""

    def read(module: str, name: str, convert: Callable[[str], str]) -> str:
        path = checkout / FOLDER / f"{module}.py"
        text = constants(path).get(name)
        if text is None:
            raise DataError(f"{path} assigns no text to {name}")
        try:
            return convert(text)
        except DataError as error:
            raise DataError(f"{path}: {name}: {error}") from error

    made = {
        "generator": read("generator", "GENERATOR_PROMPT", lambda text: positional(text, _GENERATOR)),
        "reflector": either(
            "gold is not none",
            read("reflector", "REFLECTOR_PROMPT", lambda text: positional(text, _REFLECTOR)),
            read("reflector", "REFLECTOR_PROMPT_NO_GT", lambda text: positional(text, _REFLECTOR_BLIND)),
        ),
        "curator": either(
            'labels == "gold"',
            read("curator", "CURATOR_PROMPT", lambda text: named(text, _CURATOR)),
            read("curator", "CURATOR_PROMPT_NO_GT", lambda text: named(text, _CURATOR)),
        ),
    }
    return {f"qa/{role}.j2": user_block(text) for role, text in made.items()}
