"""Sentences that the official AppWorld agents put into prompts from their code, which is read and never run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from ace_bench.core.errors import DataError
from ace_importers.formats import function, text_of

FILE = Path("experiments") / "code" / "ace" / "adaptation_react.py"


N = TypeVar("N", bound=ast.AST)


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
    """Read the sentences from a checkout; raises ``DataError`` that names what is missing."""
    path = checkout / FILE

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
    """Return placeholders by name with the text that fills them, or that fills them where there is nothing else."""
    for call in nodes:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "replace":
            place, value = text_of(call.args[0]), call.args[-1]
            text = text_of(value.values[-1] if isinstance(value, ast.BoolOp) else value)
            if place is not None and text is not None:
                yield place.strip("{} "), text


def _arguments(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    for word in nodes:
        if isinstance(word, ast.keyword) and word.arg is not None and (text := text_of(word.value)) is not None:
            yield word.arg, text
