"""The tables of a prompt: columns, keys, and the shortest way to join some of them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ace_rehearsal.reader.words import camel_stems

_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"]|\"\")*\"|`[^`\n]{0,200}`|\[[^\]\n]{0,200}\]|'(?:[^']|'')*'|[\w$]+|\S",
    re.DOTALL,
)
_BARE = re.compile(r"[A-Za-z_]\w*")
_RESERVED_WORDS = "order group set index table where select from by join limit values case when check to"
_RESERVED = frozenset(_RESERVED_WORDS.split())
_CONSTRAINTS = frozenset(("constraint", "primary", "foreign", "unique", "check", "key"))
_NUMERIC = re.compile(r"int|real|num|dec|float|double", re.IGNORECASE)
_DATE = re.compile(r"date|time", re.IGNORECASE)
NUMBER, DATE, TEXT = "number", "date", "text"
_KEY = re.compile(r"\w+(?:id|code|key|number)")
_LONGEST, _MOST_TABLES, _MOST_TOKENS, _MOST_LINKS, _MOST_JOINED = 400_000, 200, 4_000, 2_000, 12


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column; ``kind`` is number, date or text, ``stems`` are those of the words of its name."""

    table: str
    name: str
    kind: str
    stems: tuple[str, ...]

    @property
    def sql(self) -> str:
        """Its name with its table's."""
        return f"{quoted(self.table)}.{quoted(self.name)}"

    @property
    def key(self) -> str:
        """Its name with its table's in lower case, without quotes."""
        return f"{self.table}.{self.name}".lower()


@dataclass(frozen=True, kw_only=True)
class Link:
    """A foreign key: the two columns that join two tables."""

    here: Column
    there: Column


@dataclass(frozen=True, kw_only=True, eq=False)
class Schema:
    """All tables by lower-cased name, and the foreign keys between them; the same text gives the same object."""

    tables: Mapping[str, tuple[Column, ...]]
    links: tuple[Link, ...]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All columns in the order of the prompt."""
        return tuple(column for columns in self.tables.values() for column in columns)

    @cached_property
    def named(self) -> Mapping[str, tuple[Column, ...]]:
        """Columns by lower-cased name."""
        found: dict[str, list[Column]] = {}
        for column in self.columns:
            found.setdefault(column.name.lower(), []).append(column)
        return {name: tuple(columns) for name, columns in found.items()}

    @cached_property
    def mentions(self) -> re.Pattern[str]:
        """Finds names of columns in a text, with the name of a table before a dot where there is one."""
        names = sorted((re.escape(name) for name in self.named), key=len, reverse=True) or ["(?!)"]
        tables = sorted((re.escape(name) for name in self.tables), key=len, reverse=True) or ["(?!)"]
        return re.compile(
            rf"(?<![\w'])(?:[`\"]?({'|'.join(tables)})[`\"]?\.)?[`\"]?({'|'.join(names)})(?![\w'])[`\"]?", re.IGNORECASE
        )

    def find(self, table: str, name: str) -> Column | None:
        """The column of a table by name, in any case."""
        return next((c for c in self.tables.get(table.lower(), ()) if c.name.lower() == name.lower()), None)

    def source(self, names: Iterable[str], hints: Iterable[Link] = ()) -> str:
        """Return the FROM clause that joins the tables along foreign keys; ``hints`` are joins to be preferred."""
        wanted = [name for name in dict.fromkeys(name.lower() for name in names) if name in self.tables][:_MOST_JOINED]
        if not wanted:
            wanted = list(self.tables)[:1]
        preferred = tuple(hints)
        reached = {wanted[0]: None}
        text = quoted(self._written(wanted[0]))
        for goal in wanted[1:]:
            for link in self._path(reached, goal, preferred):
                new = link.there.table if link.here.table.lower() in reached else link.here.table
                text += f" JOIN {quoted(new)} ON {link.here.sql} = {link.there.sql}"
                reached[new.lower()] = None
        return text

    def _written(self, name: str) -> str:
        columns = self.tables[name]
        return columns[0].table if columns else name

    def _path(self, reached: Iterable[str], goal: str, hints: Sequence[Link]) -> tuple[Link, ...]:
        """Links from the tables already joined to another; none where no way leads there."""
        start = list(reached)
        ways: dict[str, tuple[Link, ...]] = dict.fromkeys(start, ())
        waiting = deque(start)
        while waiting and goal not in ways:
            place = waiting.popleft()
            for link in (*hints, *self.links):
                ends = link.here.table.lower(), link.there.table.lower()
                if place in ends:
                    other = ends[1] if ends[0] == place else ends[0]
                    if other not in ways:
                        ways[other] = (*ways[place], link)
                        waiting.append(other)
        return ways.get(goal, ())


def quoted(name: str) -> str:
    """Write an identifier, in double quotes where SQL needs them."""
    if _BARE.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


@lru_cache(maxsize=64)
def read_schema(text: str) -> Schema:
    """Read the CREATE TABLE statements of a text; what cannot be read is left out."""
    tables: dict[str, tuple[Column, ...]] = {}
    keys: list[tuple[str, str, str, str]] = []
    for statement in re.split(r"(?i)\bcreate\s+(?:temp\w*\s+)?table\b", text[:_LONGEST])[1 : _MOST_TABLES + 1]:
        found = [token for token in _TOKEN.findall(statement) if token[:2] not in ("--", "/*")]
        if found[:3] and [token.lower() for token in found[:3]] == ["if", "not", "exists"]:
            found = found[3:]
        if "(" not in found[:4]:
            continue
        opening = found.index("(")
        table = _bare(found[opening - 1]) if opening else ""
        if table:
            tables[table.lower()], own = _read_body(table, found[opening + 1 :][:_MOST_TOKENS])
            keys.extend(own)
    schema = Schema(tables=tables, links=())
    return Schema(tables=tables, links=tuple(dict.fromkeys((*_links(schema, keys), *_namesakes(schema))))[:_MOST_LINKS])


def _namesakes(schema: Schema) -> Iterator[Link]:
    """Join tables by columns of one name where that name is a key's: many schemas leave foreign keys out."""
    for name, columns in schema.named.items():
        if _KEY.fullmatch(name):
            yield from (Link(here=other, there=columns[0]) for other in columns[1:])


def _links(schema: Schema, keys: Iterable[tuple[str, str, str, str]]) -> Iterator[Link]:
    for table, name, other, key in keys:
        here = schema.find(table, name)
        there = schema.find(other, key) or next(iter(schema.tables.get(other.lower(), ())), None)
        if here is not None and there is not None and here.table != there.table:
            yield Link(here=here, there=there)


def _read_body(table: str, found: Sequence[str]) -> tuple[tuple[Column, ...], list[tuple[str, str, str, str]]]:
    columns: list[Column] = []
    keys: list[tuple[str, str, str, str]] = []
    for part in _parts(found):
        first = part[0].lower()
        lowered = [token.lower() for token in part]
        if first in _CONSTRAINTS and len(part) > 1:
            if "foreign" in lowered:
                keys.extend(_foreign(table, part, lowered))
            continue
        name = _bare(part[0])
        kind = " ".join(part[1:3])
        columns.append(
            Column(
                table=table,
                name=name,
                kind=NUMBER if _NUMERIC.search(kind) else DATE if _DATE.search(f"{kind} {name}") else TEXT,
                stems=camel_stems(name),
            )
        )
        if "references" in lowered:
            keys.extend(_foreign(table, ["(", name, ")", *part[lowered.index("references") :]], None))
    return tuple(columns), keys


def _foreign(table: str, part: Sequence[str], lowered: Sequence[str] | None) -> list[tuple[str, str, str, str]]:
    """Read ``( columns ) REFERENCES other ( keys )``."""
    lowered = [token.lower() for token in part] if lowered is None else lowered
    if "references" not in lowered:
        return []
    at = lowered.index("references")
    here = _names(part[:at])
    other = _bare(part[at + 1]) if at + 1 < len(part) else ""
    there = _names(part[at + 2 :])
    return [(table, name, other, there[i] if i < len(there) else "") for i, name in enumerate(here)]


def _names(part: Sequence[str]) -> list[str]:
    """Names inside the first pair of brackets."""
    if "(" not in part:
        return []
    inside = part[part.index("(") + 1 :]
    end = inside.index(")") if ")" in inside else len(inside)
    return [_bare(token) for token in inside[:end] if token != ","]


def _parts(found: Sequence[str]) -> Iterator[list[str]]:
    """Split the body of a statement at the commas of its own level, up to its closing bracket."""
    depth, part = 0, list[str]()
    for token in found:
        depth += (token == "(") - (token == ")")
        if depth < 0:
            break
        if token == "," and depth == 0:
            if part:
                yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part


def _bare(token: str) -> str:
    return token[1:-1].replace('""', '"') if token[:1] in '"`[' and len(token) > 1 else token
