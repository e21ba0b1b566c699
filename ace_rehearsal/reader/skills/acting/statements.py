"""Agent code statement by statement: what each needs, what it gives, what it calls and what words it speaks."""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ace_rehearsal.reader.words import stem

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What parsing code from anywhere may raise (a null byte is a ``ValueError``)."""

_BUILTIN = frozenset((*dir(builtins), "apis", "requester"))
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_WORD = re.compile(r"[A-Za-z]+")
_SILENT_WORDS = """
    a all an and are as at by did do does each for from how i if in into is it its me much my of on or that the them to
    what with
"""
_SILENT = frozenset(_SILENT_WORDS.split())
_LEAST_PART = 3
_COMPLETION = "supervisor.complete_task"


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement with the comment over it.

    ``needs`` are the names it reads and ``gives`` those it sets; ``calls`` are APIs as ``app.api``, and ``acts`` says
    that what one returns is not looked at. ``cues`` are stems of the words of a task that call for it, ``others`` of
    those that may; ``owner`` is the lesson it comes from ("" for none) and ``trust`` the weight of that lesson.
    """

    code: str
    note: str = ""
    needs: frozenset[str] = frozenset()
    gives: frozenset[str] = frozenset()
    calls: tuple[str, ...] = ()
    acts: bool = False
    cues: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    owner: str = ""
    trust: float = 1.0

    @property
    def completes(self) -> bool:
        """Whether it marks the task as complete."""
        return _COMPLETION in self.calls

    @property
    def answers(self) -> bool:
        """Whether it completes the task with an answer."""
        return self.completes and "complete_task()" not in self.code

    @property
    def pages(self) -> bool:
        """Whether it defines how a list is read page by page."""
        return self.code.startswith("def ") and "page_index" in self.code

    @property
    def name(self) -> str:
        """The first name it sets, or "" where it sets none."""
        return min(self.gives, key=self.code.find, default="")

    @cached_property
    def spoken(self) -> frozenset[str]:
        """Stems of the words in its comment, its names and its texts."""
        parts = (part.lower() for part in _PART.findall(f"{self.note} {self.code}"))
        return frozenset(stem(part) for part in parts if len(part) >= _LEAST_PART and part not in _SILENT)

    def mentions(self, word: str) -> bool:
        """Whether it speaks of a stem, as such or as the end of a longer one ("due" of "overdue")."""
        return word in self.spoken or any(ends_with(word, part) for part in self.spoken)


def ends_with(word: str, part: str) -> bool:
    """Whether a word is a compound of something and a part: "overdue" of "due", but not "send" of "end".

    Both are stems, so a final e does not count.
    """
    return word.rstrip("e").endswith(part.rstrip("e")) and len(part) >= _LEAST_PART and len(word) - len(part) > 1


def words_of(text: str) -> tuple[str, ...]:
    """Words of a task that can tell tasks apart, in lower case, each once."""
    return tuple(dict.fromkeys(word.lower() for word in _WORD.findall(text) if word.lower() not in _SILENT))


def stems_of(text: str) -> frozenset[str]:
    """Stems of those words."""
    return frozenset(map(stem, words_of(text)))


@lru_cache(maxsize=4_096)
def read_statements(code: str) -> tuple[Statement, ...]:
    """Read code as statements; a function ``solution`` stands for its body, and what is no Python has none.

    Statements with no blank line between them share the comment above the first.
    """
    try:
        text = textwrap.dedent(code)
        body = parsed(text).body
        if body and isinstance(body[0], ast.FunctionDef) and body[0].name == "solution":
            body = body[0].body
        return tuple(_read(text, body))
    except UNREADABLE:
        return ()


def parsed(code: str) -> ast.Module:
    """Parse code quietly: an invalid escape is its writer's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return ast.parse(code)


def _read(text: str, body: list[ast.stmt]) -> Iterator[Statement]:
    lines = text.splitlines()
    note, last = "", 0
    for node in body:
        above = [line.strip() for line in lines[last : node.lineno - 1]]
        comments = [line.lstrip("# ") for line in above if line.startswith("#")]
        if comments or "" in above:
            note = " ".join(comments)
        last = node.end_lineno or node.lineno
        code = textwrap.dedent("\n".join(lines[node.lineno - 1 : last]))
        yield analysed(code, note)


@lru_cache(maxsize=4_096)
def analysed(code: str, note: str = "") -> Statement:
    """Return a statement with what it needs, gives and calls: nothing where it is no Python."""
    try:
        tree = parsed(code)
        nodes = list(ast.walk(tree))
    except UNREADABLE:
        return Statement(code=code, note=note)
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    stored |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    loaded = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return Statement(
        code=code,
        note=note,
        needs=frozenset(loaded - stored - _BUILTIN),
        gives=frozenset(name for node in tree.body for name in _given(node)),
        calls=tuple(dict.fromkeys(name for node in nodes if (name := api_name(node)))),
        acts=any(isinstance(node, ast.Expr) and _is_call(node.value) for node in nodes) and _COMPLETION not in code,
    )


def _given(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case ast.Assign(targets=targets):
            for target in targets:
                yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


def api_name(node: ast.AST) -> str:
    """Return ``app.api`` where a node reads ``apis.app.api``, "" elsewhere."""
    match node:
        case ast.Attribute(attr=api, value=ast.Attribute(attr=app, value=ast.Name(id="apis"))):
            return f"{app}.{api}"
    return ""


def _is_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and bool(api_name(node.func))
