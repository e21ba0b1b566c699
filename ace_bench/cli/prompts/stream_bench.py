"""StreamBench (stream-bench/stream-bench): its code is never run.

DDXPlus alone, with examples and with a memory; BIRD-SQL alone and with a memory.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from ace_bench.cli.prompts.formats import (
    either,
    exact_block,
    find_fstrings,
    function,
    join_parts,
    literal,
    naming,
    parse_file,
)
from ace_bench.core.errors import DataError

FILE = Path("stream_bench") / "benchmarks" / "ddxplus.py"
_SQL = Path("stream_bench") / "benchmarks" / "text_to_sql.py"
_LABELS = "LABEL2TEXT"
_LINES = r".splitlines() | map('trim') | join('\n') }}"
_REASONED = 'scaffold == "json"'
_SHOT = {
    "question": "{{ one.question }}"
    "{% if one.rationale is defined and one.rationale %}\nRationale: {{ one.rationale }}{% endif %}",
    "answer": "{{ one.answer }}",
    "correctness": "{{ 'Your answer is correct' if one.correct else 'Your answer is not correct' }}",
}
_HELD_OUT = re.compile(r"\{(\w+)\}")
"""A place that their code fills later."""


def templates(checkout: Path) -> Mapping[str, str]:
    """Return templates by file of the set. Raises ``DataError`` that names the file."""
    ddxplus, sql = checkout / FILE, checkout / _SQL
    cases = {"profile": "{{ question" + _LINES, "option_text": literal(_options(ddxplus))}
    questions = {"schema": "{{ schema" + _LINES, "question": "{{ asked" + _LINES}
    forms = [_zero_shot(ddxplus, cases, form) for form in ("cot", "zeroshot")]
    remembered = [_shown(ddxplus, cases, _entry_template(ddxplus), form) for form in ("fewshotcot", "fewshot")]
    shot = _prompt(ddxplus, "get_shot_template", _SHOT)
    question_only, query = either(_REASONED, *forms), _zero_shot(sql, questions, "zeroshot")
    texts = {
        "ddxplus/base.j2": question_only,
        "ddxplus/demonstrated.j2": _shown(ddxplus, cases, shot, "fewshot", items="examples"),
        "ddxplus/remembered.j2": either("entries", either(_REASONED, *remembered), question_only),
        "bird_sql/base.j2": query,
        "bird_sql/remembered.j2": either("entries", _shown(sql, questions, _entry_template(sql), "fewshot"), query),
    }
    return {name: exact_block(text) for name, text in texts.items()}


def _zero_shot(path: Path, fields: Mapping[str, str], form: str) -> str:
    return _prompt(path, f"get_{form}_prompt", fields)


def _entry_template(path: Path) -> str:
    """Return the template of one entry of a memory."""
    return either("verdicts", *(_prompt(path, f"get_{form}_template", _SHOT) for form in ("memprompt", "shot")))


def _shown(path: Path, fields: Mapping[str, str], entry: str, form: str, items: str = "entries") -> str:
    text = f"{{% for one in {items} %}}{entry}{{% if not loop.last %}}\n\n\n{{% endif %}}{{% endfor %}}"
    return _prompt(path, f"get_{form}_template", {**fields, "fewshot_text": text})


def _prompt(path: Path, name: str, fields: Mapping[str, str]) -> str:
    """Convert the f-string of a function, whose lines their code strips once the places are filled."""
    parts = next(find_fstrings(function(path, name)), None)
    if parts is None:
        raise DataError(f"{path}: {name} has no f-string")
    text = parts[0] + "".join(f"{{{field}}}{after}" for field, after in zip(parts[1::2], parts[2::2], strict=True))
    stripped = "\n".join(line.strip() for line in text.splitlines())
    with naming(path, name):
        return join_parts(_HELD_OUT.split(stripped), fields)


def _options(path: Path) -> str:
    """Return the diagnoses to choose from, one a line."""
    for node in ast.walk(parse_file(path)):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Dict)
            and _LABELS in map(ast.unparse, node.targets)
        ):
            try:
                labels: dict[int, str] = ast.literal_eval(node.value)
                return "\n".join(f"{number}. {name.strip()}" for number, name in labels.items())
            except (ValueError, TypeError, AttributeError, RecursionError, MemoryError) as error:
                raise DataError(f"{path}: {_LABELS} holds more than numbers and names") from error
    raise DataError(f"{path} has no list of diagnoses {_LABELS}")
