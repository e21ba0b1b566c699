"""Builds the parts of a run from settings, and checks these by the constructors' type annotations.

A constructor's annotation says what a setting may be, such as ``Count`` or ``Literal["on", "off"]``. ``build`` checks
names, values and missing settings before it calls the constructor. Its errors name a setting by its full path in the
configuration. It is ours because pydantic and msgspec name a field where a user needs the path to override.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Meta

from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.resources import missing_extra

_TARGET = "_target_"
_LARGEST = 10**12
"""Largest number that a setting may be; the libraries that get them cannot handle larger ones."""
_SHOWN = 80
"""Most characters of a wrong value in a message."""

Whole = Annotated[int, Meta(ge=0)]
Protocol = Literal["ours", "authors"]
"""Whose rules a method follows where its authors' published code has other ones."""

Count = Annotated[int, Meta(ge=1)]
Seed = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Parallel = Annotated[int, Meta(ge=1, le=4096)]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0, le=10_000_000)]
Share = Annotated[float, Meta(gt=0, le=1)]
Similarity = Annotated[float, Meta(gt=0, le=1, description="a similarity above 0 and at most 1")]
Text = Annotated[str, Meta(min_length=1)]


@dataclasses.dataclass(frozen=True)
class PartSettings:
    """The settings of a part, at a path of the configuration: the name of what makes it, and its arguments.

    ``node`` consists of mappings, lists and scalars. Raises ``ConfigError`` if it does not name the class to make.
    """

    path: str
    node: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Check that there is something to make."""
        if not isinstance(self.node, Mapping) or not isinstance(self.node.get(_TARGET), str):
            raise ConfigError(
                f"{self.path}{_format_given(self.node)} must be a group of settings with a {_TARGET}, as in configs/"
            )

    @property
    def target(self) -> str:
        """The dotted name of what makes the part."""
        name: str = self.node[_TARGET]
        return name

    def build(self, **parts: Any) -> Any:
        """Build the part; ``parts`` are further arguments that are not settings. Nested nodes are built first.

        Raises ``ConfigError`` that names the wrong setting.
        """
        try:
            make = pkgutil.resolve_name(self.target)
        except (ImportError, AttributeError, ValueError) as error:
            setting = f"{self.path}.{_TARGET}={self.target}"
            if (needed := missing_extra(error, setting)) is not None:
                raise needed from error
            raise ConfigError(f"{setting} cannot be imported: {error}") from error
        settings = {name: value for name, value in self.node.items() if name != _TARGET}
        return make_part(make, settings, self.path, **parts)


def build(node: Any, path: str, **parts: Any) -> Any:
    """Build the part that a node of a configuration describes; raises ``ConfigError`` that names the wrong setting."""
    return PartSettings(path, node).build(**parts)


def make_part(make: Callable[..., Any], settings: Mapping[str, Any], path: str, **parts: Any) -> Any:
    """Check settings against a constructor's annotations and call it; ``path`` is "" for the top level."""
    inside = f"{path}." if path else ""
    own_parameters = {name: value for name, value in _parameters(make).items() if name not in parts}
    for name in settings:
        if name not in own_parameters:
            raise ConfigError(
                f"there is no setting {inside}{name}; {_suggest_setting(str(name), inside, list(own_parameters))}"
            )
    for name, parameter in own_parameters.items():
        if parameter.default is parameter.empty and name not in settings:
            raise ConfigError(f"{inside}{name} is missing; set it, as the file in configs/ does")
    values = {
        name: _value(value, own_parameters[name].annotation, f"{inside}{name}") for name, value in settings.items()
    }
    try:
        with settings_of(path):
            return make(**values, **parts)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{path or 'the configuration'} cannot be used: {error}") from error


def read_part(make: Callable[..., Any], settings: Mapping[str, Any], path: str) -> Any:
    """Make a value of settings that a folder holds; raises ``ConfigError`` where they name a class to build."""
    parts: list[Any] = [settings]
    while parts:
        part = parts.pop()
        if isinstance(part, Mapping) and _TARGET in part:
            raise ConfigError(
                f"{path} names a class to build, {str(part[_TARGET])[:_SHOWN]}; settings there are values"
            )
        parts.extend(part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ())
    return make_part(make, settings, path)


@contextmanager
def settings_of(path: str) -> Iterator[None]:
    """Turn a ``SettingError`` into a ``ConfigError`` that names the setting by its full path."""
    try:
        yield
    except SettingError as error:
        raise ConfigError(f"{path}.{error}" if path else str(error)) from error


def check(value: Any, kind: Any, path: str) -> None:
    """Raise ``ConfigError`` if a value does not fit an annotation."""
    if not _fits(value, kind):
        raise ConfigError(f"{path}{_format_given(value)} must be {describe(kind)}")
    check_size(value, path)


def check_size(value: Any, path: str) -> None:
    """Raise ``ConfigError`` for a number, at any depth, that the libraries that get it cannot handle."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            check_size(item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            check_size(item, path)
    elif isinstance(value, int | float) and abs(value) > _LARGEST and not math.isinf(value):
        bound = f"at most {_LARGEST:,}" if value > 0 else f"at least -{_LARGEST:,}"
        raise ConfigError(f"{path}{_format_given(value)} must be {bound}")


def _value(value: Any, kind: Any, path: str) -> Any:
    """Return the value for a constructor: nodes with a target are built, everything else is checked."""
    if isinstance(value, Mapping):
        if _TARGET in value:
            return build(value, path)
        for alternative in (kind, *get_args(kind)):
            inner = get_args(alternative)[1] if get_origin(alternative) is Mapping else None
            if any(map(dataclasses.is_dataclass, (inner, *get_args(inner)))):
                return {name: _value(part, inner, f"{path}.{name}") for name, part in value.items()}
            if isinstance(alternative, type) and dataclasses.is_dataclass(alternative):
                return make_part(alternative, value, path)
    check(value, kind, path)
    return value


@cache  # a table plans hundreds of runs, whose parts are of a few classes
def _parameters(make: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return a constructor's parameters; ``**rest: Annotated[Any, Class]`` means the parameters of ``Class``."""
    parameters: dict[str, inspect.Parameter] = {}
    signature, hints = inspect.signature(make), dict[str, Any]()
    with suppress(NameError):  # a type that is imported for type checkers only: these settings are not checked
        if dataclasses.is_dataclass(make):  # the fields of its bases have the names of their own modules
            hints = get_type_hints(make, include_extras=True)
        else:
            signature = inspect.signature(make, eval_str=True)
    for name, parameter in signature.parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            parameters[name] = parameter.replace(annotation=hints.get(name, parameter.annotation))
        elif get_origin(parameter.annotation) is Annotated:
            maker = get_args(parameter.annotation)[1]
            inner = {**_parameters(maker)}
            if not dataclasses.is_dataclass(maker):  # the constructor sets some of them itself
                inner = {key: inner_parameter.replace(default=None) for key, inner_parameter in inner.items()}
            parameters = {**inner, **parameters}
    return parameters


def _fits(value: Any, kind: Any) -> bool:  # noqa: PLR0911 - one line per kind of annotation
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _fits(value, arguments[0]) and all(_within(value, argument) for argument in arguments[1:])
    if origin in (Union, UnionType):
        return any(_fits(value, argument) for argument in arguments)
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _fits(name, arguments[0]) and _fits(argument, arguments[1]) for name, argument in value.items()
        )
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return isinstance(value, list | tuple) and all(_fits(argument, arguments[0]) for argument in value)
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    if kind in (bool, int, str, NoneType):
        return type(value) is kind
    return kind is Any or kind is inspect.Parameter.empty or isinstance(kind, str)


def _within(value: Any, bounds: Meta) -> bool:
    limits = (
        bounds.gt is None or value > bounds.gt,
        bounds.ge is None or value >= bounds.ge,
        bounds.lt is None or value < bounds.lt,
        bounds.le is None or value <= bounds.le,
        bounds.min_length is None or len(value) >= bounds.min_length,
        bounds.pattern is None or re.fullmatch(bounds.pattern, value),
    )
    return all(limits)


def describe(kind: Any) -> str:  # noqa: PLR0911 - one line a kind of annotation
    """Describe the values that an annotation allows."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bounds: Meta = arguments[1]
        return bounds.description or f"{describe(arguments[0])}{_bounds_in_words(bounds)}"
    if origin in (Union, UnionType):
        *first, last = (describe(argument) for argument in arguments)
        return f"{', '.join(first)}, or {last}"
    if origin is Literal:
        return f"one of {', '.join(arguments)}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a mapping, each value {describe(arguments[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"a list, each item {describe(arguments[0])}"
    if dataclasses.is_dataclass(kind):
        return f"a group of settings ({', '.join(field.name for field in dataclasses.fields(kind))})"
    descriptions = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", NoneType: "null"}
    return descriptions.get(kind, f"a group of settings with a {_TARGET}, as in configs/")


def _bounds_in_words(bounds: Meta) -> str:
    least, above, most, below = bounds.ge, bounds.gt, bounds.le, bounds.lt
    if bounds.min_length:
        return " that is not empty"
    if least is not None:
        end = f" to {most}" if most is not None else f" to below {below}" if below is not None else None
        return f" from {least}{end}" if end else f", {least} or more"
    return f" above {above}{'' if most is None else f' and at most {most}'}"


def _format_given(value: Any) -> str:
    """Return ``=value`` as on the command line; a long value is cut."""
    text = _format_value(value)
    return f"={text if len(text) <= _SHOWN else text[:_SHOWN] + '...'}"


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_format_value(item)}' for name, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_format_value, value))}]"
    return {None: "null", True: "true", False: "false"}[value] if isinstance(value, bool | None) else str(value)


def _suggest_setting(name: str, inside: str, names: Sequence[str]) -> str:
    matches = get_close_matches(name, names, n=1)
    return f"did you mean {inside}{matches[0]}?" if matches else f"there are {', '.join(names) or 'none'}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RoleSampling:
    """What one role has in place of its backbone's own; ``None``: the backbone's."""

    temperature: NotNegative | None = None
    max_tokens: Count | None = None


def given_by_role(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is set for single roles, without the roles for which nothing is set."""
    by_role = {
        role: {name: value for name, value in (values or {}).items() if value is not None}
        for role, values in (config.get("sampling") or {}).items()
    }
    return {role: values for role, values in by_role.items() if values}
