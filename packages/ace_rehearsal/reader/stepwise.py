"""The reader as a careful and forgetful agent: it works in small steps and looks an API up before it calls it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

_API = re.compile(r"\bapis\.(\w+)\.(\w+)")
_LOOKED_UP = re.compile(r"api_docs\.(show_api_descriptions|show_api_doc)\(([^()\n]*)\)")
_LINES = re.compile(r"^- step \d+: .*", re.MULTILINE)
_DOCS = "api_docs"


def next_step(code: str, steps: Sequence[tuple[str, str]], *, attention: int, listed: str) -> str:
    """Return the next look-up, or the next piece of ``code``.

    Before a piece is run, the descriptions of its apps and the documentation of its APIs are looked up, unless a
    look-up is among the newest ``attention`` steps, was made since the last piece, or is ``listed`` as known.
    """
    ran = [step for step, _ in steps]
    pieces = list(_pieces(code))
    done = sum(piece in ran for piece in pieces)
    if done == len(pieces):
        return code
    last = max((n for n, step in enumerate(ran) if step in pieces), default=-1)
    recent = ran[min(last + 1, max(0, len(ran) - attention)) :]
    known = set(_lookups_in([*recent, *_LINES.findall(listed)]))
    missing = next((lookup for lookup in _needed(pieces[done]) if lookup not in known), None)
    return pieces[done] if missing is None else f"print(apis.{_DOCS}.{missing})"


def _pieces(code: str) -> Iterator[str]:
    """Cut code after each statement at its top level that uses an API; what is left is the last piece's."""
    lines, start = code.splitlines(), 0
    ends = [statement.end_lineno or 0 for statement in ast.parse(code).body if _API.search(ast.unparse(statement))]
    for end in [*ends[:-1], len(lines)]:
        yield "\n".join(lines[start:end]).strip("\n")
        start = end


def _needed(piece: str) -> Iterator[str]:
    for app, api in dict.fromkeys(_API.findall(piece)):
        yield f"show_api_descriptions(app_name='{app}')"
        yield f"show_api_doc(app_name='{app}', api_name='{api}')"


def _lookups_in(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for name, arguments in _LOOKED_UP.findall(text):
            yield f"{name}({arguments})"
