"""Dynamic Cheatsheet (suzgunmirac/dynamic-cheatsheet): prompts are text files with placeholders in brackets.

Sentences that its code adds (around the output of code, and around earlier solutions) are read from the code, which is
never run. Its authors give the curator no labels: with ``labels=none`` the prompts equal theirs, otherwise what the
labels show follows the model's answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ace_bench.cli.prompts.formats import (
    convert_file,
    either,
    exact_block,
    from_bracketed,
    function,
    literal,
    texts_for,
    worded,
)
from ace_bench.core.errors import DataError

FOLDER = Path("dynamic_cheatsheet")
_PROMPTS = Path("prompts")
_MODEL = FOLDER / "language_model.py"
_CODE = FOLDER / "utils" / "execute_code.py"

_QUESTION = "{{ background }}{{ question }}"
_CHEATSHEET = '{{ cheatsheet or "(empty)" }}'
_FLAG = "EXECUTE CODE!"


def _truth(feedback: str, gold: str) -> str:
    return (
        f"{{% if {feedback} %}}\n\nFeedback: {{{{ {feedback} }}}}{{% endif %}}"
        f"{{% if {gold} %}}\n\nReference answer: {{{{ {gold} }}}}{{% endif %}}"
    )


def templates(checkout: Path) -> Mapping[str, str]:
    """Return templates by file of the set. Raises ``DataError`` that names the file."""
    texts = {
        "qa/cheatsheet.j2": _read(checkout, "generator_prompt", CHEATSHEET="{{ cheatsheet }}", QUESTION=_QUESTION),
        "qa/cheatsheet_episode.j2": "{{ reply }}",
        "qa/cheatsheet_pairs.j2": _solutions(checkout, "{{ background }}"),
        "agent/cheatsheet_pairs.j2": _solutions(checkout, ""),
        **_curators(checkout, "qa", "{{ background }}", "{{ reply }}"),
        **_curators(checkout, "agent", "", "{{ trajectory }}"),
    }
    return {**{name: exact_block(text) for name, text in texts.items()}, "common/executed.j2": _code_template(checkout)}


def _curators(checkout: Path, folder: str, background: str, answer: str) -> Mapping[str, str]:
    """Return the curator's two prompts; an agent's answer is its steps."""
    question = background + "{{ question }}"
    cumulative = {"QUESTION": question, "MODEL_ANSWER": answer + _truth("feedback", "gold")}
    synthesis = {"NEXT_INPUT": question, "PREVIOUS_INPUT_OUTPUT_PAIRS": _solutions(checkout, background)}
    forms = {
        "curator": ("curator_prompt_for_dc_cumulative", cumulative),
        "synthesis": ("curator_prompt_for_dc_retrieval_synthesis", synthesis),
    }
    return {
        f"{folder}/cheatsheet_{role}.j2": _read(checkout, name, PREVIOUS_CHEATSHEET=_CHEATSHEET, **fields)
        for role, (name, fields) in forms.items()
    }


def _read(checkout: Path, name: str, **fields: str) -> str:
    return convert_file(checkout / _PROMPTS / f"{name}.txt", lambda text: from_bracketed(text, fields))


def _solutions(checkout: Path, background: str) -> str:
    """Return a template of the earlier solutions, the most similar last."""
    path, name = checkout / _MODEL, "advanced_generate"
    texts = sorted(texts_for(function(path, name), "curated_cheatsheet"), key=len)
    ending = next((text for text in texts if text.startswith("\n\n")), None)
    if ending is None:
        raise DataError(f"{path}: {name} has no text behind the earlier solutions")
    fields = {
        "i + 1": "{{ loop.index }}",
        "similarity": '{{ "%.2f" | format(one.similarity) }}',
        "previous_input_txt": background + "{{ one.episode.question }}",
        "previous_output_txt": "{{ one.episode.output }}" + _truth("one.episode.feedback", "one.episode.reference"),
    }
    entry = worded(path, name, fields)
    stripped = entry.rstrip()
    between = f"{{% if not loop.last %}}{entry[len(stripped) :]}{{% endif %}}"
    pairs = f"{literal(texts[-1])}{{% for one in retrieved %}}{stripped}{between}{{% endfor %}}{literal(ending)}"
    return either("retrieved", pairs, "(empty)")


def _code_template(checkout: Path) -> str:
    """Return the template of two messages: the reply with the output of its code, and what is asked next."""
    path, name = checkout / _MODEL, "generate"
    warning = max(texts_for(function(path, name), "warning_txt"), key=len, default="")
    reply = {
        "output_prefix": f"{{{{ shown.removesuffix('{_FLAG}') | trim }}}}",
        "code_execution_flag": _FLAG,
        "executed_code": worded(checkout / _CODE, "extract_and_run_python_code", {"python_output": "{{ output }}"}),
    }
    request = worded(path, name, {"warning_txt": f"{{% if left <= 1 %}}{literal(warning)}{{% endif %}}"})
    return exact_block(worded(path, name, reply), "assistant_exact_1") + exact_block(request, "user_exact_2")
