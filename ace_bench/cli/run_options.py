"""The options of ``ace-bench run`` that start with a dash: Hydra's own, checked before Hydra reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from hydra._internal.utils import get_args_parser

from ace_bench.core.errors import ConfigError

_LEFT_OUT = ("--shell-completion", "-sc")
"""Hydra's completion knows a script's name alone, and asks a program of many commands for a command ``-sc``."""


def settings_first(words: Sequence[str]) -> list[str]:
    """Return the settings and then the options, because Hydra reads settings in one piece only.

    Raises ``ConfigError`` for an option that does not exist or has no value.
    """
    options = {
        name: action for name, action in get_args_parser()._option_string_actions.items() if name not in _LEFT_OUT
    }
    settings: list[str] = []
    flags: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            settings.append(word)
        elif name not in options:
            raise ConfigError(_unknown(name, list(options)))
        elif options[name].nargs is None:  # takes a value
            value = value if equals else next(rest, "")
            choices = options[name].choices
            if not value or (choices is not None and value not in choices):
                raise ConfigError(f"{name} needs {'a value' if choices is None else f'one of {_listed(choices)}'}")
            flags += [name, value]
        else:
            flags.append(word)
    return [*settings, *flags]


def _listed(choices: Iterable[object]) -> str:
    return ", ".join(map(str, choices))


def _unknown(name: str, options: Sequence[str]) -> str:
    close = get_close_matches(name, options, n=1)
    hint = f"did you mean {close[0]}?" if close else f"settings are written without dashes: {name.lstrip('-')}=VALUE"
    return f"there is no option {name}; {hint}"
