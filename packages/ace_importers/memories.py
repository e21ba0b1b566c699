"""Agent Workflow Memory, ReasoningBank and Reflexion: what their inducer, extractor and reflector are asked.

Their code is read, never run. An agent's steps keep our words; on questions reasoning and answer are one step, as in
their logs. Workflows are read as JSON, so the form of the reply stands before AWM's prompt, in the system message.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from ace_bench.core.errors import DataError
from ace_importers.formats import (
    constant,
    either,
    exact_block,
    find_fstrings,
    from_named,
    function,
    literal,
    read_file,
    text_of,
    texts_for,
    worded,
)

AWM = Path("webarena") / "prompt" / "instruction.txt"
REASONING_BANK = Path("WebArena") / "prompts" / "memory_instruction.py"
REFLEXION = Path("hotpotqa_runs") / "prompts.py"
_INDUCE_PROMPT = Path("webarena") / "induce_prompt.py"
_INDUCE_MEMORY = Path("WebArena") / "induce_memory.py"
_INDUCE_SCALING = Path("WebArena") / "induce_scaling.py"
_SHOTS = Path("hotpotqa_runs") / "fewshots.py"
_ACTING = Path("alfworld_runs") / "generate_reflections.py"
_TRIAL = "\nThought: {{ reasoning }}\nAction: Finish[{{ answer }}]\nObservation: Answer is INCORRECT"


def awm(checkout: Path) -> Mapping[str, str]:
    """Return the inducer's templates by file of the set; raises ``DataError`` that names the file."""
    path = checkout / _INDUCE_PROMPT
    lists = (node for node in ast.walk(function(path, "format_examples")) if isinstance(node, ast.List))
    ordered = sorted(lists, key=lambda node: (node.lineno, node.col_offset))
    heads = [text for node in ordered for text in map(text_of, node.elts) if text]
    if len(heads) != 2:
        raise DataError(f"{path}: format_examples has no heading before the examples and one behind them")
    texts = (read_file(checkout / AWM), read_file((checkout / AWM).with_name("one_shot.txt")), heads[0])
    asked = "\n\n".join((*map(literal, texts), r"{{ experiences | join('\n\n') }}", literal(heads[1])))
    form = '{% block system %}{% include "_workflow_form.j2" %}{% endblock %}\n'
    fields = {"ex['query']": "{{ question }}", "trajectory": _steps(path)}
    experience = exact_block(worded(path, "format_examples", fields))
    return {
        f"{group}/{name}.j2": text
        for group in ("qa", "agent")
        for name, text in {"inducer": form + exact_block(asked), "experience": experience}.items()
    }


def reasoning_bank(checkout: Path) -> Mapping[str, str]:
    """Return the extractor's templates, of one attempt and of several; raises ``DataError`` that names the file."""
    path, said = checkout / _INDUCE_MEMORY, checkout / REASONING_BANK
    system = either("success", *(literal(constant(said, name)) for name in ("SUCCESSFUL_SI", "FAILED_SI")))
    attempt = worded(path, "main", {"ex['query']": "{{ question }}", "trajectory": _steps(path)})
    status = "{{ 'succeeded' if success else 'failed' }}"
    why = worded(path, "main", {"status_label": status, "autoeval_thoughts": "{{ reasons }}"})
    asked = exact_block(system, "system_exact") + exact_block(f"{attempt}{{% if reasons %}}{why}{{% endif %}}")
    scaling = checkout / _INDUCE_SCALING
    several = (
        worded(scaling, "main", {"ex['query']": "{{ question }}"}),
        "{% for one in attempts %}",
        worded(scaling, "main", {"i + 1": "{{ loop.index }}"}),
        "{{ one.trajectory or one.reply }}\n\n{% endfor %}",  # their main joins a step's text and two line breaks
    )
    contrast = exact_block(literal(constant(said, "PARALLEL_SI")), "system_exact") + exact_block("".join(several))
    files = {"extractor": asked, "contrast": contrast}
    return {f"{group}/{name}.j2": text for group in ("qa", "agent") for name, text in files.items()}


def reflexion(checkout: Path) -> Mapping[str, str]:
    """Return the reflector's templates for questions and for agents; raises ``DataError`` that names the file."""
    path = checkout / REFLEXION
    fields = {
        "examples": literal(constant(checkout / _SHOTS, "COT_REFLECT")),
        "context": "{{ background }}",
        "question": "{{ question }}",
        "scratchpad": _TRIAL,
    }
    acting = checkout / _ACTING
    examples, name = read_file(acting.with_name("reflexion_few_shot_examples.txt")), "_generate_reflection_query"
    said = sorted(texts_for(function(acting, name), "query"), key=lambda text: text.endswith("\n"))
    if len(said) != 2:
        raise DataError(f"{acting}: {name} words no earlier plans and no end")
    log = {"FEW_SHOT_EXAMPLES": literal(examples), "scenario": "{{ question }}\n{{ trajectory }}"}
    earlier = f"{{% if reflections %}}{literal(said[1])}{{{{ reflections }}}}\n{{% endif %}}"
    asked = from_named(constant(path, "COT_REFLECT_INSTRUCTION"), fields)
    return {
        "qa/self_reflection.j2": exact_block(asked),
        "agent/self_reflection.j2": exact_block(f"{worded(acting, name, log)}{earlier}{literal(said[0])}"),
    }


def _steps(path: Path) -> str:
    """Return the template of an agent's steps, or of reasoning and answer as one step."""
    names = [parts[1::2] for parts in find_fstrings(function(path, "format_trajectory"))]
    if not names or len(names[0]) != 2:
        raise DataError(f"{path}: format_trajectory words no thought and action")
    step = dict(zip(names[0], ("{{ reasoning }}", "{{ answer }}"), strict=True))
    return either("trajectory", "{{ trajectory }}", worded(path, "format_trajectory", step))
