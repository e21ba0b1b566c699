"""The code that decides a run's result, by content.

Counted are the modules of the configured task, agent, method and mode, of the functions that settings name and of the
kind of a saved context, and what these import: of ace_bench the rooms in ``_DECIDING``, of others the modules of the
same package and, outside ``site-packages``, of the same folder. A module's digest ignores comments and formatting.
Docstrings count, because frameworks send them to models as prompts; ours are never sent and do not count.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from ace_bench.core.errors import FileUnwritable
from ace_bench.core.python_text import read_python
from ace_bench.core.resources import config_folders, context_kinds, import_folder, options
from ace_bench.store.files import cache_folder, write_cached

_OURS = "ace_bench"
_DECIDING = (
    "ace.",
    "agents.",
    "contexts.",
    "contrib.retrieval.",
    "core.",
    "methods.",
    "playbook.",
    "runners.",
    "tasks.",
)
_READER = "backbones.embedded."
_METRICS = f"{_OURS}.runners.metrics"
_GROUPS = ("task", "agent", "method", "mode")
_BACKBONES = ("backbone", "roles", "default_roles")
_NAMING = ("name", "environment")
"""Settings of a task that name a package or a Python file."""
_TASKS = "tasks"
"""The setting of a task that names the options of other tasks."""
_FUNCTION = "python:"
_FILE = re.compile(r"(.+\.py)(@\w+)?")
_INSTALLED = ("site-packages", "dist-packages")
_DIGITS = 12
_MOST_CACHED, _MOST_NAMED = 5000, 3


def asks_a_server(module: str) -> bool:
    """Return whether the backbones of a module are ours and ask a server: all of ours but the embedded reader."""
    return module.startswith(f"{_OURS}.") and not module.startswith(f"{_OURS}.{_READER}")


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """Digests by module.

    ``backbones`` names the modules of backbones that answer by themselves. Others ask a server, whose replies are
    recorded.
    """

    modules: Mapping[str, str]
    backbones: frozenset[str] = frozenset()


def changed_modules(earlier: Mapping[str, str], later: Mapping[str, str]) -> list[str]:
    """Return the names of modules that were changed, added or removed; none where one side is unknown."""
    if not earlier or not later:
        return []
    return sorted(name for name in {**earlier, **later} if earlier.get(name) != later.get(name))


def modules_in_words(modules: list[str]) -> str:
    """Name the first modules, and count the others."""
    first_modules, others_count = modules[:_MOST_NAMED], len(modules) - _MOST_NAMED
    return ", ".join(first_modules) + (f" and {others_count} more modules" if others_count > 0 else "")


def code_of(config: Mapping[str, Any]) -> Code:
    """Return the code that a resolved configuration runs; none of it is imported."""
    return CodeReader().code_of(config)


def _targets(node: Any) -> Iterator[str]:
    """Yield what the settings of a configuration build or call."""
    if isinstance(node, Mapping):
        if isinstance(node.get("_target_"), str):
            yield node["_target_"]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _targets(child)
    elif isinstance(node, str) and node.startswith(_FUNCTION):
        yield node.removeprefix(_FUNCTION)


def _named_by(task: Mapping[str, Any]) -> Iterator[str]:
    for setting in _NAMING:
        if isinstance(name := task.get(setting), str):
            package, slash, _ = name.partition("/")
            # Inspect AI imports this module of a package to find its tasks.
            yield name if _FILE.fullmatch(name) else package.replace("-", "_") + "._registry" * bool(slash)
    if names := task.get(_TASKS):
        files = options("task", config_folders())
        yield from (msgspec.yaml.decode(files[name].read_bytes())["_target_"] for name in names if name in files)


class _Kind(msgspec.Struct):
    """What is read of a saved context."""

    kind: str


def _loaded_by(part: Mapping[str, Any]) -> Iterator[str]:
    """Yield the module of the saved context that a method or mode evaluates, where another package brings its kind."""
    if not isinstance(file := part.get("context"), str):
        return
    with suppress(OSError, msgspec.DecodeError, RecursionError):  # loading it says what is wrong
        kind = msgspec.json.decode(Path(file).read_bytes(), type=_Kind).kind
        if kind in (kinds := context_kinds()):
            yield kinds[kind].module


class _Source(msgspec.Struct, array_like=True):
    """What is kept of a source text: its digest, and the names that it may import."""

    digest: str
    imports: list[str]


class CodeReader:
    """Reads the code of configurations, each module once.

    What was made of a source text is cached on disk by its content, since parsing takes most of the time.
    """

    def __init__(self) -> None:
        _list_folder.cache_clear()  # a notebook may have got new modules since its last run
        self._path = cache_folder("code") / "modules.msgpack"
        try:
            self._known = _decode(self._path.read_bytes())
        except (OSError, ValueError):  # there is none yet, or another version wrote it
            self._known = {}
        self._new: dict[str, _Source] = {}
        self._here = str(import_folder())
        self._found: dict[tuple[tuple[str, ...], tuple[str, ...]], Code] = {}

    def code_of(self, config: Mapping[str, Any]) -> Code:
        """Return the code that a resolved configuration runs; none of it is imported."""
        groups = {group: config.get(group) for group in _GROUPS}
        targets = (_METRICS, *_targets(groups), *_named_by(config.get("task") or {}))
        targets += tuple(module for group in ("method", "mode") for module in _loaded_by(config.get(group) or {}))
        answering = tuple(_targets([config.get(group) for group in _BACKBONES]))
        if (targets, answering) not in self._found:
            answers = self._modules(answering, ours=False)
            modules = {**self._modules(targets, ours=True), **answers}
            self._found[targets, answering] = Code(modules=dict(sorted(modules.items())), backbones=frozenset(answers))
            self._keep()
        return self._found[targets, answering]

    def _modules(self, targets: Sequence[str], *, ours: bool) -> dict[str, str]:
        """Return the digests of the modules behind dotted names or files and of what they import."""
        digests: dict[str, str] = {}
        roots = [root for target in targets if (root := _root(target)) is not None]
        waiting = [root for root in roots if _counts(*root, ours=ours)]
        queued = set(waiting)
        while waiting:
            folder, name, top = waiting.pop()
            file = _file(folder, name)
            if file is None or (source := self._read(name, file)) is None:
                continue
            digests[name] = source.digest
            for imported in source.imports:
                is_ours = imported.startswith(f"{_OURS}.")
                module = (self._here if is_ours else folder, imported, _OURS if is_ours else top)
                if module not in queued and _counts(*module, ours=ours):
                    waiting.append(module)
                queued.add(module)
        return digests

    def _keep(self) -> None:
        """Add what was parsed to the cache."""
        if self._new:
            kept = {} if len(self._known) > _MOST_CACHED else self._known
            with suppress(FileUnwritable, OSError):  # without a cache, the next start takes longer
                write_cached(self._path, msgspec.msgpack.encode({**kept, **self._new}))
            self._known, self._new = {**self._known, **self._new}, {}

    def _read(self, name: str, file: str) -> _Source | None:
        try:
            with open(file, "rb") as opened:
                content = opened.read()
        except OSError:  # a module without a source that can be read
            return None
        key = sha256(f"{name} {os.path.basename(file)}\n".encode() + content).hexdigest()
        parsed = self._known.get(key) or self._new.get(key)
        if parsed is None:
            parsed = self._new[key] = _parse_source(name, file, content)
        return parsed


@lru_cache(maxsize=1)
def _decode(content: bytes) -> Mapping[str, _Source]:
    """Return what the file of the cache holds, which the runs of one process share."""
    return msgspec.msgpack.decode(content, type=dict[str, _Source])


def _counts(folder: str, name: str, top: str, *, ours: bool) -> bool:
    """Whether a module that one of ``top`` imports belongs to the code."""
    first, _, submodule = name.partition(".")
    if first == _OURS:
        return submodule.startswith(_DECIDING if ours else _READER)
    return top != _OURS and (first == top or not folder.endswith(_INSTALLED))


def _root(target: str) -> tuple[str, str, str] | None:
    """Return folder, module and top-level package of a dotted name or a file; ``None`` without a source."""
    if match := _FILE.fullmatch(target):
        path = Path(match[1]).resolve()
        return str(path.parent), path.stem, path.stem
    top = target.partition(".")[0]
    folder = _folder(top)
    name = target
    while folder is not None and _file(folder, name) is None:
        name, dot, _ = name.rpartition(".")
        if not dot:
            return None
    return None if folder is None else (folder, name, top)


def _folder(top: str) -> str | None:
    """Return the folder that holds a top-level package or module."""
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        spec = None
    location = next(iter((spec and spec.submodule_search_locations) or ()), spec.origin if spec else None)
    return os.getcwd() if location is None else os.path.dirname(location)  # a grader may be in the current folder


def _file(folder: str, name: str) -> str | None:
    path = os.path.join(folder, *name.split("."))
    parent, last = os.path.split(path)
    names = _list_folder(parent)
    if last in names and "__init__.py" in _list_folder(path):
        return os.path.join(path, "__init__.py")
    return f"{path}.py" if f"{last}.py" in names else None


@cache
def _list_folder(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except OSError:  # nothing can be imported from there
        return frozenset()


def _parse_source(name: str, file: str, content: bytes) -> _Source:
    try:
        tree: ast.AST = read_python(lambda: ast.parse(content))
        imports = sorted(set(_imports(tree, name if file.endswith("__init__.py") else name.rpartition(".")[0])))
        if name.startswith(f"{_OURS}."):
            tree = _WithoutTexts().visit(tree)
        content = ast.unparse(tree).encode()
    except (SyntaxError, ValueError, RecursionError):
        imports = []
    return _Source(digest=sha256(content).hexdigest()[:_DIGITS], imports=imports)


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the modules that a source text may import, with the packages around them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join(filter(None, [*parents, node.module]))
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


class _WithoutTexts(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node
