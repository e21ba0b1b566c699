"""Converts other prompt formats into Jinja templates: placeholders become fields, all other text stays unchanged."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence

from ace_bench.core.errors import DataError

_PLACE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.]*)\s*-?\}\}")
_BRACKETS = re.compile(r"\[\[([A-Z_]+)\]\]")
_STATEMENT = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)


def positional(text: str, fields: Sequence[str]) -> str:
    """Turn a format string with one ``{}`` for each field, in their order, into a template."""
    remaining = iter(fields)
    template = _formatted(text, lambda name: next(remaining, None) if not name else None)
    if next(remaining, None) is not None:
        raise DataError(f"fewer than {len(fields)} placeholders")
    return template


def named(text: str, fields: Mapping[str, str]) -> str:
    """Turn a format string with named fields into a template; unused fields are left out."""
    return _formatted(text, fields.get)


def format_fields(text: str) -> frozenset[str]:
    """Return the field names of a format string; empty if it is not a format string."""
    try:
        return frozenset(name for _, name, _, _ in string.Formatter().parse(text) if name)
    except ValueError:
        return frozenset()


def doubled(text: str, fields: Mapping[str, str]) -> str:
    """Turn a text with placeholders such as ``{{name}}`` into a template; other braces, as in example code, stay."""
    statement = _STATEMENT.search(text)
    if statement:
        raise DataError(f"a template statement, not a placeholder: {statement[0][:60]}")
    parts: list[str] = []
    position = 0
    for place in _PLACE.finditer(text):
        if place[1] not in fields:
            raise DataError(f"an unknown placeholder: {place[0]}")
        parts += [literal(text[position : place.start()]), fields[place[1]]]
        position = place.end()
    return "".join([*parts, literal(text[position:])])


def bracketed(text: str, fields: Mapping[str, str]) -> str:
    """Turn a text with placeholders such as ``[[NAME]]``, each of ``fields`` at least once, into a template."""
    if missing := [name for name in fields if f"[[{name}]]" not in text]:
        raise DataError(f"no placeholder [[{missing[0]}]]")
    return filled(_BRACKETS.split(text), fields)


def filled(parts: Sequence[str], fields: Mapping[str, str]) -> str:
    """Join text and names of placeholders, which alternate, to a template."""
    made = [literal(parts[0])]
    for name, behind in zip(parts[1::2], parts[2::2], strict=True):
        if name not in fields:
            raise DataError(f"an unknown placeholder: {name}")
        made += [fields[name], literal(behind)]
    return "".join(made)


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


def _formatted(text: str, field: Callable[[str], str | None]) -> str:
    parts: list[str] = []
    try:
        for before, name, spec, conversion in string.Formatter().parse(text):
            parts.append(literal(before))
            if name is not None:
                value = field(name)
                if value is None or spec or conversion:
                    raise DataError(f"an unknown placeholder: {{{name}}}")
                parts.append(value)
    except ValueError as error:
        raise DataError(f"not a format string: {error}") from error
    return "".join(parts)
