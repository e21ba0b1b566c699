"""Sentences that the official AppWorld agents put into prompts from their code, which is read and never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ace_bench.core.errors import DataError
from ace_importers.formats import function, text_of

FILE = Path("experiments") / "code" / "ace" / "adaptation_react.py"


@dataclass(frozen=True, kw_only=True)
class Texts:
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
        before, after = _message_texts(inside("next_execution_inputs_and_cost"))
        reflector, trimming = inside("reflector_call"), inside("trimmed_messages")
        return Texts(
            retry=(before, after),
            reflector=dict(_replacements(reflector)),
            curator=dict(_arguments(inside("curator_call"))),
            history=next(_find_assigned(reflector, ast.Name)),
            cut=next(_find_added(inside("truncate_output"))),
            output_left_out=next(_find_assigned(trimming, ast.Subscript)),
            history_left_out=next(_find_called(trimming, "endswith")),
        )
    except (StopIteration, ValueError) as error:
        raise DataError(f"{path} is not of the form of ace-agent/ace-appworld at 748a9dc") from error


def _message_texts(nodes: list[ast.AST]) -> list[str]:
    """Return the contents of the messages that are written out."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Dict):
            fields = dict(zip(map(text_of, node.keys), node.values, strict=True))
            if (text := text_of(fields.get("content"))) is not None:
                found.append((node.lineno, text))
    return [text for _, text in sorted(found)]


def _calls(nodes: list[ast.AST], name: str) -> Iterator[ast.Call]:
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
            yield node


def _replacements(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """Return placeholders by name with the text that fills them, or that fills them where there is nothing else."""
    for call in _calls(nodes, "replace"):
        place, value = map(text_of, call.args), call.args[-1]
        fallback = value.values[-1] if isinstance(value, ast.BoolOp) else value
        name, text = next(place), text_of(fallback)
        if name is not None and text is not None:
            yield name.strip("{} "), text


def _arguments(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    for call in _calls(nodes, "format"):
        for word in call.keywords:
            if word.arg is not None and (text := text_of(word.value)) is not None:
                yield word.arg, text


def _find_assigned(nodes: list[ast.AST], kind: type[ast.expr]) -> Iterator[str]:
    """Return the texts assigned to targets of a kind."""
    for node in nodes:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], kind)
            and (text := text_of(node.value)) is not None
        ):
            yield text


def _find_added(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.BinOp) and (text := text_of(node.right)) is not None:
            yield text


def _find_called(nodes: list[ast.AST], name: str) -> Iterator[str]:
    for call in _calls(nodes, name):
        if (text := text_of(call.args[0])) is not None:
            yield text
