"""Reads JSON with the slips that models make; ours, because json_repair invents the end of a value that was cut off.

Read are trailing commas, single quotes, Python's ``True``/``False``/``None``, values without quotes, unknown escapes
such as ``\\(``, raw line breaks, quotation marks inside a string that nobody escaped, and an object cut off at its end.
A quotation mark ends a string only where the text goes on as JSON would. What is cut off in the middle of a value is
not completed: half an answer is another answer. The rules are written here, and take linear time. json_repair takes
20 seconds for 16 kB of a hostile reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_START = re.compile(r"\{\s*[\"']")
_MAX_STARTS = 16
"""Objects that cannot be read as a whole, after which a text is not searched any more."""
_MAX_CHARS = 200_000
"""Longer texts are not searched: no reply of a model is longer, and hostile ones must not cost time."""
_MAX_DEPTH = 50

_SPACE = re.compile(r"\s*")
_BARE = re.compile(r"[^,\[\]{}\"'\n]+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,300})(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_MARKS = {'"': re.compile(r'\\.|"', re.DOTALL), "'": re.compile(r"\\.|'", re.DOTALL)}
_ESCAPE = re.compile(r"(?P<units>(?:\\u[0-9a-fA-F]{4})+)|\\(?P<char>.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}
_AFTER_NAME = re.compile(r"\s*:")
_AFTER_MEMBER = re.compile(r"\s*(?:,\s*(?:[\"'][^\"'\n]*[\"']\s*:|\}|\Z)|\}|\Z)")
_AFTER_ITEM = re.compile(r"\s*(?:,\s*(?:[\"'\d\[{-]|\]|\Z)|\]|\Z)")


class FoundObject(NamedTuple):
    """An object in a text.

    ``whole`` is false if it was cut off. ``value`` then holds its complete members, and ``cut_in`` names the other one.
    """

    value: dict[str, Any]
    whole: bool
    cut_in: str = ""


class _Truncated(Exception):
    """The text ends within a value."""


def find_objects(text: str) -> Iterator[FoundObject]:
    """Yield the objects of a text from left to right, but none within another; unreadable ones are left out."""
    if len(text) > _MAX_CHARS:
        return
    strict = json.JSONDecoder(strict=False)
    position = 0
    failed = 0
    while failed < _MAX_STARTS and (start := _START.search(text, position)) is not None:
        position = start.end()
        try:
            value, position = strict.raw_decode(text, start.start())
            yield FoundObject(value, whole=True)
        except (ValueError, RecursionError):
            scanner = _Scanner(text, start.start())
            try:
                scanned = scanner.top()
            except (ValueError, _Truncated):
                failed += 1
                continue
            position = scanner.position
            failed += not scanned.whole
            yield scanned


class _Scanner:
    """One pass over a text from the opening brace of an object; raises ``ValueError`` for what it cannot read."""

    def __init__(self, text: str, position: int):
        self.position = position
        self._text = text
        self._depth = 0
        self._member = ""

    def top(self) -> FoundObject:
        value: dict[str, Any] = {}
        try:
            self._members(value)
        except _Truncated:
            return FoundObject(value, whole=False, cut_in=self._member)
        return FoundObject(value, whole=True)

    def _members(self, members: dict[str, Any]) -> None:
        """Read an object; the end of the outermost one may be missing."""
        self._open()
        while (char := self._next_character()) != "}":
            if not char and self._depth == 1:
                return
            if not char:
                raise _Truncated
            if char not in _MARKS:
                raise ValueError(f"a name was expected at character {self.position}")
            name = self._string(char, _AFTER_NAME)
            self._member = name if self._depth == 1 else self._member
            if self._next_character() != ":":
                raise _Truncated
            self.position += 1
            members[name] = self._value(_AFTER_MEMBER)
            self._comma("}")
        self._close()

    def _items(self) -> list[Any]:
        self._open()
        items: list[Any] = []
        while self._next_character() != "]":
            items.append(self._value(_AFTER_ITEM))
            self._comma("]")
        self._close()
        return items

    def _value(self, after: re.Pattern[str]) -> Any:
        char = self._next_character()
        if not char:
            raise _Truncated
        if char == "{":
            inner: dict[str, Any] = {}
            self._members(inner)
            return inner
        if char == "[":
            return self._items()
        return self._string(char, after) if char in _MARKS else self._read_bare_word()

    def _string(self, mark: str, after: re.Pattern[str]) -> str:
        start = self.position + 1
        for match in _MARKS[mark].finditer(self._text, start):
            if match[0] == mark and after.match(self._text, match.end()):
                self.position = match.end()
                return _ESCAPE.sub(_unescape, self._text[start : match.start()])
        raise _Truncated

    def _read_bare_word(self) -> Any:
        match = _BARE.match(self._text, self.position)
        if match is None:
            raise ValueError(f"a value was expected at character {self.position}")
        self.position = match.end()
        if self.position == len(self._text):
            raise _Truncated  # nobody knows whether 12 was to be 123
        word = match[0].strip()
        if not word:
            raise ValueError(f"a value was expected at character {self.position}")
        if word in _WORDS:
            return _WORDS[word]
        return json.loads(word) if _NUMBER.fullmatch(word) else word

    def _comma(self, end: str) -> None:
        char = self._next_character()
        if char == ",":
            self.position += 1
        elif char and char != end:
            raise ValueError(f"a comma was expected at character {self.position}")

    def _open(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        self.position += 1

    def _close(self) -> None:
        self._depth -= 1
        self.position += 1

    def _next_character(self) -> str:
        """Skip blanks and return the next character; "" at the end."""
        space = _SPACE.match(self._text, self.position)
        self.position = space.end() if space else self.position
        return self._text[self.position : self.position + 1]


def _unescape(escape: re.Match[str]) -> str:
    if escape["units"]:
        return str(json.loads(f'"{escape["units"]}"'))
    return _ESCAPED.get(escape["char"], escape[0])
