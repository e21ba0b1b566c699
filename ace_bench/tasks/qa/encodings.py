"""Decodes a user's text file; ours, because charset-normalizer guesses, and wrongly where few letters are foreign.

UTF-8, UTF-16 and UTF-32 are recognised. Any other encoding has to be named: a wrong guess would put wrong letters into
questions and answers.
"""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from ace_bench.core.errors import DataError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins like the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROL = re.compile("[\0\x80-\x84\x86-\x9f]")
"""Control characters that no text has. U+0085 is a line break in UTF-8, and a sign of an error elsewhere."""
_EXCERPT = 20
"""Characters that a message shows on each side of a wrong one."""


def decode(content: bytes, encoding: str, path: Path) -> str:
    """Return the text of a file without its byte order mark; ``encoding`` is what the setting names.

    Raises ``DataError`` that names the first line with other characters, and the setting to change.
    """
    marked = next((name for mark, name in _MARKS if content.startswith(mark)), None) or _utf_by_zeros(content)
    used = marked or codecs.lookup(encoding).name
    as_utf_8 = None if marked or used == "utf-8" else _read_utf_8(content)
    try:
        text = content.decode(used)
    except UnicodeDecodeError as error:
        if marked:
            raise DataError(f"{path} is not whole {marked}: {error.reason}; write the file again, in UTF-8") from error
        text, wrong = "", error.start
    else:
        control = None if used.startswith("utf") else re.search("[\x80-\x9f]", text)
        wrong = -1 if control is None else len(text[: control.start()].encode(used))
    if as_utf_8 is not None and (wrong >= 0 or len(as_utf_8) < len(text)):  # several characters are one of UTF-8
        raise DataError(f"{path} is UTF-8, not {encoding}; leave task.encoding={encoding} out")
    if wrong >= 0:
        line = 1 + content[:wrong].count(b"\n")
        raise DataError(
            f"{path}, line {line} is not {encoding}; set task.encoding to the file's own, such as cp1252 "
            f"(Windows) or shift_jis (Japanese), or write it again in UTF-8"
        )
    return text.removeprefix("\ufeff")


def refuse_controls(text: str, where: str) -> None:
    """Raise ``DataError`` for bytes of zero, and characters that a text read in a wrong encoding before has."""
    if control := _CONTROL.search(text):
        position = control.start()
        cause = "" if control[0] == "\0" else ": cp1252 was read as latin-1 before"
        raise DataError(
            f"{where}: {text[max(0, position - _EXCERPT) : position + _EXCERPT]!r} holds the control character "
            f"U+{ord(control[0]):04X}, which no text has{cause}; write the file anew from its source"
        )


def _utf_by_zeros(content: bytes) -> str | None:
    """Return the UTF of a text without a mark: no other encoding has bytes of zero, and its line breaks have some.

    A few of them in a text that is UTF-8 are an error of the file.
    """
    start = content[:4096]
    if b"\0" not in start or (start.count(0) < len(start) / 4 and _read_utf_8(content) is not None):
        return None
    if start.count(0) >= len(start) / 2 and len(content) % 4 == 0 and b"\0\0" in start:
        return "utf-32-be" if start.startswith(b"\0") else "utf-32-le"
    return max("utf-16-le", "utf-16-be", key=lambda name: _count_ascii(start.decode(name, "ignore")))


def _count_ascii(text: str) -> tuple[int, int]:
    return text.count("\n"), sum(map(str.isascii, text))


def _read_utf_8(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
