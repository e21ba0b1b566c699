"""Reads an agent's action without running it: which tools it calls, and whether it may change anything.

The rules err on the side of change: whatever is neither declared by the tool rules nor known to be plain Python counts
as a change.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

import msgspec

from ace_bench.core.python_text import read_python
from ace_bench.core.tool_rules import ToolRule, ToolRules

_FUNCTIONS = frozenset(
    """
    abs all any ascii bin bool bytes chr complex dict divmod enumerate float format frozenset hash hex id
    int isinstance issubclass len list max min next oct ord pow print range repr reversed round set slice sorted
    str sum tuple type zip Counter deepcopy timedelta date
    """.split()  # noqa: SIM905 - fifty words
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
_LAZY = frozenset(["map", "filter", "iter"])
"""Functions that return a lazy iterator, such as a generator. Its code runs only when items are read."""


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
    if not all(
        isinstance(callback, ast.Lambda | ast.Constant) or dotted(callback) in _FUNCTIONS for callback in callbacks
    ):
        return False
    path = dotted(node.func)
    if path is not None and ("." not in path or path.split(".")[0] in _MODULES):
        return path.split(".")[0] in _PLAIN and path not in ("re.sub", "re.subn")  # these two may call a function
    return isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS


def rebinds(statement: ast.stmt, names: frozenset[str]) -> bool:
    """Whether plain names, or ``names``, have or may have another value afterwards."""
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
                for alias in aliases:
                    name = (alias.asname or alias.name).split(".")[0]
                    yield name, alias.asname in (None, alias.name)


_LONGEST_QUERY = 120
_DEEPEST = 100
"""Levels of syntax; a call in a chain takes two, one within another's arguments two or three."""
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What parsing hostile code may raise (a null byte is a ``ValueError``)."""
_MAYBE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.BoolOp)
"""Expressions whose parts may run several times or never."""
_ONCE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)
"""Statements that run once."""


class ActionCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call as written.

    ``tool`` and ``query`` identify it: the name without the prefix, and all arguments, named ones in the order of their
    names. ``shown`` is the query as findings show it. ``fixed``: the call runs exactly once and its arguments are
    constants (hidden ones may be variables). ``names`` are the variables that it uses.
    """

    tool: str
    query: str
    shown: str
    rule: ToolRule
    fixed: bool
    names: frozenset[str] = frozenset()

    @property
    def is_lookup(self) -> bool:
        """Whether a memory can know what the call would show."""
        return self.fixed and self.rule.holds


class StatementReading(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of an action, or a whole action in another language than Python.

    ``printed`` is the look-up whose output the statement prints, if it does nothing else. ``changes``: it may change
    what ``read`` calls show. ``binds`` are the names that it sets. ``opaque``: later code may do more than it seems to.
    """

    calls: tuple[ActionCall, ...] = ()
    printed: ActionCall | None = None
    changes: bool = False
    binds: frozenset[str] = frozenset()
    opaque: bool = False


def read_action(action: str, rules: ToolRules) -> tuple[StatementReading, ...]:
    """Return an action's statements in their order; what cannot be read may change anything."""
    declared = rules.rule_of_action(action)
    if declared is not None:
        name, rule, shown_query = declared
        query = " ".join(action.split())
        call = ActionCall(
            tool=rule.tool or name, query=query, shown=shown_query[:_LONGEST_QUERY], rule=rule, fixed=True
        )
        printed = call if call.is_lookup else None
        return (StatementReading(calls=(call,), printed=printed, changes=rule.access == "write"),)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # the code is the model's
            tree = read_python(lambda: ast.parse(action))
        _check_depth(tree)
        return tuple(_read_statement(statement, rules) for statement in tree.body)
    except _UNREADABLE:
        return (StatementReading(changes=True),)


def _check_depth(tree: ast.AST) -> None:
    """Raise ``ValueError`` for code so deep that reading each part with its surroundings would take too long."""
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [part for node in level for part in ast.iter_child_nodes(node)]
    if level:
        raise ValueError(f"code of more than {_DEEPEST} levels")


def _read_statement(statement: ast.stmt, rules: ToolRules) -> StatementReading:
    run_once = set(_run_once(statement))
    calls: dict[ast.AST, ActionCall] = {}
    called: set[ast.AST] = set()  # the names of functions that are called
    undeclared: list[ast.Call] = []
    for node in ast.walk(statement):  # from the outside: `open(...).read()` comes before its `open(...)`
        if isinstance(node, ast.Call) and node not in called:
            call = _tool_call(node, rules, once=node in run_once)
            chain = list(_chain(node.func))
            called.update(chain if call else (part for part in chain if not isinstance(part, ast.Call)))
            if call:
                calls[node] = call
            else:
                undeclared.append(node)
    opaque = rebinds(statement, rules.roots) or any(_escapes(node, rules, called) for node in ast.walk(statement))
    changes = any(call.rule.access == "write" for call in calls.values()) or not all(map(is_plain_call, undeclared))
    later = any(
        isinstance(node, ast.GeneratorExp | ast.Yield | ast.YieldFrom | ast.Await)
        or (isinstance(node, ast.Name) and node.id in _LAZY)
        for node in ast.walk(statement)
    )
    printed = None
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[ast.Call() as shown], keywords=[])):
            printed = calls.get(shown)
    return StatementReading(
        calls=tuple(calls[node] for node in sorted(calls, key=_place)),
        printed=printed if printed is not None and printed.is_lookup else None,
        changes=changes or opaque,
        binds=frozenset(name for name, _ in _bindings(statement)),
        opaque=opaque or (later and changes),
    )


def _tool_call(node: ast.Call, rules: ToolRules, *, once: bool) -> ActionCall | None:
    path = dotted(node.func)
    if path is None:
        return None
    chain = [node, *(part for part in _chain(node.func) if isinstance(part, ast.Call))]
    arguments = [name_node for call in reversed(chain) for name_node in call.args]
    keywords = [word for call in reversed(chain) for word in call.keywords]
    hidden = [word for word in keywords if word.arg in rules.hidden]
    open_words = [word for word in keywords if word not in hidden]
    open_names = [ast.unparse(word) for word in open_words]
    declared = rules.rule_for(path, ", ".join([*map(ast.unparse, arguments), *open_names]))
    if declared is None:
        return None
    rule, shown_query = declared
    constant = all(map(_is_constant, [*arguments, *(word.value for word in open_words)]))
    fixed = constant and all(isinstance(word.value, ast.Name | ast.Constant) for word in hidden)
    return ActionCall(
        tool=rule.tool or path.removeprefix(rules.prefix or ""),
        query=", ".join([*map(ast.unparse, arguments), *sorted(map(ast.unparse, keywords))]),
        shown=shown_query[:_LONGEST_QUERY],
        rule=rule,
        fixed=once and fixed and all(word.arg for word in keywords),
        names=frozenset(
            name_node.id
            for part in (node.func, *hidden)
            for name_node in ast.walk(part)
            if isinstance(name_node, ast.Name)
        ),
    )


def _is_constant(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True


def _chain(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of a dotted name, with the calls in between."""
    yield node
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
        yield node


def _escapes(node: ast.AST, rules: ToolRules, called: set[ast.AST]) -> bool:
    """Whether a tool that may change something is mentioned without being called, so that it may be called unseen."""
    if not isinstance(node, ast.Attribute | ast.Name) or node in called:
        return False
    path = dotted(node)
    if path is None or path.split(".")[0].removesuffix("()") not in rules.roots:
        return False
    rule = rules.named(path)
    called.update(_chain(node))
    return rule is None or rule.access == "write"


def _run_once(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions that a statement evaluates exactly once."""
    todo: list[ast.AST] = [statement] if isinstance(statement, _ONCE) else []
    while todo:
        node = todo.pop()
        yield node
        todo.extend(part for part in ast.iter_child_nodes(node) if not isinstance(part, _MAYBE))


def _place(node: ast.AST) -> tuple[int, int]:
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
