"""The AppWorld repository (ace-agent/ace-appworld): prompts are text files, recognised by their placeholders.

Some sentences of the prompts stand in the authors' code, which is read and never run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from ace_bench.cli.prompts.formats import (
    convert_file,
    doubled_fields,
    either,
    exact_block,
    format_fields,
    from_doubled,
    from_named,
    function,
    literal,
    read_file,
    text_of,
)
from ace_bench.core.errors import DataError

REPOSITORY = "ace-agent/ace-appworld"
FOLDER = Path("experiments") / "prompts"
_CONFIGS = Path("experiments") / "configs"
_CODE = Path("experiments") / "code" / "ace" / "adaptation_react.py"
N = TypeVar("N", bound=ast.AST)

_CONFIGURED = re.compile(r'_prompt_file_path"?\s*:.*?["/]([^/"\n]+)"')
_TURN = re.compile(r"(USER|ASSISTANT|SYSTEM):\n", re.IGNORECASE)
_PLAYBOOK = "official_playbook(counters=false)"
_PERSON = ("first_name", "last_name", "email", "phone_number")
_GENERATOR = {
    "playbook": f"{{{{ {_PLAYBOOK} }}}}",
    "app_descriptions": "{{ app_descriptions }}",
    "input_str": "{{ question }}",
    **{f"main_user.{field}": f"{{{{ {field} }}}}" for field in _PERSON},
}
_REFLECTOR = {"ground_truth_code": "gold", "test_report": "report", "playbook": _PLAYBOOK}
"""Placeholders with a value of their own; the code's fixed texts fill the others."""
_TRUTH = frozenset({"ground_truth_code", "test_report"})
_CURATOR = {
    "question_context": "{{ question }}",
    "current_playbook": f"{{{{ {_PLAYBOOK} }}}}",
    "guidebook": "{{ reflection }}",
}
_PLACES = frozenset({*_REFLECTOR, "generated_code", "generated_rationale", "spec_or_api_docs", "execution_error"})
_STEPS = (
    "{% for message in conversation() %}[{{ loop.index0 }}] {{ message.role | upper }}: {{ message.content }}\n\n"
    "{% endfor %}"
)
_OUTPUT_CHARS = 20_000


ROLES: Mapping[str, str] = MappingProxyType(
    {
        "generator": "Generator with a playbook",
        "react": "Agent without a playbook",
        "reflector": "Reflector with ground truth",
        "reflector-blind": "Reflector without ground truth",
        "curator": "Curator",
    }
)


def role_of(text: str) -> str | None:
    """Return the role whose placeholders a text has. ``None`` means that the text is not a prompt of these roles."""
    names = doubled_fields(text)
    if "input_str" in names and _TURN.match(text.lstrip()):
        return "generator" if "playbook" in names else "react"
    if (names - {"playbook"}) & _PLACES:
        return "reflector" if names & _TRUTH else "reflector-blind"
    return "curator" if "current_playbook" in format_fields(text) else None


def find(checkout: Path, named_files: Mapping[str, Path | None]) -> Mapping[str, Path]:
    """Return the file of each role: the given one, else the only one that fits.

    Of several that fit, it is the only one that the authors' experiments name, else the one of the role's name. A given
    file is looked for here, in the checkout and in its folder of prompts. Raises ``DataError``.
    """
    texts = dict(_texts(checkout / FOLDER))
    configured = {name for _, text in _texts(checkout / _CONFIGS) for name in _CONFIGURED.findall(text)}
    files: dict[str, Path] = {}
    for role, title in ROLES.items():
        if (named_file := named_files.get(role)) is not None:
            places = (named_file, checkout / named_file, checkout / FOLDER / named_file)
            files[role] = next((path for path in places if path.is_file()), places[1])
            continue
        fitting = [path for path, text in texts.items() if role_of(text) == role]
        fitting = [path for path in fitting if path.name in configured] or fitting
        fitting = [path for path in fitting if path.stem == role] or fitting
        if len(fitting) != 1:
            names = ": " * bool(fitting) + ", ".join(str(path.relative_to(checkout)) for path in fitting)
            count = f"{len(fitting)} files could be" if fitting else "no file looks like"
            raise DataError(f"{checkout / FOLDER}: {count} the {title}{names}; name it with --{role} FILE")
        files[role] = fitting[0]
    return files


def _texts(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with suppress(DataError):  # a picture, a program, or data
                yield path, read_file(path)


class Texts(NamedTuple):
    """``retry`` stands before and after a reflection in the next attempt's conversation.

    ``reflector`` and ``curator`` are the fixed values of placeholders, or what an empty value is replaced by.
    ``history`` heads the conversation in both prompts. ``cut`` ends an output that was cut, ``output_left_out``
    replaces an output and ``history_left_out`` ends a task whose first steps were left out.
    """

    retry: tuple[str, str]
    reflector: Mapping[str, str]
    curator: Mapping[str, str]
    history: str
    cut: str
    output_left_out: str
    history_left_out: str


def read_texts(checkout: Path) -> Texts:
    """Read the sentences from a checkout. Raises ``DataError`` that names what is missing."""
    path = checkout / _CODE

    def inside(name: str) -> list[ast.AST]:
        return list(ast.walk(function(path, name)))

    try:
        before, after = _constants(inside("next_execution_inputs_and_cost"), ast.Dict, _content)
        reflector, trimming = inside("reflector_call"), inside("trimmed_messages")
        return Texts(
            retry=(before, after),
            reflector=dict(_replacements(reflector)),
            curator=dict(_arguments(inside("curator_call"))),
            history=_constants(reflector, ast.Assign, lambda node: node.value)[0],
            cut=_constants(inside("truncate_output"), ast.BinOp, lambda node: node.right)[0],
            output_left_out=_constants(trimming, ast.Assign, lambda node: node.value)[0],
            history_left_out=_constants(trimming, ast.AugAssign, lambda node: node.value)[0],
        )
    except (IndexError, ValueError) as error:
        raise DataError(f"{path} is not of the form of ace-agent/ace-appworld at 748a9dc") from error


def _constants(nodes: list[ast.AST], kind: type[N], part: Callable[[N], ast.AST | None]) -> list[str]:
    """Return the texts that stand in a part of the nodes of a kind."""
    return [text for node in nodes if isinstance(node, kind) and (text := text_of(part(node))) is not None]


def _content(message: ast.Dict) -> ast.AST | None:
    return dict(zip(map(text_of, message.keys), message.values, strict=True)).get("content")


def _replacements(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """Return placeholders by name with the text that fills them, or that fills them without another text."""
    for call in nodes:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "replace":
            placeholder, value = text_of(call.args[0]), call.args[-1]
            text = text_of(value.values[-1] if isinstance(value, ast.BoolOp) else value)
            if placeholder is not None and text is not None:
                yield placeholder.strip("{} "), text


def _arguments(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    for word in nodes:
        if isinstance(word, ast.keyword) and word.arg is not None and (text := text_of(word.value)) is not None:
            yield word.arg, text


def templates(
    checkout: Path, named_files: Mapping[str, Path | None], say: Callable[[str], object]
) -> Mapping[str, str]:
    """Return templates by file of the set, and ``say`` the file of each role. Raises ``DataError`` that names it."""
    files, texts = find(checkout, named_files), read_texts(checkout)
    for role, title in ROLES.items():
        say(f"{title}: {files[role]}")
    steps = literal(texts.history) + _STEPS
    fixed = {name: literal(text) for name, text in texts.reflector.items()}
    reflector = fixed | {
        name: either(field, f"{{{{ {field} }}}}", fixed.get(name, "")) for name, field in _REFLECTOR.items()
    }
    blind = reflector | dict.fromkeys(_TRUTH, "")  # one file may serve both
    curator = {name: literal(text) for name, text in texts.curator.items()} | _CURATOR
    with_gold = convert_file(files["reflector"], lambda text: from_doubled(text, reflector))
    without_gold = convert_file(files["reflector-blind"], lambda text: from_doubled(text, blind))
    return {
        "agent/generator.j2": convert_file(files["generator"], dialogue),
        "agent/base.j2": convert_file(files["react"], dialogue),
        "agent/reflector.j2": exact_block(either('labels == "gold"', with_gold, without_gold) + steps),
        "agent/curator.j2": exact_block(convert_file(files["curator"], lambda text: from_named(text, curator)) + steps),
        **_conversation(texts),
    }


def _conversation(texts: Texts) -> Mapping[str, str]:
    """Return the templates of what follows the first messages of an attempt."""
    before, after = map(literal, texts.retry)
    cut = f"{{% if raw_output | length > {_OUTPUT_CHARS} %}}{literal(texts.cut)}{{% endif %}}"
    output = f"Output:\n```\n{{{{ raw_output[:{_OUTPUT_CHARS}] }}}}{cut}```\n\n"
    no_code = "Output:\n```\n(The reply held no code to run.)```\n\n"
    memory = "{% if memory %}<memory>\n{{ memory }}\n</memory>\n\n{% endif %}"
    return {
        "agent/observation.j2": exact_block(either("raw_output is none", no_code, output) + memory),
        "agent/retry.j2": exact_block(before, "user_exact_1")
        + exact_block("{{ reflection }}\n\n", "assistant_exact_2")
        + exact_block(after, "user_exact_3"),
        "agent/left_out.j2": exact_block(literal(texts.output_left_out), "user_exact_output")
        + exact_block(literal(texts.history_left_out), "user_exact_history"),
    }


def dialogue(text: str) -> str:
    """Turn a prompt file of an agent into a template: a dialogue whose turns are split once it is filled."""
    lines = text.lstrip().removesuffix("\n")  # as Jinja reads their file
    if not _TURN.match(lines):
        raise DataError("no dialogue that begins with a turn USER:")
    return exact_block(from_doubled(lines, _GENERATOR) + "\n\n", "dialogue")
