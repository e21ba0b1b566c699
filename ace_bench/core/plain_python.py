"""Which pieces of Python surely change nothing outside of the session's own variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_FUNCTIONS = frozenset(
    (
        *(
            "abs",
            "all",
            "any",
            "ascii",
            "bin",
            "bool",
            "bytes",
            "chr",
            "complex",
            "dict",
            "divmod",
            "enumerate",
            "float",
        ),
        *("float", "format", "frozenset", "hash", "hex", "id", "int", "isinstance", "issubclass", "len", "list", "max"),
        *("min", "next", "oct", "ord", "pow", "print", "range", "repr", "reversed", "round", "set", "slice", "sorted"),
        *("str", "sum", "tuple", "type", "zip", "Counter", "deepcopy", "timedelta", "date"),
    )
)
_MODULES = frozenset(
    ("calendar", "collections", "copy", "datetime", "itertools", "json", "math", "re", "statistics", "string")
)
_METHODS = frozenset(
    name for kind in (str, bytes, int, float, list, dict, set, tuple) for name in dir(kind) if name[0] != "_"
)
_CALLBACKS = ("key", "default", "default_factory", "object_hook", "cls")
"""Arguments that plain functions call."""
_PLAIN = _FUNCTIONS | _MODULES
_REACHING = frozenset(["compile", "delattr", "eval", "exec", "getattr", "globals", "locals", "setattr", "vars"])
"""Functions by which code sets names and attributes, or reaches tools, unseen."""


def dotted(node: ast.expr) -> str | None:
    """Return a name such as ``a.b.c``, with ``()`` after what is called in between; ``None`` for other expressions."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            owner = dotted(node.value)
            return None if owner is None else f"{owner}.{node.attr}"
        case ast.Call():
            owner = dotted(node.func)
            return None if owner is None else f"{owner}()"
    return None


def is_plain_call(node: ast.Call) -> bool:
    """Whether a call is one of a known function, or of a method of a built-in type, and calls back nothing else."""
    callbacks = [word.value for word in node.keywords if word.arg in _CALLBACKS]
    if not all(isinstance(one, ast.Lambda | ast.Constant) or dotted(one) in _FUNCTIONS for one in callbacks):
        return False
    path = dotted(node.func)
    if path is not None and ("." not in path or path.split(".")[0] in _MODULES):
        return path.split(".")[0] in _PLAIN and path not in ("re.sub", "re.subn")  # these two may call a function
    return isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS


def is_deferred(node: ast.AST) -> bool:
    """Whether a node makes something whose code runs later, when it is read item by item."""
    lazy = isinstance(node, ast.Name) and node.id in ("map", "filter", "iter")
    return lazy or isinstance(node, ast.GeneratorExp | ast.Yield | ast.YieldFrom | ast.Await)


def binds_of(statement: ast.stmt) -> frozenset[str]:
    """Return the names that a statement may set."""
    return frozenset(name for name, _ in _bindings(statement))


def rebinds(statement: ast.stmt, names: frozenset[str]) -> bool:
    """Whether plain names, or ``names``, stand for something else afterwards, or may do so unseen."""
    for node in ast.walk(statement):
        match node:
            case ast.ClassDef() | ast.Attribute(ctx=ast.Store() | ast.Del()):
                return True
            case ast.FunctionDef(decorator_list=[_, *_]) | ast.AsyncFunctionDef(decorator_list=[_, *_]):
                return True
            case ast.Name(id=name, ctx=ast.Load()) if name.startswith("__") or name in _REACHING:
                return True
    return any(name == "*" or (name in _PLAIN | names and not imported) for name, imported in _bindings(statement))


def _bindings(statement: ast.stmt) -> Iterator[tuple[str, bool]]:
    """Yield the names that are set, each with whether an import gives it its usual meaning."""
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name, False
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, False
            case ast.arg(arg=name):
                yield name, False
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, False
            case ast.MatchMapping(rest=str(name)):
                yield name, False
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                yield from ((name, False) for name in names)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for one in aliases:
                    name = (one.asname or one.name).split(".")[0]
                    yield name, one.asname in (None, one.name)
