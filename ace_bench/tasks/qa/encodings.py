"""Decodes a user's text file; ours, because charset-normalizer guesses, and wrongly where few letters are foreign.

UTF-8, UTF-16 and UTF-32 are recognised, any other encoding has to be named. It is never guessed, since
a wrong guess puts wrong letters into questions and answers. The message shows instead how a line reads in the encodings
that are likely.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
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
_WESTERN = "[’‘“”–—…€•™®©°£§«»¿¡]|(?<![À-ž])[À-ž]{1,4}(?![À-ž])"
_CYRILLIC = "[а-яё«»–—№]|[А-ЯЁ](?=[а-яё ])"
_CHINESE = "[一-龥、。，！？：；（）「」《》“”]{2,}"
_JAPANESE = "[ぁ-んァ-ヶーｦ-ﾟ、。「」！？（）]|(?<=[ぁ-ん一-龥ァ-ヶ])[一-龥]|[一-龥](?=[ぁ-ん一-龥ァ-ヶ])"
_LIKELY = (
    ("cp1252", _WESTERN),
    ("cp1250", _WESTERN),
    ("cp1254", _WESTERN),
    ("mac_roman", _WESTERN),
    ("cp1251", _CYRILLIC),
    ("koi8_r", _CYRILLIC),
    ("cp1253", "[ά-ώ]|[Α-Ω](?=[ά-ώ ])"),
    ("cp1255", "[א-ת]"),
    ("cp1256", "[ء-ي،؟]"),
    ("cp949", "[가-힣]"),
    ("cp932", _JAPANESE),
    ("euc_jp", _JAPANESE),
    ("gb18030", _CHINESE),
    ("cp950", _CHINESE),
)
"""Encodings, and the usual characters of texts in them; shift_jis is cp932, big5 cp950 and euc_kr cp949."""
_LEAST_USUAL, _MOST_SHOWN, _EXCERPT = 0.7, 4, 20


def decode(content: bytes, encoding: str, path: Path) -> str:
    """Return the text of a file without its byte order mark; ``encoding`` is what the setting names.

    Raises ``DataError`` that names the line, and the settings that would read it.
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
        raise DataError(_advise(content, wrong, encoding, path))
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


def _advise(content: bytes, position: int, encoding: str, path: Path) -> str:
    """Say which encodings the file may have, and how the line with the first wrong byte reads in each."""
    line = content[:position].count(b"\n")
    readings = [
        f"task.encoding={name} it reads {_excerpt(text, line)!r}" for name, text in _candidates(content, encoding)
    ]
    where = f"{path}, line {line + 1} is not {encoding}"
    if not readings:
        return f"{where}; set task.encoding to the encoding of the program that wrote it, or write it again in UTF-8"
    return f"{where}; with {', with '.join(readings[:_MOST_SHOWN])}: set the one that reads right"


def _excerpt(text: str, line: int) -> str:
    content = text.split("\n")[line].strip()
    first = next((index for index, char in enumerate(content) if not char.isascii()), 0)
    return content[max(0, first - _EXCERPT) : first + _EXCERPT]


def _candidates(content: bytes, besides: str) -> Iterator[tuple[str, str]]:
    """Yield names of encodings and the text in each, the likeliest first."""
    shares = dict[str, tuple[float, str]]()
    for name, usual in _LIKELY:
        if name == codecs.lookup(besides).name:
            continue
        try:
            text = content.decode(name)
        except UnicodeDecodeError:
            continue
        foreign = sum(not char.isascii() for char in text)
        share = sum(len(run) for run in re.findall(usual, text)) / foreign
        if share >= _LEAST_USUAL and not re.search("[\x80-\x9f]", text):
            shares.setdefault(text, (share, name))
    yield from ((name, text) for text, (_, name) in sorted(shares.items(), key=lambda run: -run[1][0]))
