"""What the authors' code does to a playbook text, byte for byte; no function calls a model.

Every function gives the text that the functions of the same purpose in ``playbook_utils.py`` (finance) and
``playbook.py`` (AppWorld) give for the same input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ace_bench.core.errors import DataError
from ace_bench.playbook.authors_text import (
    NO_SECTION,
    Dialect,
    Line,
    bullet_lines,
    heading_of,
    id_prefix,
    read_line,
    section_key,
    write_line,
)

_NUMBER = re.compile(r"-(\d{1,4000})$")
_OTHERS = "others"


class DroppedOperations(DataError):
    """Operations that make the authors' code fail, so that it goes on with the playbook as it was."""


def add_bullets(
    text: str, operations: Sequence[Mapping[str, Any]], *, next_number: int, dialect: Dialect
) -> tuple[str, int]:
    """Return the text with the bullets of the ADD operations, and the number of the next bullet.

    Other operations are ignored. A new bullet goes to the end of the first section of its name, after blank lines; an
    unknown section means ``others``. Bullets without such a section follow the line ``## OTHERS`` or end the text.
    Raises ``DroppedOperations`` if the authors' code fails: text before the first heading, an operation without
    ``type``, a section that is not a text or whose name gives no prefix, a content that is not valid Unicode.
    """
    lines = text.strip().split("\n")
    titles = {line_number: title for line_number, line in enumerate(lines) if (title := heading_of(line)) is not None}
    keys = {line_number: section_key(title, dialect) for line_number, title in titles.items()}
    if any(line.strip() for line in lines[: min(keys, default=len(lines))]):
        raise DroppedOperations("the playbook has text before its first heading, so no operation can be applied")
    try:
        new = _new_bullets(operations, set(keys.values()), next_number, dialect)
    except (AttributeError, IndexError, KeyError, TypeError, UnicodeEncodeError) as error:
        raise DroppedOperations(f"the operations cannot be applied: {type(error).__name__}: {error}") from error
    return "\n".join(_with_bullets(lines, keys, new)), next_number + len(new)


def _new_bullets(
    operations: Sequence[Mapping[str, Any]], known_ids: set[str], number: int, dialect: Dialect
) -> list[tuple[str, str]]:
    """Return section and line of each new bullet."""
    new: list[tuple[str, str]] = []
    for operation in operations:
        if operation["type"] != "ADD":
            continue
        section = section_key(operation.get("section", NO_SECTION), dialect)
        if section not in known_ids and section != NO_SECTION:
            section = _OTHERS
        bullet_id = f"{id_prefix(section, dialect)}-{number + len(new):05d}"
        line = write_line(Line(bullet_id, 0, 0, operation.get("content", "")), dialect)
        line.encode()  # a lone surrogate can be neither sent nor saved
        new.append((section, line))
    return new


def _with_bullets(lines: Sequence[str], keys: Mapping[int, str], new: Sequence[tuple[str, str]]) -> list[str]:
    """Insert new bullets; ``keys`` are the sections of the headings by line."""
    ends = dict[str, int]()
    for start, end in pairwise([*keys, len(lines)]):
        ends.setdefault(keys[start], end)
    ends.pop("", None)  # a heading without a title is not a section for new bullets
    inserted: dict[int, list[str]] = {}
    for section, line in new:
        if section in ends:
            inserted.setdefault(ends[section], []).append(line)
    remaining = [line for section, line in new if section not in ends]
    line_number = next((line_number for line_number in keys if lines[line_number].strip() == "## OTHERS"), None)
    if line_number is None:
        inserted[len(lines)] = [*inserted.get(len(lines), ()), *remaining]
    else:
        inserted[line_number + 1] = [*remaining, *inserted.get(line_number + 1, ())]
    result: list[str] = []
    for number, line in enumerate(lines):
        result += [*inserted.get(number, ()), line]
    return result + inserted.get(len(lines), [])


def count_tags(text: str, tags: object, dialect: Dialect) -> str:
    """Count tags, a list of objects with ``id`` (or ``bullet``) and ``tag``; the last tag of an id counts.

    Only ``helpful`` and ``harmful`` in exactly these letters change a counter, but every bullet with a tag is written
    anew, without its indentation. Without any id the text stays as it is, otherwise blank space around it goes.
    AppWorld's dialect has no counters. Ids that are lists or objects, at which the authors' code fails, are ignored.
    """
    verdicts = _verdicts(tags)
    if not verdicts:
        return text
    return "\n".join(_tag_line(line, verdicts, dialect) for line in text.strip().split("\n"))


def _verdicts(tags: object) -> dict[object, object]:
    verdicts: dict[object, object] = {}
    for tag in tags if isinstance(tags, list) else ():
        if isinstance(tag, dict):
            bullet_id = tag.get("id") or tag.get("bullet", "")
            if bullet_id and not isinstance(bullet_id, list | dict):
                verdicts[bullet_id] = tag.get("tag", "neutral")
    return verdicts


def _tag_line(line: str, verdicts: Mapping[object, object], dialect: Dialect) -> str:
    bullet = None if line.strip().startswith("#") else read_line(line, dialect)
    if bullet is None or bullet.id not in verdicts:
        return line
    verdict = verdicts[bullet.id]
    counted = bullet._replace(
        helpful=bullet.helpful + (verdict == "helpful"), harmful=bullet.harmful + (verdict == "harmful")
    )
    return write_line(counted, dialect)


def number_after(text: str, dialect: Dialect) -> int:
    """Return the number after the highest in the ids; AppWorld's code numbers new bullets from there."""
    matches = (_NUMBER.search(bullet.id) for bullet in bullet_lines(text, dialect))
    return 1 + max((int(number[1]) for number in matches if number), default=0)


def without_counters(text: str, dialect: Dialect) -> str:
    """Return the text with its bullets written as AppWorld's dialect does."""
    lines = ((line, read_line(line, dialect)) for line in text.split("\n"))
    return "\n".join(line if bullet is None else write_line(bullet, "appworld") for line, bullet in lines)
