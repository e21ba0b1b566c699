"""Reads texts out of Python files of a checkout, which are parsed and never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from ace_bench.core.errors import DataError


def parse_file(path: Path) -> ast.Module:
    """Parse a Python file; raises ``DataError`` that names it."""
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; is it a checkout of the authors' code?") from error
    except SyntaxError as error:
        raise DataError(f"{path}: line {error.lineno}: not valid Python: {error.msg}") from error
    except ValueError as error:  # not UTF-8, or a null byte
        raise DataError(f"{path}: not a Python file: {error}") from error


def constants(path: Path) -> Mapping[str, str]:
    """Return the texts that a module assigns to names."""
    found: dict[str, str] = {}
    for node in parse_file(path).body:
        if isinstance(node, ast.Assign) and (text := text_of(node.value)) is not None:
            found.update({target.id: text for target in node.targets if isinstance(target, ast.Name)})
    return found


def function(path: Path, name: str) -> ast.FunctionDef:
    """Return the first function of a name, also within classes; raises ``DataError`` if there is none."""
    for node in ast.walk(parse_file(path)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise DataError(f"{path} has no function {name}; is it a checkout of the authors' code?")


def text_of(node: ast.AST | None) -> str | None:
    """Return the text of a constant; ``None`` for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def arguments(nodes: list[ast.stmt], name: str) -> Iterator[str]:
    """Yield the texts that calls within statements pass as the argument ``name``."""
    for node in (inner for statement in nodes for inner in ast.walk(statement)):
        if isinstance(node, ast.keyword) and node.arg == name and (text := text_of(node.value)) is not None:
            yield text


def parts_of(node: ast.AST | None) -> list[str] | None:
    """Return the texts of an f-string and the names between them, which alternate; ``None`` for anything else."""
    if not isinstance(node, ast.JoinedStr):
        return None
    parts = [""]
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            parts += [ast.unparse(value.value), ""]
        else:
            parts[-1] += text_of(value) or ""
    return parts


def formatted(function: ast.FunctionDef) -> Iterator[list[str]]:
    """Yield the parts of all f-strings in a function."""
    for node in ast.walk(function):
        if (parts := parts_of(node)) is not None:
            yield parts


def texts_for(function: ast.FunctionDef, name: str) -> list[str]:
    """Return the texts that a function assigns or appends to a name."""
    found: list[str] = []
    for node in ast.walk(function):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AugAssign) and any(
            isinstance(target, ast.Name) and target.id == name for target in targets
        ):
            text, parts = text_of(node.value), parts_of(node.value)
            found += [text] if text is not None else parts if parts and len(parts) == 1 else []
    return found
