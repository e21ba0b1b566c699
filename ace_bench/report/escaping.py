"""Text of models, settings and users that is inert in LaTeX, CSV and Markdown: it shows, and does nothing else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from csv import writer
from io import StringIO

_LATEX = str.maketrans(
    {mark: f"\\{mark}" for mark in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": "$<$", ">": "$>$", "†": r"\dag{}", "‡": r"\ddag{}", "–": "--", "§": r"\S{}"}
    | {"≥": r"$\geq$", "≤": r"$\leq$", "≠": r"$\neq$", "−": "$-$", "∞": r"$\infty$"}
    | {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "✓": r"\aceyes{}", "✗": r"\aceno{}"}
)
"""Characters with a meaning in LaTeX."""
_NO_LATEX = re.compile(r"[^\x20-\x7e\xa1-\xff–—‘’“”…•€]|[«»ÐÞðþ]")
"""Characters that ``pdflatex`` stops at."""
_LATEX_OPTION = ("[", "*")
"""After the ``\\\\`` of a row these would be its option."""
_INVISIBLE = ("Cc", "Cf", "Cs")
"""Categories of control characters, and of those that turn the direction of a line around."""
_CSV_BREAKS = re.compile(r"([;\t\r\n])")
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]")
_BARE = re.compile(r"\s*[+\-]?\s*")
_MARKDOWN = re.compile(r"\||<(?=[A-Za-z/!?])|&(?=[#\w]+;)|\](?=[(\[:])|(?<!\S)#(?=#*(?:\s|$))")


def one_line(text: str) -> str:
    """Join the lines of a text, and drop characters that only control how others are shown."""
    if text.isprintable():  # as almost every cell is: nothing of it is invisible
        return " ".join(text.split())
    visible = (mark for mark in text if mark.isspace() or unicodedata.category(mark) not in _INVISIBLE)
    return " ".join("".join(visible).split())


def latex(text: str) -> str:
    """Return a text as the words of a LaTeX cell, caption or header. Characters without a glyph are named: [U+4E2D]."""
    escaped = _NO_LATEX.sub(_name_letter, one_line(text)).translate(_LATEX)
    return f"{{}}{escaped}" if escaped.startswith(_LATEX_OPTION) else escaped


def _name_letter(mark: re.Match[str]) -> str:
    return mark[0] if ord(mark[0]) in _LATEX else f"[U+{ord(mark[0]):04X}]"


def csv_cell(value: object) -> object:
    """Return a value that no spreadsheet reads as a formula, with any separator.

    Numbers stay as they are, also negative ones in texts.
    """
    if not isinstance(value, str):
        return value
    return "".join(f"'{part}" if _is_formula(part) else part for part in _CSV_BREAKS.split(value))


def csv_of(lines: Sequence[Mapping[str, object]], header: Sequence[str] = ()) -> str:
    """Return lines with the same keys as CSV. Without rows, ``header`` gives the keys."""
    text = StringIO()
    table = writer(text, lineterminator="\n")
    table.writerow(map(csv_cell, header or lines[0]))
    table.writerows(map(csv_cell, line.values()) for line in lines)
    return text.getvalue()


def _is_formula(part: str) -> bool:
    if not _FORMULA.match(part) or _BARE.fullmatch(part):
        return False
    try:
        float(part.replace(",", ""))
    except ValueError:
        return True
    return False


def markdown(text: str) -> str:
    """Return a text as one line of Markdown without HTML, links, images, headings and new table cells."""
    return _MARKDOWN.sub(lambda mark: f"&#{ord(mark[0])};", one_line(text))


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the lines of a table in Markdown."""
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(markdown, line))} |" for line in lines)
