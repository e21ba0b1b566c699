"""StreamBench (stream-bench/stream-bench): DDXPlus alone, with examples and with a memory; its code is never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from ace_bench.core.errors import DataError
from ace_importers.formats import either, exact_block, filled, formatted, function, literal, parse_file

FILE = Path("stream_bench") / "benchmarks" / "ddxplus.py"
_LABELS = "LABEL2TEXT"
_PROFILE = r"{{ question.splitlines() | map('trim') | join('\n') }}"
_SHOT = {
    "question": "{{ one.question }}"
    "{% if one.rationale is defined and one.rationale %}\nRationale: {{ one.rationale }}{% endif %}",
    "answer": "{{ one.answer }}",
    "correctness": "{{ 'Your answer is correct' if one.correct else 'Your answer is not correct' }}",
}
_HELD_OUT = re.compile(r"\{(\w+)\}")
"""A place that their code fills later."""


def templates(checkout: Path) -> Mapping[str, str]:
    """Return templates by file of the set; raises ``DataError`` that names the file."""
    path = checkout / FILE
    shot = _prompt(path, "get_shot_template", _SHOT)
    stored = f"{{% if verdicts %}}{_prompt(path, 'get_memprompt_template', _SHOT)}{{% else %}}{shot}{{% endif %}}"
    fields = {"profile": _PROFILE, "option_text": literal(_options(path))}
    reasoned = 'scaffold == "json"'
    alone = either(reasoned, *(_prompt(path, f"get_{name}_prompt", fields) for name in ("cot", "zeroshot")))

    def shown(items: str, one: str, form: str = "fewshot") -> str:
        text = f"{{% for one in {items} %}}{one}{{% if not loop.last %}}\n\n\n{{% endif %}}{{% endfor %}}"
        return _prompt(path, f"get_{form}_template", {**fields, "fewshot_text": text})

    remembered = either(reasoned, shown("entries", stored, "fewshotcot"), shown("entries", stored))
    return {
        "ddxplus/base.j2": exact_block(alone),
        "ddxplus/demonstrated.j2": exact_block(shown("examples", shot)),
        "ddxplus/remembered.j2": exact_block(either("entries", remembered, alone)),
    }


def _prompt(path: Path, name: str, fields: Mapping[str, str]) -> str:
    """Convert the f-string of a function, whose lines their code strips once the places are filled."""
    parts = next(formatted(function(path, name)), None)
    if parts is None:
        raise DataError(f"{path}: {name} has no f-string")
    text = parts[0] + "".join(f"{{{field}}}{behind}" for field, behind in zip(parts[1::2], parts[2::2], strict=True))
    stripped = "\n".join(line.strip() for line in text.splitlines())
    try:
        return filled(_HELD_OUT.split(stripped), fields)
    except DataError as error:
        raise DataError(f"{path}: {name}: {error}") from error


def _options(path: Path) -> str:
    """Return the diagnoses to choose from, one a line."""
    for node in ast.walk(parse_file(path)):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Dict)
            and ast.unparse(node.targets[0]) == _LABELS
        ):
            try:
                labels: dict[int, str] = ast.literal_eval(node.value)
            except ValueError as error:
                raise DataError(f"{path}: {_LABELS} holds more than numbers and names") from error
            return "\n".join(f"{number}. {name.strip()}" for number, name in labels.items())
    raise DataError(f"{path} has no list of diagnoses {_LABELS}")
