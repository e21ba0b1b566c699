"""What a piece of agent code calls: the tools, and which of the calls only look something up that never changes."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ace_bench.core.settings import Count, Text

_LONGEST_QUERY = 120
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What parsing hostile code may raise (a null byte is a ``ValueError``)."""


@dataclass(frozen=True, kw_only=True)
class ToolConventions:
    """How code calls the tools of an environment, for ``agent.memory=execution``.

    ``names`` is the pattern of their dotted names, such as ``apis.*.*``, and ``lookups`` that of those whose output
    is the same at any time, such as documentation. Findings leave out the argument ``hidden`` (an access token) and
    take an output that begins with ``failed`` for an error. An output of more than ``whole_chars`` characters may have
    been cut by the environment and is not shown again.
    """

    names: Text
    lookups: Text
    hidden: Text
    failed: Text
    whole_chars: Count


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call as written: the tool's name without what all tools begin with, and its arguments, shortened."""

    path: str
    name: str
    query: str
    is_lookup: bool


@dataclass(frozen=True, kw_only=True)
class CodeReading:
    """The tool calls of a piece of code in their order.

    ``printed`` are its look-ups that are printed as they are, at top level and with constant arguments, in one
    spelling; ``only_lookups`` says that it does nothing else.
    """

    calls: tuple[ToolCall, ...] = ()
    printed: tuple[str, ...] = ()
    only_lookups: bool = False


def read_code(code: str, conventions: ToolConventions) -> CodeReading:
    """Read code without running it; text that is not Python has no calls."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # the code is the model's
            body = ast.parse(code).body
            printed = [_printed(statement, conventions) for statement in body]
            calls = tuple(_calls(body, conventions))
    except _UNREADABLE:
        return CodeReading()
    spelt = tuple(spelling for spelling in printed if spelling is not None)
    return CodeReading(calls=calls, printed=spelt, only_lookups=bool(body) and len(spelt) == len(body))


def _calls(body: Sequence[ast.stmt], conventions: ToolConventions) -> Iterator[ToolCall]:
    nodes = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Call)]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        call = _tool_call(node, conventions)
        if call is not None:
            yield call


def _tool_call(node: ast.Call, conventions: ToolConventions) -> ToolCall | None:
    path = _dotted(node.func)
    if path is None or not _matches(path, conventions.names):
        return None
    named = [ast.unparse(word) for word in node.keywords if word.arg != conventions.hidden]
    query = ", ".join([*map(ast.unparse, node.args), *named])
    return ToolCall(
        path=path,
        name=path.removeprefix(conventions.names.partition("*")[0]),
        query=query[:_LONGEST_QUERY],
        is_lookup=_matches(path, conventions.lookups),
    )


def _dotted(node: ast.expr) -> str | None:
    """Return a name such as ``a.b.c``; ``None`` for any other expression."""
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value)
        return None if owner is None else f"{owner}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def _matches(path: str, pattern: str) -> bool:
    """Compare part by part, so that ``*`` stands for one name."""
    parts, wanted = path.split("."), pattern.split(".")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _printed(statement: ast.stmt, conventions: ToolConventions) -> str | None:
    """Return the spelling of a look-up that a statement prints: its arguments in the order of their names."""
    match statement:
        case ast.Expr(
            value=ast.Call(func=ast.Name(id="print"), args=[ast.Call(args=[], keywords=named) as call], keywords=[])
        ) if all(isinstance(word.value, ast.Constant) and word.arg for word in named):
            found = _tool_call(call, conventions)
            if found is not None and found.is_lookup:
                arguments = ", ".join(sorted(ast.unparse(word) for word in named))
                return f"{found.path}({arguments})"
    return None
