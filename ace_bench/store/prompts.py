"""Prompt sets: Jinja2 templates by task, group and role."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError
from ace_bench.core.types import Message

if TYPE_CHECKING:  # a finished run needs no more than the checksum of its templates, and jinja2 is slow to import
    from jinja2 import Template
    from jinja2.sandbox import ImmutableSandboxedEnvironment

_EXAMPLE = re.compile(r"example_(user|assistant)\w*")
_EXACT = re.compile(r"(system|user|assistant)_exact\w*")
_DIALOGUE = "dialogue"
_TURN = re.compile(r"(USER|ASSISTANT|SYSTEM):\n", re.IGNORECASE)
"""What opens a turn of a dialogue, anywhere in the text: the rule of the official AppWorld agents."""
_COMMON = "common"


class PromptSet:
    """The templates of one set of one task: its own folder first, then its prompt group, then ``common``.

    A set may be spread over several folders: a package with another task adds its templates to the set ``default``.
    Templates in a folder of these are found, too, and are ``files`` only if it is the ``module`` of the run's method:
    new ones rename no runs of other methods.

    Files whose names begin with ``_`` are parts that other templates include.
    A template has the blocks ``system`` (optional) and ``user``; each becomes one message. Within a block the
    text runs from stable to volatile, so that servers can reuse the prefix of earlier prompts (design rule 7).
    Blocks such as ``example_user_1`` and ``example_assistant_1`` are worked examples, as turns between the two: small
    models follow a reply that they seem to have given, and copy one that is shown to them in the instructions.

    Imported prompts must not lose a byte. Blocks such as ``user_exact`` or ``assistant_exact_2`` become messages in
    their order, with their blank lines. A block ``dialogue`` is a whole conversation, split into messages wherever
    ``USER:``, ``ASSISTANT:`` or ``SYSTEM:`` ends a line.
    """

    def __init__(self, *roots: Path, task: str, prompt_group: str, module: str = ""):
        """Use the set in the folders ``roots``; one must hold ``task`` or ``prompt_group``, else ``ConfigError``."""
        own_files, common = (
            [root / name for name in names for root in roots if (root / name).is_dir()]
            for names in ((task, prompt_group), (_COMMON,))
        )
        if not own_files:
            set_of = " and ".join(map(str, roots))
            raise ConfigError(f"prompt set {set_of} has neither a folder {task}/ nor {prompt_group}/; check prompts=")
        of_modules = [path for folder in (*own_files, *common) for path in sorted(folder.iterdir()) if path.is_dir()]
        self._folders = [*own_files, *common, *of_modules]
        self._counted = [*own_files, *common, *(path for path in of_modules if path.name == module)]
        self._templates: dict[str, Template] = {}
        self._fields: dict[str, frozenset[str]] = {}

    @cached_property
    def _environment(self) -> ImmutableSandboxedEnvironment:
        return _environment(tuple(self._folders))

    def render(self, role: str, fields: Mapping[str, Any]) -> tuple[Message, ...]:
        """Render a role's messages; a missing template or undefined field raises ``ConfigError``."""
        try:
            template = self._templates.get(role) or self._load(role)
            context = template.new_context(dict(fields))
            texts = {block: "".join(template.blocks[block](context)) for block in _message_blocks(template)}
            if _DIALOGUE in texts:
                return _turns(texts[_DIALOGUE])
            # A system block or an example whose conditions leave it empty is no message.
            return tuple(
                _message(block, text)
                for block, text in texts.items()
                if text.strip() or not (block == "system" or _EXAMPLE.fullmatch(block))
            )
        except _template_errors() as error:
            raise self._template_error(role, error) from error

    def is_dialogue(self, role: str) -> bool:
        """Whether a template is a whole conversation, with worked examples of its own."""
        return _DIALOGUE in (self._templates.get(role) or self._load(role)).blocks

    def uses(self, role: str, field: str) -> bool:
        """Whether a template, or one that it includes, shows a field."""
        if role not in self._fields:
            self._load(role)
            self._fields[role] = self._fields_of(f"{role}.j2", required=False)
        return field in self._fields[role]

    def fixed_text(self, role: str) -> str:
        """Return what a template, with those that it includes, says whatever its fields; "" without the template."""
        from jinja2 import TemplateNotFound

        try:
            return "\n".join(scan.text for scan in self._scans(f"{role}.j2"))
        except TemplateNotFound:
            return ""

    def require(self, roles: Iterable[str]) -> None:
        """Load templates early, so that a missing or broken one fails before anything is paid for."""
        for role in roles:
            self._load(role)

    def check(self, role: str, fields: Collection[str]) -> None:
        """Raise ``ConfigError`` if a template, or one that it includes, uses a field that is not in ``fields``."""
        try:
            unknown = sorted(self._fields_of(f"{role}.j2", required=True) - set(fields))
        except _template_errors() as error:
            raise self._template_error(role, error) from error
        if unknown:
            raise ConfigError(
                f"prompt template {role}.j2 in {self._folders[0]} asks for {', '.join(unknown)}, and its fields are "
                f"{', '.join(sorted(fields)) or 'none'}: correct the template"
            )

    def _fields_of(self, name: str, *, required: bool) -> frozenset[str]:
        """Return the fields of a template and its includes: all, or only those that may not be missing."""
        scan = self._scan(name)
        included = (self._fields_of(include, required=required) for include in scan.includes if include != name)
        used = scan.used | frozenset[str]().union(*included) - scan.set_here
        return used - scan.optional if required else used

    def _scans(self, name: str) -> Iterator[_Scan]:
        """Yield what is in a template and in those that it includes."""
        scan = self._scan(name)
        yield scan
        for include in scan.includes:
            if include != name:
                yield from self._scans(include)

    def _scan(self, name: str) -> _Scan:
        assert self._environment.loader is not None
        source, *_ = self._environment.loader.get_source(self._environment, name)
        return _scan(source)

    def _load(self, role: str) -> Template:
        from jinja2 import TemplateNotFound

        try:
            template = self._environment.get_template(f"{role}.j2")
        except TemplateNotFound as error:
            places = " or ".join(str(folder) for folder in self._folders)
            raise ConfigError(
                f"there is no prompt template {role}.j2 in {places}; add it (a set of your own starts as a copy of "
                f"prompts/default)"
            ) from error
        except _template_errors() as error:
            raise self._template_error(role, error) from error
        if not {*_message_blocks(template)} - {"system"}:
            raise self._template_error(
                role, "it has no block user: put what is asked between {% block user %} and {% endblock %}"
            )
        self._templates[role] = template
        return template

    def _template_error(self, role: str, problem: object) -> ConfigError:
        if isinstance(problem, UnicodeDecodeError):
            problem = f"it is not UTF-8 (byte {problem.start + 1})"
        line = f", line {problem.lineno}" if hasattr(problem, "lineno") else ""
        return ConfigError(f"prompt template {role}.j2 in {self._folders[0]} cannot be used{line}: {problem}")

    @cached_property
    def files(self) -> Mapping[str, str]:
        """The templates that this task can use, by ``<folder>/<file>``."""
        files: dict[str, str] = {}
        for folder in self._counted:
            for path in sorted(folder.glob("*.j2")):
                try:
                    name = f"{folder.name}/{path.name}"
                    files[name] = files.get(name) or path.read_text(encoding="utf-8")
                except (OSError, UnicodeDecodeError) as error:
                    raise self._template_error(path.stem, error) from error
        return files

    @cached_property
    def digest(self) -> str:
        """Checksum over the templates this task can use."""
        return digest_of(dict(self.files))


@lru_cache(maxsize=16)
def _environment(folders: tuple[Path, ...]) -> ImmutableSandboxedEnvironment:
    """Return what compiles the templates in folders: each once for all runs of a process, until its file changes."""
    from jinja2 import FileSystemLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Templates may come from other packages: the sandbox keeps them from running code.
    return ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        autoescape=False,  # prompts are plain text, not HTML
        trim_blocks=False,
        keep_trailing_newline=False,
    )


class _Scan(NamedTuple):
    """The names that a template needs, sets and may lack, the templates that it includes, and its text around them."""

    used: frozenset[str]
    set_here: frozenset[str]
    optional: frozenset[str]
    includes: tuple[str, ...]
    text: str


@cache
def _scan(source: str) -> _Scan:
    """Read a template's text; cached, since checks of many runs read the same few templates."""
    from jinja2 import Environment, meta, nodes

    tree = Environment(autoescape=False).parse(source)
    probed = [*tree.find_all(nodes.Test), *tree.find_all(nodes.Filter)]
    tests = ("defined", "undefined", "default", "d")
    # Blocks see what the template sets outside of them, such as a template that extends another.
    outside = [name for node in tree.body if isinstance(node, nodes.Assign) for name in node.find_all(nodes.Name)]
    read, stored = ({name.name for name in outside if name.ctx == use} for use in ("load", "store"))
    return _Scan(
        used=frozenset(meta.find_undeclared_variables(tree) - (stored - read)),
        set_here=frozenset(node.name for node in tree.find_all(nodes.Name) if node.ctx == "store"),
        optional=frozenset(
            node.node.name for node in probed if node.name in tests and isinstance(node.node, nodes.Name)
        ),
        includes=tuple(name for name in meta.find_referenced_templates(tree) if name is not None),
        text="\n".join(node.data for node in tree.find_all(nodes.TemplateData)),
    )


def _template_errors() -> tuple[type[Exception], ...]:
    """Return the errors from reading and rendering a template."""
    from jinja2 import TemplateError

    return (TemplateError, UnicodeDecodeError, OSError, TypeError, ValueError, ArithmeticError, LookupError)


def _message_blocks(template: Template) -> list[str]:
    """Return the blocks that become messages, in the order of the messages."""
    if _DIALOGUE in template.blocks:
        return [_DIALOGUE]
    examples, exact = filter(_EXAMPLE.fullmatch, template.blocks), filter(_EXACT.fullmatch, template.blocks)
    system, user = ([name] if name in template.blocks else [] for name in ("system", "user"))
    return [*system, *examples, *user, *exact]


def _message(block: str, text: str) -> Message:
    exact, example = _EXACT.fullmatch(block), _EXAMPLE.fullmatch(block)
    if exact:
        return Message(role=exact[1], content=text)
    return Message(role=example[1] if example else block, content=text.strip())


def _turns(text: str) -> tuple[Message, ...]:
    before, *parts = _TURN.split(text)
    if before or not parts:
        raise ValueError(f"the dialogue does not begin with USER: on a line of its own, but with {text[:40]!r}")
    return tuple(
        Message(role=role.lower(), content=content) for role, content in zip(parts[::2], parts[1::2], strict=True)
    )
