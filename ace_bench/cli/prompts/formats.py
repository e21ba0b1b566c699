"""Reads prompts of other projects and converts them into Jinja templates: placeholders become fields, text stays."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ace_bench.core.errors import DataError

_PLACE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.]*)\s*-?\}\}")
_BRACKETS = re.compile(r"\[\[([A-Z_]+)\]\]")
_OPEN_TAG = re.compile(r"\{[%#]")
_MOST_BYTES = 1 << 20
"""Of a file that is read: prompts and the modules around them are far smaller."""


def positional(text: str, fields: Sequence[str]) -> str:
    """Turn a format string with one ``{}`` for each field, in their order, into a template."""
    parts = _split_format(text)
    if len(parts) // 2 < len(fields):
        raise DataError(f"fewer than {len(fields)} placeholders")
    numbered = [name or str(index // 2) if index % 2 else name for index, name in enumerate(parts)]
    return join_parts(numbered, dict(zip(map(str, range(len(fields))), fields, strict=True)))


def from_named(text: str, fields: Mapping[str, str]) -> str:
    """Turn a format string with named fields into a template; unused fields are left out."""
    return join_parts(_split_format(text), fields)


def format_fields(text: str) -> frozenset[str]:
    """Return the field names of a format string; empty if it is not a format string."""
    try:
        return frozenset(name for _, name, _, _ in string.Formatter().parse(text) if name)
    except ValueError:
        return frozenset()


def from_doubled(text: str, fields: Mapping[str, str]) -> str:
    """Turn a text with placeholders such as ``{{name}}`` into a template; other braces, as in example code, stay."""
    last = {mark: text.rfind(f"{mark}}}") for mark in "%#"}
    for tag in _OPEN_TAG.finditer(text):
        if last[tag[0][1]] >= tag.end():
            raise DataError(f"a template statement, not a placeholder: {text[tag.start() :][:60]}")
    return join_parts(_PLACE.split(text), fields)


def from_bracketed(text: str, fields: Mapping[str, str]) -> str:
    """Turn a text with placeholders such as ``[[NAME]]``, each of ``fields`` at least once, into a template."""
    if missing := [name for name in fields if f"[[{name}]]" not in text]:
        raise DataError(f"no placeholder [[{missing[0]}]]")
    return join_parts(_BRACKETS.split(text), fields)


def join_parts(parts: Sequence[str], fields: Mapping[str, str]) -> str:
    """Join text and names of placeholders, which alternate, to a template."""
    pieces = [literal(parts[0])]
    for name, after in zip(parts[1::2], parts[2::2], strict=True):
        if name not in fields:
            raise DataError(f"an unknown placeholder: {name}")
        pieces += [fields[name], literal(after)]
    return "".join(pieces)


def doubled_fields(text: str) -> frozenset[str]:
    """Return the names of placeholders such as ``{{name}}``."""
    return frozenset(_PLACE.findall(text))


def literal(text: str) -> str:
    """Escape text for Jinja: braces that could open a tag, and carriage returns, are written as values."""
    return text.replace("{", "{{ '{' }}").replace("\r", "{{ '\\r' }}")


def exact_block(text: str, block: str = "user_exact") -> str:
    """Wrap a template of one message that keeps every byte."""
    return f"{{% block {block} %}}{text}{{% endblock %}}\n"


def either(condition: str, first: str, second: str) -> str:
    """Choose between two templates by a condition on the fields."""
    return f"{{% if {condition} %}}{first}{{% else %}}{second}{{% endif %}}"


def _split_format(text: str) -> list[str]:
    """Return the texts and names of a format string, which alternate; a doubled brace is one."""
    parts = [""]
    try:
        for before, name, spec, conversion in string.Formatter().parse(text):
            parts[-1] += before
            if name is not None:
                parts += [name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else ""), ""]
    except ValueError as error:
        raise DataError(f"not a format string: {error}") from error
    return parts


@contextmanager
def naming(*places: object) -> Iterator[None]:
    """Put the file, and perhaps the name in it, before the message of a ``DataError``."""
    try:
        yield
    except DataError as error:
        raise DataError(": ".join(map(str, [*places, error]))) from error


def read_file(path: Path) -> str:
    """Read a text of a checkout. Raises ``DataError`` that names the file, also for one that is very large."""
    try:
        if path.stat().st_size > _MOST_BYTES or not path.is_file():
            raise DataError(
                f"{path} is not a file, or larger than {_MOST_BYTES >> 20} MiB; is it a checkout of the authors' code?"
            )
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; is it a checkout of the authors' code?") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 (byte {error.start + 1})") from error


def convert_file(path: Path, convert: Callable[[str], str]) -> str:
    """Convert a text of a checkout. Raises ``DataError`` that names the file."""
    text = read_file(path)
    with naming(path):
        return convert(text)


def parse_file(path: Path) -> ast.Module:
    """Parse a Python file. Raises ``DataError`` that names it."""
    try:
        return ast.parse(read_file(path))
    except SyntaxError as error:
        raise DataError(f"{path}: line {error.lineno}: not valid Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:  # a null byte, or deep nesting
        raise DataError(f"{path}: not a Python file that can be read: {error}") from error


def constant(path: Path, name: str) -> str:
    """Return the text that a module last assigns to a name, perhaps by the name of another text.

    Raises ``DataError`` that names both.
    """
    for value in _assigned(path, name):
        named = next(_assigned(path, value.id), None) if isinstance(value, ast.Name) else value
        text = text_of(named)
        if text is not None:
            return text
    raise DataError(f"{path} assigns no text to {name}")


def assigns(path: Path, name: str) -> bool:
    """Say whether a module assigns anything to a name."""
    return any(True for _ in _assigned(path, name))


def _assigned(path: Path, name: str) -> Iterator[ast.expr]:
    """Yield what a module assigns to a name, the last first."""
    for node in reversed(parse_file(path).body):
        if isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets):
            yield node.value


def function(path: Path, name: str) -> ast.FunctionDef:
    """Return the first function of a name, also within classes. Raises ``DataError`` if there is none."""
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


def find_fstrings(function: ast.FunctionDef) -> Iterator[list[str]]:
    """Yield the parts of all f-strings in a function."""
    for node in ast.walk(function):
        if (parts := parts_of(node)) is not None:
            yield parts


def worded(path: Path, name: str, fields: Mapping[str, str]) -> str:
    """Convert the first f-string of a function that has just these places. Raises ``DataError`` without one."""
    for parts in find_fstrings(function(path, name)):
        if set(parts[1::2]) == fields.keys():
            return join_parts(parts, fields)
    raise DataError(f"{path}: {name} has no text with {', '.join(fields)}")


def texts_for(function: ast.FunctionDef, name: str) -> list[str]:
    """Return the texts that a function assigns or appends to a name."""
    texts: list[str] = []
    for node in ast.walk(function):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AugAssign) and any(
            isinstance(target, ast.Name) and target.id == name for target in targets
        ):
            text, parts = text_of(node.value), parts_of(node.value)
            texts += [text] if text is not None else parts if parts and len(parts) == 1 else []
    return texts
