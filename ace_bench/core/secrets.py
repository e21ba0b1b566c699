"""Refuses settings that hold a secret, because settings are written to run folders, trackers and printed commands.

A secret belongs in an environment variable; a setting names the variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from ace_bench.core.errors import ConfigError
from ace_bench.core.redaction import secret_by_name, secret_by_value, secrets_of_environment

_NAMES_OF_VARIABLES = "headers_from_env"
_HEADER = re.compile(rf"(?:(.+)\.)?(?:extra_headers|{_NAMES_OF_VARIABLES})\.([\w-]+)")
"""Where a setting holds a header, or the variable of one."""
_MARK = re.compile(r"[\[{]|[-:?](\s|$)")
"""Characters that every mapping and list of YAML has. Other values do not need the parser, which is slow to import."""


def refuse_secrets(settings: Mapping[str, object]) -> None:
    """Raise ``ConfigError`` that names the first setting with a secret, without the secret."""
    for path, why in _find_keys(settings, "", secrets_of_environment()):
        header = _HEADER.fullmatch(path)
        owner, name = header.groups() if header else (None, "HEADER")
        owner = owner or "backbone"
        raise ConfigError(
            f"{path} {why} and would be written into the run folder: put it into an environment variable and name "
            f"that, by {owner}.api_key_env=VARIABLE or +{owner}.headers_from_env.{name}=VARIABLE"
        )


def refuse_secret_arguments(arguments: Iterable[str]) -> None:
    """Check the settings of a command line (``name=value``) in the same way."""
    for argument in arguments:
        name, _, value = argument.partition("=")
        name = name.lstrip("+~")
        refuse_secrets({name: value})
        if _MARK.search(value):
            with suppress(msgspec.DecodeError):
                refuse_secrets({name: msgspec.yaml.decode(value)})


def _find_keys(value: object, path: str, secrets: Sequence[str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            name = str(key)
            full_path = f"{path}.{name}" if path else name
            variable = _NAMES_OF_VARIABLES in full_path.split(".")
            is_value = not isinstance(part, bool | Mapping | list) and part not in (None, "", "null")
            if is_value and not variable and secret_by_name(name):
                yield full_path, "is a secret by its name"
            yield from _find_keys(part, full_path, secrets)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, part in enumerate(value):
            flag, equals, _ = str(part).partition("=")
            values = equals or value[index + 1 :]
            if flag.startswith("--") and values and secret_by_name(flag.lstrip("-")):
                yield path, f"holds a secret ({flag})"
            yield from _find_keys(part, path, secrets)
    elif isinstance(value, str) and (why := secret_by_value(value, secrets)):
        yield path, why
