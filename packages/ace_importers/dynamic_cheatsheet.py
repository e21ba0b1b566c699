"""Dynamic Cheatsheet (suzgunmirac/dynamic-cheatsheet): prompts are text files with placeholders in brackets.

Sentences that its code adds (around the output of code, and around earlier solutions) are read from the code, which is
never run. Its authors give the curator no labels: with ``labels=none`` the prompts equal theirs, otherwise what the
labels show follows the model's answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ace_bench.core.errors import DataError
from ace_importers.formats import (
    bracketed,
    convert_file,
    either,
    exact_block,
    filled,
    formatted,
    function,
    literal,
    texts_for,
)

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
    """Return templates by file of the set; raises ``DataError`` that names the file."""
    made = {
        "qa/cheatsheet.j2": _read(
            checkout, "generator_prompt.txt", {"CHEATSHEET": "{{ cheatsheet }}", "QUESTION": _QUESTION}
        ),
        "qa/cheatsheet_episode.j2": "{{ reply }}",
        "qa/cheatsheet_pairs.j2": _solutions(checkout, "{{ background }}"),
        "agent/cheatsheet_pairs.j2": _solutions(checkout, ""),
        **_curators(checkout, "qa", "{{ background }}", "{{ reply }}"),
        **_curators(checkout, "agent", "", "{{ trajectory }}"),
    }
    return {**{name: exact_block(text) for name, text in made.items()}, "common/executed.j2": _executed(checkout)}


def _curators(checkout: Path, folder: str, background: str, answer: str) -> Mapping[str, str]:
    """Return the curator's two prompts; an agent's answer is its steps."""
    question = background + "{{ question }}"
    cumulative = {
        "PREVIOUS_CHEATSHEET": _CHEATSHEET,
        "QUESTION": question,
        "MODEL_ANSWER": answer + _truth("feedback", "gold"),
    }
    synthesis = {
        "PREVIOUS_CHEATSHEET": _CHEATSHEET,
        "PREVIOUS_INPUT_OUTPUT_PAIRS": _solutions(checkout, background),
        "NEXT_INPUT": question,
    }
    return {
        f"{folder}/cheatsheet_curator.j2": _read(checkout, "curator_prompt_for_dc_cumulative.txt", cumulative),
        f"{folder}/cheatsheet_synthesis.j2": _read(
            checkout, "curator_prompt_for_dc_retrieval_synthesis.txt", synthesis
        ),
    }


def _read(checkout: Path, name: str, fields: Mapping[str, str]) -> str:
    return convert_file(checkout / _PROMPTS / name, lambda text: bracketed(text, fields))


def _solutions(checkout: Path, background: str) -> str:
    """Return a template of the earlier solutions, the most similar last."""
    source = function(checkout / _MODEL, "advanced_generate")
    texts = sorted(texts_for(source, "curated_cheatsheet"), key=len)
    entry = next((parts for parts in formatted(source) if "similarity" in parts), None)
    ending = next((text for text in texts if text.startswith("\n\n")), None)
    if entry is None or ending is None:
        raise DataError(f"{checkout / _MODEL} words no earlier solutions with their similarity")
    last = entry[-1].rstrip()
    shown = filled(
        [*entry[:-1], last],
        {
            "i + 1": "{{ loop.index }}",
            "similarity": '{{ "%.2f" | format(one.similarity) }}',
            "previous_input_txt": background + "{{ one.episode.question }}",
            "previous_output_txt": "{{ one.episode.output }}" + _truth("one.episode.feedback", "one.episode.reference"),
        },
    )
    between = f"{{% if not loop.last %}}{entry[-1][len(last) :]}{{% endif %}}"
    pairs = f"{literal(texts[-1])}{{% for one in retrieved %}}{shown}{between}{{% endfor %}}{literal(ending)}"
    return either("retrieved", pairs, "(empty)")


def _executed(checkout: Path) -> str:
    """Return the template of two messages: the reply with the output of its code, and what is asked next."""
    source = function(checkout / _MODEL, "generate")
    asked = next((parts for parts in formatted(source) if "warning_txt" in parts), None)
    said = next((parts for parts in formatted(source) if "executed_code" in parts and "output_prefix" in parts), None)
    warning = max(texts_for(source, "warning_txt"), key=len, default="")
    output = next(
        (one for one in formatted(function(checkout / _CODE, "extract_and_run_python_code")) if "python_output" in one),
        None,
    )
    if asked is None or said is None or output is None:
        raise DataError(f"{checkout / FOLDER}: no texts around the output of code")
    reply = {
        "output_prefix": f"{{{{ shown.removesuffix('{_FLAG}') | trim }}}}",
        "code_execution_flag": _FLAG,
        "executed_code": filled(output, {"python_output": "{{ output }}"}),
    }
    last = f"{{% if left <= 1 %}}{literal(warning)}{{% endif %}}"
    return exact_block(filled(said, reply), "assistant_exact_1") + exact_block(
        filled(asked, {"warning_txt": last}), "user_exact_2"
    )
